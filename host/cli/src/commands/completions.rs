//! `floe completions`: a script that a shell loads.

use clap::CommandFactory as _;

use crate::arguments::{Arguments, Completions};
use crate::exit::{Ending, Status};
use crate::terminal::Screen;

/// Prints the script.
pub(crate) fn execute(arguments: Completions) -> Ending {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Arguments::command(),
        "floe",
        &mut script,
    );
    Screen::of_process().result(&String::from_utf8_lossy(&script));
    Ok(Status::Completed)
}
