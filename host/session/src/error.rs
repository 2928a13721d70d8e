//! Why a Session cannot be opened.

use floe_sandbox::SandboxError;

/// Why a Session cannot be opened or go on. Nothing has been written or started by then.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The sandbox cannot be made with these options.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A host that commands may reach is none.
    #[error(transparent)]
    Network(#[from] floe_network::GrantError),
    /// The Trace of a Session that should go on cannot be read or written.
    #[error(transparent)]
    Trace(#[from] floe_trace::TraceError),
    /// A Session cannot go on: why, for the person.
    #[error("this Session cannot go on: {0}")]
    Resume(String),
    /// The descriptor of the Workspace cannot be duplicated.
    #[error("cannot open a Session: {0}; close some files or raise the limit with `ulimit -n`")]
    Descriptor(std::io::Error),
}
