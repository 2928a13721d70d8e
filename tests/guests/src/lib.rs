//! What the guests for tests share: the bindings of the contract and short ways to describe a tool and to end a call. A guest
//! uses the bindings directly and not the SDK, so that it can do what the SDK would never do.

wit_bindgen::generate!({
    path: "../../wit",
    world: "tool",
    pub_export_macro: true,
    default_bindings_module: "floe_guests",
});

pub use exports::floe::tool::builtin_tool::{
    ExecutionContext, Failure, Guest, Permission, ToolDefinition, ToolResult,
};
pub use floe::tool::types::{Image, ModelClass, StopReason};
pub use floe::tool::{
    cancellation, commands, edits, http, interaction, language_server, log, output, session_state,
    subagents, vision, web_search, workspace,
};
pub use serde_json;

/// A definition that takes any object.
pub fn definition(name: &str, permission: Permission) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        aliases: Vec::new(),
        description: format!("The fixture `{name}`."),
        parameters: r#"{"type":"object"}"#.to_owned(),
        permission,
        permission_varies: false,
        for_model: ModelClass::Any,
        timeout_ms: None,
        max_output_length: None,
        truncation: None,
        output_schema: None,
        metadata: Vec::new(),
    }
}

/// A result that says nothing, which counts as completed.
pub fn completed() -> ToolResult {
    ToolResult {
        stop_reason: None,
        note: None,
        images: Vec::new(),
        structured: None,
        metadata: Vec::new(),
    }
}

/// A failure with that message.
pub fn failure(message: &str) -> Failure {
    Failure {
        code: "failed".to_owned(),
        message: message.to_owned(),
        hint: None,
        retryable: false,
    }
}

/// The smallest PNG there is: one transparent pixel.
pub fn pixel() -> Image {
    Image {
        mime_type: "image/png".to_owned(),
        data: vec![
            0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
            0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00,
            0x00, 0x1f, 0x15, 0xc4, 0x89, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78,
            0x9c, 0x63, 0x00, 0x01, 0x00, 0x00, 0x05, 0x00, 0x01, 0x0d, 0x0a, 0x2d, 0xb4, 0x00,
            0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
        ],
    }
}

/// One field of the arguments, where it is a string.
pub fn text(arguments: &str, field: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    value[field].as_str().unwrap_or_default().to_owned()
}

/// One field of the arguments, where it is a number.
pub fn number(arguments: &str, field: &str) -> u64 {
    let value: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    value[field].as_u64().unwrap_or_default()
}

/// Makes a tool of a name, a permission and a function.
#[macro_export]
macro_rules! tool {
    ($name:literal, $permission:ident, $execute:expr) => {
        struct Tool;

        impl $crate::Guest for Tool {
            fn definition() -> $crate::ToolDefinition {
                $crate::definition($name, $crate::Permission::$permission)
            }

            fn execute(
                arguments: String,
                context: $crate::ExecutionContext,
            ) -> Result<$crate::ToolResult, $crate::Failure> {
                $execute(arguments, context)
            }

            fn permission_for(_arguments: String) -> $crate::Permission {
                $crate::Permission::$permission
            }
        }

        $crate::export!(Tool);
    };
}
