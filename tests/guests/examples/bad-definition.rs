//! Describes its parameters with something that is no JSON.

use floe_guests::{
    ExecutionContext, Failure, Guest, Permission, ToolDefinition, ToolResult, completed,
    definition, export,
};

struct Tool;

impl Guest for Tool {
    fn definition() -> ToolDefinition {
        ToolDefinition {
            parameters: "{\"type\": \"object\", ".to_owned(),
            ..definition("bad-definition", Permission::None)
        }
    }

    fn execute(_arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
        Ok(completed())
    }

    fn permission_for(_arguments: String) -> Permission {
        Permission::None
    }
}

export!(Tool);
