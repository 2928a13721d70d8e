//! Writes `text`, and returns an image and the stop reason `failed`.

use floe_guests::{
    ExecutionContext, Failure, StopReason, ToolResult, completed, output, pixel, tool,
};

fn execute(_arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
    output::write("text");
    Ok(ToolResult {
        stop_reason: Some(StopReason::Failed),
        images: vec![pixel()],
        ..completed()
    })
}

tool!("images-failed", None, execute);
