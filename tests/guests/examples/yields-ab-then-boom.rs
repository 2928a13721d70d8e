//! Writes `ab` and fails with the message `boom`.

use floe_guests::{ExecutionContext, Failure, ToolResult, failure, output, tool};

fn execute(_arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
    output::write("ab");
    Err(failure("boom"))
}

tool!("yields-ab-then-boom", None, execute);
