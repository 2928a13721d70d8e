//! Who gets in: reads a component's import and export names from its bytes, before anything is compiled, and refuses what this
//! host must not or cannot run. It parses untrusted bytes and must never panic.

mod error;

pub use error::AdmissionError;
use wasmparser::{Chunk, Encoding, Parser, Payload, Validator, WasmFeatures};

use crate::capability_set::{Capability, CapabilitySet};

/// The version of the contract that this host speaks. Any patch of it is accepted.
pub const CONTRACT_VERSION: &str = "0.1.0";
/// The part of the version that must be equal.
const CONTRACT_LINE: &str = "0.1.";
const CONTRACT: &str = "floe:tool/";
/// The magic number and the version that every module and component starts with.
const HEADER_BYTES: usize = 8;
const TOOL_EXPORT: &str = "builtin-tool";
const TOOL_FUNCTIONS: [&str; 3] = ["definition", "execute", "permission-for"];
/// Interfaces of the contract that every call has, or that hold no function.
const ALWAYS_THERE: [&str; 4] = ["types", "output", "cancellation", "log"];
/// The interfaces of WASI 0.2 that are linked, with or without power behind them.
const WASI: [&str; 29] = [
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:random/random",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/terminal-stderr",
    "wasi:filesystem/types",
    "wasi:filesystem/preopens",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
    "wasi:http/types",
    "wasi:http/outgoing-handler",
];

/// The import of a component that can send requests by WASI: through the gate where it declares `http`, and else denied.
const WASI_HTTP: &str = "wasi:http/outgoing-handler@";

/// What a component says that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Surface {
    /// All import names, as they are written.
    pub(crate) imports: Vec<String>,
    /// The capabilities among them.
    pub(crate) capabilities: CapabilitySet,
}

/// Reads the names at the component's surface and checks them against the contract and what it declares.
pub(crate) fn admit(
    tool: &str,
    bytes: &[u8],
    declared: CapabilitySet,
) -> Result<Surface, AdmissionError> {
    let (imports, exports) = names(tool, bytes)?;
    let mut is_tool = false;
    for export in exports {
        if let Some((TOOL_EXPORT, version)) = contract_name(&export) {
            require_version(tool, &export, version)?;
            is_tool = true;
        }
    }
    if !is_tool {
        return Err(AdmissionError::NotATool {
            tool: tool.to_owned(),
        });
    }
    let mut capabilities = CapabilitySet::EMPTY;
    for import in &imports {
        if let Some(capability) = known_import(tool, import)? {
            if !declared.contains(capability) {
                return Err(AdmissionError::Undeclared {
                    tool: tool.to_owned(),
                    import: import.clone(),
                    capability,
                });
            }
            capabilities.insert(capability);
        }
        // Every component of some languages brings this along, so that it alone is no wish for the network.
        let brings_http = import.starts_with(WASI_HTTP);
        if brings_http && declared.contains(Capability::Http) {
            capabilities.insert(Capability::Http);
        }
    }
    Ok(Surface {
        imports,
        capabilities,
    })
}

/// Validates all of an untrusted component, so that what is wrong with it is said before anything is compiled.
pub(crate) fn validate(
    tool: &str,
    bytes: &[u8],
    features: WasmFeatures,
) -> Result<(), AdmissionError> {
    let types = Validator::new_with_features(features)
        .validate_all(bytes)
        .map_err(|error| AdmissionError::Invalid {
            tool: tool.to_owned(),
            reason: error.message().to_owned(),
            offset: error.offset() as u64,
        })?;
    let types = types.as_ref();
    let (_, exports) = names(tool, bytes)?;
    for export in exports {
        if !matches!(contract_name(&export), Some((TOOL_EXPORT, _))) {
            continue;
        }
        let wrong = |detail: String| AdmissionError::WrongShape {
            tool: tool.to_owned(),
            detail,
        };
        let Some(wasmparser::component_types::ComponentEntityType::Instance(id)) =
            types.component_item_for_export(&export).map(|item| item.ty)
        else {
            return Err(wrong(format!("its export `{export}` is no instance")));
        };
        let instance = &types[id];
        for function in TOOL_FUNCTIONS {
            let is_function = instance.exports.get(function).is_some_and(|item| {
                matches!(
                    item.ty,
                    wasmparser::component_types::ComponentEntityType::Func(_)
                )
            });
            if !is_function {
                return Err(wrong(format!(
                    "its export `{export}` has no function `{function}`"
                )));
            }
        }
    }
    Ok(())
}

type Names = (Vec<String>, Vec<String>);

