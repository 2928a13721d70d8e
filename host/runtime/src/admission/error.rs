//! Why a component is not let in, in words: the component, the place in it, and what to do.

use super::{CONTRACT_LINE, CONTRACT_VERSION};
use crate::capability_set::Capability;

/// Why a component is not let in. Each message names the component, the place in it, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// More bytes than a component may have.
    #[error(
        "`{tool}` is {bytes} bytes; a component may have {limit}. Build it in release mode, with debug information and unused dependencies removed"
    )]
    TooLarge {
        /// The component's name.
        tool: String,
        /// Its size.
        bytes: usize,
        /// The largest size.
        limit: usize,
    },
    /// Not WebAssembly.
    #[error(
        "`{tool}` is not WebAssembly: {found}. Give the .wasm file that `floe plugin build` writes"
    )]
    NotWasm {
        /// The component's name.
        tool: String,
        /// What is there instead.
        found: String,
    },
    /// A core module.
    #[error(
        "`{tool}` is a core WebAssembly module and not a component. Turn it into one with `floe plugin build`, or build it for wasm32-wasip2"
    )]
    CoreModule {
        /// The component's name.
        tool: String,
    },
    /// The bytes end too early.
    #[error(
        "`{tool}` is cut off: {bytes} bytes are there, and the part at byte {offset} needs more. Copy or build the file again"
    )]
    Truncated {
        /// The component's name.
        tool: String,
        /// How many bytes there are.
        bytes: usize,
        /// Where the part that is cut begins or ends.
        offset: u64,
    },
    /// WebAssembly, but not valid.
    #[error(
        "`{tool}` is damaged or uses a feature of WebAssembly that this host does not have: {reason} (at byte {offset}). Build it again with the toolchain that the plugin guide names"
    )]
    Invalid {
        /// The component's name.
        tool: String,
        /// What the validator says.
        reason: String,
        /// Where.
        offset: u64,
    },
    /// Not a tool.
    #[error(
        "`{tool}` does not export `floe:tool/builtin-tool@{CONTRACT_VERSION}`, so it is no tool. Export that interface from a world of floe:tool"
    )]
    NotATool {
        /// The component's name.
        tool: String,
    },
    /// Built for another version of the contract.
    #[error(
        "`{tool}` is built for version {found} of the contract ({place}); this host needs {CONTRACT_LINE}x. Rebuild it against floe:tool@{CONTRACT_VERSION}"
    )]
    ContractVersion {
        /// The component's name.
        tool: String,
        /// The import or export that says so.
        place: String,
        /// The version it names.
        found: String,
    },
    /// The right name with other contents.
    #[error(
        "`{tool}` does not fit the contract: {detail}. Rebuild it against the wit/ folder of floe:tool@{CONTRACT_VERSION}, unchanged"
    )]
    WrongShape {
        /// The component's name.
        tool: String,
        /// What differs.
        detail: String,
    },
    /// An import that this host does not have.
    #[error(
        "`{tool}` imports `{import}`, which this host does not have. Build it against floe:tool@{CONTRACT_VERSION} and WASI 0.2 only"
    )]
    UnknownImport {
        /// The component's name.
        tool: String,
        /// The import.
        import: String,
    },
    /// A capability that it uses and does not declare.
    #[error(
        "`{tool}` imports `{import}` but does not declare the capability `{capability}`. Add `{capability}` to its manifest, or build it against a world without it"
    )]
    Undeclared {
        /// The component's name.
        tool: String,
        /// The import.
        import: String,
        /// The capability.
        capability: Capability,
    },
    /// It could not be compiled or linked.
    #[error(
        "`{tool}` cannot be compiled: {reason}. Build it again with the toolchain that the plugin guide names"
    )]
    NotCompiled {
        /// The component's name.
        tool: String,
        /// What the compiler says.
        reason: String,
    },
    /// It was loaded by another runtime.
    #[error("`{tool}` was loaded by another runtime. Load it with the one that runs it")]
    OtherRuntime {
        /// The component's name.
        tool: String,
    },
}
