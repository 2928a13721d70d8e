//! What a command session must survive, by subject. Where the table leaves a choice, the row's sentence says what was
//! chosen.

mod calls;
mod children;
mod doors;
mod flood;
mod input;
mod leaks;
mod places;
mod script;
mod starts;
mod surroundings;
mod terminal;
mod text;

use std::sync::atomic::{AtomicU32, Ordering};

use floe_sandbox::{ConfinedCommand, Program, Widening, WorkspaceMode};

use crate::row::Row;
use crate::stage::{Session, eventually, processes_with};

/// All rows.
pub(crate) fn rows() -> Vec<Row> {
    [
        calls::ROWS,
        children::ROWS,
        flood::ROWS,
        input::ROWS,
        leaks::ROWS,
        places::ROWS,
        script::ROWS,
        starts::ROWS,
        surroundings::ROWS,
        terminal::ROWS,
        text::ROWS,
    ]
    .concat()
}

/// A number of seconds to sleep that nobody else on this machine sleeps: by it a row finds its processes.
fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("7{:07}.{number:04}", std::process::id())
}

/// Waits until no process has `mark` in its command line.
fn gone(mark: &str) {
    eventually(&format!("the processes with {mark} are gone"), || {
        processes_with(mark) == 0
    });
}

/// A script for the sandbox itself, below the sessions: without a PATH.
fn bare(session: &Session<'_>, script: &str) -> ConfinedCommand {
    ConfinedCommand {
        program: Program::Shell {
            script: script.into(),
        },
        working_directory: "".into(),
        environment: session.sandbox.environment(),
        terminal: None,
        workspace: WorkspaceMode::WorkspaceWrite,
        widening: Widening::default(),
    }
}
