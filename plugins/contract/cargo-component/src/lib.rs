//! The echo tool with cargo-component 0.21, which generates `bindings` from the wit folder at each build.

#[allow(warnings)]
#[rustfmt::skip]
mod bindings;

use bindings::exports::floe::tool::builtin_tool::{
    ExecutionContext, Failure, Guest, Permission, ToolDefinition, ToolResult,
};
use bindings::floe::tool::types::ModelClass;
use bindings::floe::tool::{output, workspace};
use serde_json::{json, Value};

struct Echo;

impl Guest for Echo {
    fn definition() -> ToolDefinition {
        ToolDefinition {
            name: "echo_cargo_component".into(),
            aliases: vec![],
            description: "Echoes a text and counts the entries of a folder.".into(),
            parameters: json!({
                "type": "object",
                "properties": {"text": {"type": "string"}, "path": {"type": "string"}},
                "required": ["text"],
                "additionalProperties": false,
            })
            .to_string(),
            permission: Permission::ReadOnly,
            permission_varies: false,
            for_model: ModelClass::Any,
            timeout_ms: None,
            max_output_length: None,
            truncation: None,
            output_schema: None,
            metadata: vec![],
        }
    }

    fn execute(arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
        let arguments: Value =
            serde_json::from_str(&arguments).expect("the host checks the arguments");
        output::write("echo: ");
        output::write(arguments["text"].as_str().unwrap_or_default());
        output::write("\n");
        // A failure of the host passes as it is.
        let entries = workspace::list_directory(arguments["path"].as_str().unwrap_or("."))?;
        let names: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
        Ok(ToolResult {
            stop_reason: None,
            note: Some(format!("[{} entries]", names.len())),
            images: vec![],
            structured: Some(json!({ "entries": names }).to_string()),
            metadata: vec![],
        })
    }

    fn permission_for(_arguments: String) -> Permission {
        Permission::ReadOnly
    }
}

bindings::export!(Echo with_types_in bindings);
