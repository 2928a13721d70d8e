//! The tools that are part of the binary: each a component, its compiled form and what it said about itself when it was
//! compiled, so that listing them runs nothing.

use floe_environment::{RegisteredTool, Registry};
use floe_protocol::ToolDefinition;
use floe_runtime::{Capability, CapabilitySet, Component, ComponentSource, Runtime};
use serde::{Deserialize, Serialize};

use crate::exit::Fault;

/// A tool in the binary.
struct BuiltIn {
    /// A [`Description`] as JSON.
    description: &'static str,
    /// The component.
    wasm: &'static [u8],
    /// The component compiled for the baseline of this target.
    compiled: &'static [u8],
}

/// The tools of this binary; none where it was built without them.
const BUILT_IN: &[BuiltIn] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// What to do about a binary without tools.
pub(crate) const MISSING: &str =
    "This binary was built without tools. Build it with `make build`, which compiles them in.";

/// `NAME.json`: what is known about a compiled component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    /// What the tool says about itself.
    pub(crate) definition: ToolDefinition,
    /// The capabilities that it imports, by name.
    pub(crate) capabilities: Vec<String>,
    /// SHA-256 (hex) of the component.
    pub(crate) sha256: String,
    /// SHA-256 (hex) of the file that it was made from.
    pub(crate) source_sha256: String,
}

impl Description {
    fn declared(&self) -> CapabilitySet {
        self.capabilities
            .iter()
            .filter_map(|name| Capability::from_name(name))
            .collect()
    }
}

/// The names of the built-in tools.
pub(crate) fn names() -> Result<Vec<String>, Fault> {
    BUILT_IN
        .iter()
        .map(|tool| Ok(describe(tool)?.definition.name))
        .collect()
}

/// The built-in tools as this runtime takes them. Nothing is compiled or run.
pub(crate) fn load(runtime: &Runtime) -> Result<Vec<(Component, Description)>, Fault> {
    BUILT_IN
        .iter()
        .map(|tool| {
            let description = describe(tool)?;
            let source = ComponentSource::Precompiled {
                cwasm: tool.compiled,
                wasm: tool.wasm,
            };
            let component = runtime
                .load(&description.definition.name, source, description.declared())
                .map_err(|error| damaged(&error.to_string()))?;
            Ok((component, description))
        })
        .collect()
}

/// The registry of a host that has the built-in tools and no others.
pub(crate) fn registry(runtime: &Runtime) -> Result<Registry, Fault> {
    let mut registry = Registry::new();
    let switch = std::env::var("FLOE_LSP_ENABLED").unwrap_or_default();
    for (component, description) in load(runtime)? {
        if description.definition.name == "lsp" && is_off(&switch) {
            continue;
        }
        let tool = RegisteredTool::component(
            runtime.clone(),
            component,
            description.definition,
            description.sha256,
        );
        registry
            .insert(tool)
            .map_err(|error| damaged(&error.to_string()))?;
    }
    Ok(registry)
}

/// Whether a variable switches something off that is on without it.
fn is_off(value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    ["0", "false", "no", "off"].contains(&value.as_str())
}

fn describe(tool: &BuiltIn) -> Result<Description, Fault> {
    serde_json::from_str(tool.description)
        .map_err(|error| damaged(&format!("a description in it is not understood: {error}")))
}

fn damaged(reason: &str) -> Fault {
    Fault::failed(format!(
        "The tools in this binary cannot be used: {reason}. Build it again with `make build`."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_off_by_four_words_and_on_by_all_else() {
        for off in ["0", "false", "No", " OFF "] {
            assert!(is_off(off), "{off}");
        }
        for on in ["", "1", "true", "yes", "on", "maybe"] {
            assert!(!is_off(on), "{on}");
        }
    }
}
