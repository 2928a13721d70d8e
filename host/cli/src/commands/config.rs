//! `floe config`: prints the reference, or checks the files in use.

use crate::arguments::{Config, ConfigAction, ConfigCheck};
use crate::config::{REFERENCE, check};
use crate::exit::{Ending, Status};
use crate::home;
use crate::terminal::{Screen, Style};

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
    let checked = check(&home, &arguments.workspace);
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
                screen.aside(&faults.to_string());
            }
        }
    }
    Ok(status)
}
