//! Runs its argument `cmd` and hands on what that prints until it ends, however long it takes: only the host ends this call sooner.

use floe_guests::commands::{CommandSession, CommandSpec};
use floe_guests::{ExecutionContext, Failure, ToolResult, completed, output, text, tool};

fn execute(arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
    let session = CommandSession::spawn(&CommandSpec {
        command: text(&arguments, "cmd"),
        args: None,
        working_directory: None,
        environment: Vec::new(),
        tty: false,
        raw_output: false,
    })?;
    loop {
        let batch = session.read_output(64 * 1024, u32::MAX)?;
        for chunk in batch.chunks {
            output::write(&String::from_utf8_lossy(&chunk.data));
        }
        if batch.ended {
            return Ok(completed());
        }
    }
}

tool!("waits", Execute, execute);
