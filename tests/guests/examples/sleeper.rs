//! Writes `begin`, sleeps for its argument `ms` on the clock of WASI, and writes `end`.

use std::time::Duration;

use floe_guests::{ExecutionContext, Failure, ToolResult, completed, number, output, tool};

fn execute(arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
    output::write("begin\n");
    std::thread::sleep(Duration::from_millis(number(&arguments, "ms")));
    output::write("end\n");
    Ok(completed())
}

tool!("sleeper", None, execute);
