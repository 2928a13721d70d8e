//! Creates a file through `edits` and says what came of it, or lets the host's failure pass.

use floe_guests::edits::Transaction;
use floe_guests::{ExecutionContext, Failure, ToolResult, completed, output, tool};

fn execute(_arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
    let transaction = Transaction::begin()?;
    transaction.stage_create("hello.txt", b"hello")?;
    match transaction.commit() {
        Ok(changes) => output::write(&format!("{} changes", changes.len())),
        Err(failures) => output::write(&format!("{} failures", failures.len())),
    };
    Ok(completed())
}

tool!("edits-files", Write, execute);
