//! The sandbox under attack: every case of the two tables (E: what a command may not do; S: what a command session must
//! survive) as a row that runs behind every kind of walls, for a host that is root and for one that is an ordinary user.
//!
//! Each trial is a process of its own, started by this program from itself: that process is the host, with a secret in
//! its environment, and a mistake in one row cannot reach another. Everything that a row touches lies in a folder that
//! was made for its trial. Around it stands an oracle: files outside the Workspace that anybody may change as far as
//! their mode goes, and of which nothing at all may have changed when the row is over.

#[path = "../door/mod.rs"]
mod door;
mod oracle;
mod poor_machine;
mod row;
mod rows;
mod stage;
mod trial;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use row::{Walls, Who};

/// Rows wait more than they compute.
const TRIALS_AT_ONCE: usize = 6;

fn main() -> ExitCode {
    if let Some(code) = trial::run_if_asked() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TRIALS_AT_ONCE);
    let theatre = trial::Theatre::open();
    let mut trials = vec![Trial::test(
        "every row of the two tables is here or on the list of those that cannot run",
        || rows::check_complete().map_err(Failed::from),
    )];
    for walls in Walls::ALL {
        let missing = walls.missing();
        for who in Who::ALL {
            trials.extend(trial::trials(&theatre, walls, who, missing.as_deref()));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
