//! One file a command: each turns its arguments into work and its work into a status.

mod call;
mod completions;
mod config;
pub(crate) mod doctor;
mod mcp;
mod precompile;
mod run;
mod tools;
mod trace;
mod undo;

use crate::arguments::Command;
use crate::exit::{Ending, Fault};
use crate::terminal::{Keep, Screen, Style, visible};

/// Carries a command out.
pub(crate) fn execute(command: Command) -> Ending {
    match command {
        Command::Run(arguments) => run::execute(&arguments),
        Command::Call(arguments) => call::execute(&arguments),
        Command::Mcp(arguments) => mcp::execute(&arguments),
        Command::Tools(arguments) => tools::execute(&arguments),
        Command::Trace(arguments) => trace::execute(arguments),
        Command::Undo(arguments) => undo::execute(&arguments),
        Command::Doctor(arguments) => doctor::execute(&arguments),
        Command::Config(arguments) => config::execute(arguments),
        Command::Completions(arguments) => completions::execute(arguments),
        Command::Precompile(arguments) => precompile::execute(&arguments),
    }
}

/// Says which commands were still running when their Session ended.
fn say_ended_commands(closed: &floe_session::Closed, screen: &Screen) {
    let warning = screen.aside_paint().paint(Style::Warning, "warning:");
    for command in &closed.ended_commands {
        let label = visible(&command.label, Keep::Nothing);
        screen.aside(&format!(
            "{warning} `{label}` ({}) was still running and was ended",
            command.process_id
        ));
    }
}

/// Says why the record of a Session is not complete, where it is not.
fn say_trace_fault(closed: &floe_session::Closed, screen: &Screen) {
    if let Some(fault) = &closed.trace_fault {
        let warning = screen.aside_paint().paint(Style::Warning, "warning:");
        let fault = visible(fault, Keep::LinesAndTabs);
        screen.aside(&format!("{warning} the Trace is not complete: {fault}"));
    }
}

/// The async runtime that does a command's I/O.
fn host() -> Result<tokio::runtime::Runtime, Fault> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| {
            Fault::failed(format!("The threads of the host cannot start: {error}. Raise the limit of processes (`ulimit -u`)."))
        })
}
