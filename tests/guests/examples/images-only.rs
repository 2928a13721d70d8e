//! Returns one image and no text.

use floe_guests::{ExecutionContext, Failure, ToolResult, completed, pixel, tool};

fn execute(_arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
    Ok(ToolResult {
        images: vec![pixel()],
        ..completed()
    })
}

tool!("images-only", None, execute);
