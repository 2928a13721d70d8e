//! The `floe` command: reads arguments and configuration, wires the host's crates together, and renders what happens.
//!
//! It decides nothing about a call: every tool runs through the Session's Environment, as on every other surface.

mod approval;
mod arguments;
mod built_in;
mod children;
mod commands;
mod config;
mod exit;
mod grants;
mod home;
mod model;
mod rendering;
mod setup;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::Arguments;
use crate::exit::Fault;
use crate::terminal::{Keep, lost_results, visible};

fn main() -> ExitCode {
    // A command's walls are built by this same binary. That must come first: the helper has one thread and no runtime.
    floe_sandbox::helper_main();
    let arguments = Arguments::parse();
    let ending = commands::execute(arguments.command).and_then(|status| match lost_results() {
        None => Ok(status),
        Some(reason) => Err(Fault::failed(format!(
            "The results cannot be written to standard output: {reason}."
        ))),
    });
    match ending {
        Ok(status) => ExitCode::from(status.code()),
        Err(fault) => {
            // A message may quote a file of a project that nobody has looked at.
            eprintln!("floe: {}", visible(&fault.to_string(), Keep::LinesAndTabs));
            ExitCode::from(fault.status.code())
        }
    }
}
