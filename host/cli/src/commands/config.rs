//! `floe config`: prints the reference, or checks the files in use.

use crate::arguments::{Config, ConfigAction, ConfigCheck};
use crate::built_in;
use crate::config::{REFERENCE, check};
use crate::exit::{Ending, Fault, Status};
use crate::home;
use crate::terminal::{Keep, Screen, Style, visible};

/// Prints the reference, or checks.
pub(crate) fn execute(arguments: Config) -> Ending {
    match arguments.action {
        None => {
            Screen::of_process().result(REFERENCE);
            Ok(Status::Completed)
        }
        Some(ConfigAction::Check(arguments)) => check_files(&arguments),
    }
}

/// Says of each file whether it holds. A fault is a usage error, as it would be for the command that reads the file.
fn check_files(arguments: &ConfigCheck) -> Ending {
    let home = home::from_environment()?;
    let screen = Screen::of_process();
    let paint = screen.result_paint();
    if !arguments.workspace.is_dir() {
        return Err(Fault::usage(format!(
            "{} is no folder; name the Workspace whose configuration is to be checked.",
            arguments.workspace.display()
        )));
    }
    let checked = check(&home, &arguments.workspace, &built_in::names()?);
    if checked.is_empty() {
        screen.result(&format!(
            "No configuration file was found; the defaults hold. Yours would be {}.\n",
            home.config().display()
        ));
    }
    let mut status = Status::Completed;
    for (file, result) in checked {
        match result {
            Ok(()) => screen.result(&format!(
                "{} {}\n",
                paint.paint(Style::Good, "ok   "),
                file.display()
            )),
            Err(faults) => {
                status = Status::Usage;
                screen.result(&format!(
                    "{} {}\n",
                    paint.paint(Style::Bad, "fault"),
                    file.display()
                ));
                screen.aside(&visible(&faults.to_string(), Keep::LinesAndTabs));
            }
        }
    }
    Ok(status)
}
