//! Does nothing and says so by saying nothing.

use floe_guests::{ExecutionContext, Failure, ToolResult, completed, tool};

fn execute(_arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
    Ok(completed())
}

tool!("noop", None, execute);
