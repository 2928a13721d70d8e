//! Panics where it should describe itself, and where it should name a permission.

use floe_guests::{
    ExecutionContext, Failure, Guest, Permission, ToolDefinition, ToolResult, completed, export,
};

struct Tool;

impl Guest for Tool {
    fn definition() -> ToolDefinition {
        panic!("no words for myself");
    }

    fn execute(_arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
        Ok(completed())
    }

    fn permission_for(_arguments: String) -> Permission {
        panic!("no idea");
    }
}

export!(Tool);
