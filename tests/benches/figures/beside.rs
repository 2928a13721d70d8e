//! What is measured beside other programs: a table of its own, in which each line is one task and what each took for it. The runs are
//! interleaved, so that what disturbs the machine disturbs all of them.

use std::fmt::Write as _;
use std::time::Duration;

use crate::figures::time;

/// Times of one task.
pub(crate) struct Task {
    pub(crate) what: String,
    /// What all of them found, and agree on.
    pub(crate) found: u64,
    pub(crate) floe: Vec<Duration>,
    pub(crate) rg: Vec<Duration>,
    /// Line by line with the `regex` crate; empty where that finds something else.
    pub(crate) lines: Vec<Duration>,
}

impl Task {
    pub(crate) fn new(what: String) -> Task {
        Task {
            what,
            found: 0,
            floe: Vec::new(),
            rg: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// How many times as long as `rg`, of the medians.
    pub(crate) fn ratio(&self) -> f64 {
        median(&self.floe).as_secs_f64() / median(&self.rg).as_secs_f64()
    }
}

/// The table, in the form of docs/performance.md.
pub(crate) fn table(what: &str, tasks: &[Task]) -> String {
    let mut table = format!(
        "| {what} | found | Floe | `rg -j1` | Floe ÷ `rg` | line by line |\n|---|---|---|---|---|---|\n"
    );
    for task in tasks {
        let lines = match task.lines.as_slice() {
            [] => "–".to_owned(),
            lines => time(median(lines)),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {:.2} | {lines} |",
            task.what,
            task.found,
            time(median(&task.floe)),
            time(median(&task.rg)),
            task.ratio(),
        );
    }
    table
}

/// The middle one of several times.
pub(crate) fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[(times.len() - 1) / 2]
}
