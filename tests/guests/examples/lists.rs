//! Writes the names in the root of the Workspace, one a line.

use floe_guests::{ExecutionContext, Failure, ToolResult, completed, output, tool, workspace};

fn execute(_arguments: String, _context: ExecutionContext) -> Result<ToolResult, Failure> {
    for entry in workspace::list_directory(".")? {
        output::write(&entry.path);
        output::write("\n");
    }
    Ok(completed())
}

tool!("lists", ReadOnly, execute);
