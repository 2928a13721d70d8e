//! `floe trace`: lists, shows and verifies what Sessions left behind. It never writes.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use floe_protocol::Home;
use floe_trace::{TraceError, VerifyTarget};

use crate::arguments::{OutputForm, Trace, TraceList, TraceShow, TraceVerify};
use crate::exit::{Ending, Fault, Status};
use crate::home;
use crate::rendering;
use crate::terminal::{Screen, Style};

/// Lists, shows or verifies.
pub(crate) fn execute(arguments: Trace) -> Ending {
    let home = home::from_environment()?;
    match arguments {
        Trace::List(arguments) => list(&home, &arguments),
        Trace::Show(arguments) => show(&home, &arguments),
        Trace::Verify(arguments) => verify(&home, arguments),
    }
}

fn list(home: &Home, arguments: &TraceList) -> Ending {
    let summaries = floe_trace::list(home).map_err(fault)?;
    let screen = Screen::of_process();
    match arguments.output {
        OutputForm::Json => screen.json_result(&json(&summaries)?),
        OutputForm::Text if summaries.is_empty() => {
            screen.aside("There are no Traces yet; `floe run` and `floe call` leave one each.")
        }
        OutputForm::Text => screen.result(&rendering::traces(&summaries, screen.result_paint())),
    }
    Ok(Status::Completed)
}

fn show(home: &Home, arguments: &TraceShow) -> Ending {
    let screen = Screen::of_process();
    let mut status = Status::Completed;
    for file in files(home, &arguments.target)? {
        match arguments.output {
            OutputForm::Json => {
                for line in floe_trace::raw_lines(&file).map_err(fault)? {
                    match line {
                        Ok(line) => {
                            screen.json_result(&format!("{}\n", String::from_utf8_lossy(&line)))
                        }
                        Err(damaged) => {
                            status = Status::Failed;
                            screen.aside(&format!("{}: {damaged}", file.display()));
                        }
                    }
                    if screen.reader_gone().is_cancelled() {
                        return Ok(status);
                    }
                }
            }
            OutputForm::Text => {
                for record in floe_trace::read(&file).map_err(fault)? {
                    match record {
                        Ok(record) => screen.result(&format!("{}\n", floe_trace::show(&record))),
                        Err(damaged) => {
                            status = Status::Failed;
                            screen.aside(&format!("{}: {damaged}", file.display()));
                        }
                    }
                    if screen.reader_gone().is_cancelled() {
                        return Ok(status);
                    }
                }
            }
        }
    }
    Ok(status)
}

fn verify(home: &Home, arguments: TraceVerify) -> Ending {
    let target = if is_file(&arguments.target) {
        VerifyTarget::File(arguments.target)
    } else {
        VerifyTarget::Session {
            home,
            id: name(&arguments.target),
        }
    };
    let verified = floe_trace::verify(&target, arguments.head.as_deref()).map_err(fault)?;
    let screen = Screen::of_process();
    for fault in &verified.faults {
        screen.untrusted_result(&format!("{fault}\n"));
    }
    let paint = screen.result_paint();
    let mut summary = String::new();
    // Writing to a String cannot fail.
    let _ = if verified.is_sound() {
        write!(
            summary,
            "{}: {} records, {}",
            paint.paint(Style::Good, "verified"),
            verified.records,
            verified.end
        )
    } else {
        let faults = verified.faults.len();
        write!(
            summary,
            "{}: {faults} fault(s), {} records fit",
            paint.paint(Style::Bad, "not verified"),
            verified.records
        )
    };
    if verified.healed > 0 {
        let _ = write!(summary, ", {} torn line(s) healed", verified.healed);
    }
    if let Some(hash) = &verified.last_hash {
        let _ = write!(summary, ", last hash {hash}");
    }
    screen.result(&format!("{summary}\n"));
    Ok(if verified.is_sound() {
        Status::Completed
    } else {
        Status::Failed
    })
}

/// The files that a target names: a file stands for itself, anything else is a Session.
fn files(home: &Home, target: &Path) -> Result<Vec<PathBuf>, Fault> {
    if is_file(target) {
        return Ok(vec![target.to_owned()]);
    }
    Ok(floe_trace::find(home, &name(target)).map_err(fault)?.files)
}

/// A Session's name has neither a folder nor an ending; what has one of them is a file, also where it is missing.
fn is_file(target: &Path) -> bool {
    target.is_file()
        || target.components().count() > 1
        || target.extension() == Some(OsStr::new("jsonl"))
}

fn name(target: &Path) -> String {
    target.to_string_lossy().into_owned()
}

fn fault(error: TraceError) -> Fault {
    Fault::usage(error.to_string())
}

fn json(value: &impl serde::Serialize) -> Result<String, Fault> {
    serde_json::to_string_pretty(value)
        .map(|text| format!("{text}\n"))
        .map_err(|error| Fault::failed(format!("The list cannot be written as JSON: {error}.")))
}
