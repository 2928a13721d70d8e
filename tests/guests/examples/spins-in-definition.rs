//! Never finishes describing itself.

use floe_guests::{
    ExecutionContext, Failure, Guest, Permission, ToolDefinition, ToolResult, completed, export,
};

struct Tool;

impl Guest for Tool {
    fn definition() -> ToolDefinition {
        loop {
            std::hint::black_box(());
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
