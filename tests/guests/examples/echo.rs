//! Writes its argument `text`.

use floe_guests::{ExecutionContext, Failure, ToolResult, completed, output, text, tool};

fn execute(arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
    output::write(&text(&arguments, "text"));
    Ok(completed())
}

tool!("echo", None, execute);