/// The import and export names at the top of a component. What lies inside its modules is stepped over.
fn names(tool: &str, bytes: &[u8]) -> Result<Names, AdmissionError> {
    let truncated = |offset: u64| AdmissionError::Truncated {
        tool: tool.to_owned(),
        bytes: bytes.len(),
        offset,
    };
    if !bytes.starts_with(b"\0asm") {
        return Err(AdmissionError::NotWasm {
            tool: tool.to_owned(),
            found: first_bytes(bytes),
        });
    }
    let fault = |error: wasmparser::BinaryReaderError| {
        let offset = error.offset() as u64;
        if error.offset() >= bytes.len() || error.message().contains("unexpected end") {
            return truncated(offset);
        }
        AdmissionError::Invalid {
            tool: tool.to_owned(),
            reason: error.message().to_owned(),
            offset,
        }
    };
    if bytes.len() < HEADER_BYTES {
        return Err(truncated(0));
    }
    let mut parser = Parser::new(0);
    let (mut imports, mut exports) = (Vec::new(), Vec::new());
    let mut position = 0_usize;
    loop {
        let rest = bytes.get(position..).unwrap_or_default();
        let (consumed, payload) = match parser.parse(rest, true).map_err(fault)? {
            Chunk::Parsed { consumed, payload } => (consumed, payload),
            Chunk::NeedMoreData(_) => return Err(truncated(position as u64)),
        };
        position += consumed;
        match payload {
            Payload::Version {
                encoding: Encoding::Module,
                ..
            } => {
                return Err(AdmissionError::CoreModule {
                    tool: tool.to_owned(),
                });
            }
            Payload::ModuleSection {
                unchecked_range, ..
            }
            | Payload::ComponentSection {
                unchecked_range, ..
            } => {
                if unchecked_range.end > bytes.len() {
                    return Err(truncated(unchecked_range.start as u64));
                }
                position = unchecked_range.end;
            }
            Payload::ComponentImportSection(section) => {
                for import in section {
                    imports.push(import.map_err(fault)?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    exports.push(export.map_err(fault)?.name.name.to_owned());
                }
            }
            Payload::End(_) => return Ok((imports, exports)),
            _ => {}
        }
    }
}

fn first_bytes(bytes: &[u8]) -> String {
    match bytes {
        [] => "it is empty".to_owned(),
        _ => {
            let start: Vec<String> = bytes.iter().take(4).map(|b| format!("{b:02x}")).collect();
            format!(
                "it starts with the bytes {} instead of 00 61 73 6d",
                start.join(" ")
            )
        }
    }
}

/// The capability behind an import, none where it needs none; an error where this host does not know it.
fn known_import(tool: &str, import: &str) -> Result<Option<Capability>, AdmissionError> {
    let unknown = || AdmissionError::UnknownImport {
        tool: tool.to_owned(),
        import: import.to_owned(),
    };
    if let Some((interface, version)) = contract_name(import) {
        require_version(tool, import, version)?;
        if ALWAYS_THERE.contains(&interface) {
            return Ok(None);
        }
        return Capability::from_name(interface)
            .map(Some)
            .ok_or_else(unknown);
    }
    let (interface, version) = import.split_once('@').unwrap_or((import, ""));
    let linked = WASI.contains(&interface) && version.starts_with("0.2.");
    linked.then_some(None).ok_or_else(unknown)
}

/// The interface and the version of a name of the contract.
fn contract_name(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix(CONTRACT)?;
    Some(rest.split_once('@').unwrap_or((rest, "none")))
}

fn require_version(tool: &str, place: &str, version: &str) -> Result<(), AdmissionError> {
    if version.starts_with(CONTRACT_LINE) {
        return Ok(());
    }
    Err(AdmissionError::ContractVersion {
        tool: tool.to_owned(),
        place: place.to_owned(),
        found: version.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A component with these imports and this export, each an instance, and a module inside.
    fn component(imports: &[&str], export: &str) -> Vec<u8> {
        let imports: String = imports
            .iter()
            .map(|name| format!("(import \"{name}\" (instance))"))
            .collect();
        let text = format!(
            "(component {imports} (core module (func)) (instance $tool) (export \"{export}\" (instance $tool)))"
        );
        wat::parse_str(text).unwrap()
    }

    const TOOL: &str = "floe:tool/builtin-tool@0.1.0";

    fn refusal(bytes: &[u8], declared: CapabilitySet) -> AdmissionError {
        admit("t", bytes, declared).unwrap_err()
    }

    #[test]
    fn a_tool_is_let_in_with_what_it_imports_and_declares() {
        let bytes = component(
            &[
                "floe:tool/types@0.1.0",
                "floe:tool/output@0.1.7",
                "floe:tool/edits@0.1.0",
                "wasi:io/streams@0.2.9",
                "wasi:sockets/tcp@0.2.3",
                "wasi:http/outgoing-handler@0.2.0",
            ],
            TOOL,
        );
        let surface = admit("t", &bytes, CapabilitySet::all()).unwrap();
        assert_eq!(surface.capabilities.names(), ["edits", "http"]);
        assert_eq!(surface.imports.len(), 6);
    }

    #[test]
    fn requests_by_wasi_are_the_capability_http_of_who_declares_it_and_nothing_of_who_does_not() {
        let bytes = component(&["wasi:http/outgoing-handler@0.2.0"], TOOL);
        for declared in [
            CapabilitySet::EMPTY,
            CapabilitySet::EMPTY.with(Capability::Http),
        ] {
            let surface = admit("t", &bytes, declared).unwrap();
            assert_eq!(surface.capabilities, declared);
        }
    }

    #[test]
    fn what_is_not_declared_is_refused_with_its_name() {
        let bytes = component(&["floe:tool/commands@0.1.0"], TOOL);
        let refused = refusal(&bytes, CapabilitySet::EMPTY.with(Capability::Edits));
        assert_eq!(
            refused.to_string(),
            "`t` imports `floe:tool/commands@0.1.0` but does not declare the capability `commands`. Add `commands` to its manifest, or build it against a world without it"
        );
    }

    #[test]
    fn an_import_that_nobody_has_is_refused_with_its_name() {
        for import in [
            "acme:database/query@1.0.0",
            "wasi:keyvalue/store@0.2.0",
            "wasi:cli/environment@0.3.0",
            "wasi:io/streams",
            "floe:tool/telepathy@0.1.0",
            "plain",
        ] {
            let refused = refusal(&component(&[import], TOOL), CapabilitySet::all());
            assert!(
                matches!(&refused, AdmissionError::UnknownImport { import: named, .. } if named == import),
                "{refused}"
            );
        }
    }

    #[test]
    fn another_version_of_the_contract_names_both_versions_and_the_remedy() {
        let export = component(&[], "floe:tool/builtin-tool@0.2.0");
        let import = component(&["floe:tool/output@1.0.0"], TOOL);
        for (bytes, found) in [(export, "0.2.0"), (import, "1.0.0")] {
            let text = refusal(&bytes, CapabilitySet::all()).to_string();
            for part in [found, "0.1.x", "Rebuild it against floe:tool@0.1.0"] {
                assert!(text.contains(part), "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_tool_no_component_or_no_wasm_is_told_apart() {
        let library = component(&[], "acme:library/api@1.0.0");
        let library = refusal(&library, CapabilitySet::all());
        assert!(matches!(library, AdmissionError::NotATool { .. }));
        let module = refusal(b"\0asm\x01\0\0\0", CapabilitySet::all());
        assert!(matches!(module, AdmissionError::CoreModule { .. }));
        for (bytes, found) in [
            (&b""[..], "it is empty"),
            (b"#!/bin/sh", "23 21 2f 62"),
            (b"\x7fELF", "7f 45 4c 46"),
        ] {
            let text = refusal(bytes, CapabilitySet::all()).to_string();
            assert!(text.contains(found), "{text}");
        }
    }

    #[test]
    fn a_component_cut_anywhere_is_cut_off() {
        let bytes = component(&["floe:tool/output@0.1.0"], TOOL);
        for length in 4..bytes.len() {
            match admit("t", &bytes[..length], CapabilitySet::all()) {
                // Between two sections nothing tells that more was to come; behind the last that counts it is whole.
                Ok(_) => assert!(Validator::new().validate_all(&bytes[..length]).is_ok()),
                Err(AdmissionError::Truncated { .. } | AdmissionError::NotATool { .. }) => {}
                other => panic!("{length}: {other:?}"),
            }
        }
        assert!(admit("t", &bytes, CapabilitySet::all()).is_ok());
    }

    #[test]
    fn a_tool_without_its_functions_has_the_wrong_shape() {
        let bytes = component(&[], TOOL);
        let wrong = validate("t", &bytes, WasmFeatures::default()).unwrap_err();
        assert!(
            wrong.to_string().contains("has no function `definition`"),
            "{wrong}"
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, at: prop::sample::Index, with: u8, length: prop::sample::Index) {
            let _ = admit("t", &bytes, CapabilitySet::all());
            let mut damaged = component(&["floe:tool/output@0.1.0"], TOOL);
            let at = at.index(damaged.len());
            damaged[at] = with;
            let _ = admit("t", &damaged, CapabilitySet::all());
            let _ = validate("t", &damaged, WasmFeatures::default());
            damaged.truncate(length.index(damaged.len()));
            let _ = admit("t", &damaged, CapabilitySet::all());
        }
    }
}
