//! What is measured beside other programs: a table of its own, in which each line is one task and what each took for it. The runs are
//! interleaved, so that what disturbs the machine disturbs all of them.

use std::fmt::Write as _;
use std::time::Duration;

use crate::figures::time;

/// Times of one task.
pub(crate) struct Task {
    pub(crate) what: String,
    pub(crate) found: u64,
    pub(crate) found_by_rg: u64,
    /// None where it was not asked.
    pub(crate) found_by_lines: Option<u64>,
    pub(crate) floe: Vec<Duration>,
    pub(crate) rg: Vec<Duration>,
    /// Line by line with the `regex` crate.
    pub(crate) lines: Vec<Duration>,
}

impl Task {
    pub(crate) fn new(what: String) -> Task {
        Task {
            what,
            found: 0,
            found_by_rg: 0,
            found_by_lines: None,
            floe: Vec::new(),
            rg: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Whether all found as much: what found something else did other work.
    pub(crate) fn is_comparable(&self) -> bool {
        self.found == self.found_by_rg && self.found_by_lines.is_none_or(|it| it == self.found)
    }

    /// How many times as long as `rg`, of the medians.
    pub(crate) fn ratio(&self) -> f64 {
        median(&self.floe).as_secs_f64() / median(&self.rg).as_secs_f64()
    }

    /// The same beside the loop, where that was asked.
    pub(crate) fn ratio_to_lines(&self) -> Option<f64> {
        let is_measured = !self.lines.is_empty();
        is_measured.then(|| median(&self.floe).as_secs_f64() / median(&self.lines).as_secs_f64())
    }

    /// How much was found: one number, or that of each where they differ.
    pub(crate) fn found(&self) -> String {
        let Task {
            found, found_by_rg, ..
        } = self;
        match (self.is_comparable(), self.found_by_lines) {
            (true, _) => found.to_string(),
            (false, None) => format!("{found}, `rg` {found_by_rg}"),
            (false, Some(lines)) => format!("{found}, `rg` {found_by_rg}, line by line {lines}"),
        }
    }
}

/// The table, in the form of docs/performance.md.
pub(crate) fn table(what: &str, tasks: &[Task]) -> String {
    let mut table = format!(
        "| {what} | found | Floe | `rg -j1` | Floe ÷ `rg` | line by line |\n|---|---|---|---|---|---|\n"
    );
    for task in tasks {
        let ratio = match task.is_comparable() {
            true => format!("{:.2}", task.ratio()),
            false => "not comparable".to_owned(),
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {ratio} | {} |",
            task.what,
            task.found(),
            time_of(&task.floe),
            time_of(&task.rg),
            time_of(&task.lines),
        );
    }
    table
}

fn time_of(times: &[Duration]) -> String {
    match times {
        [] => "–".to_owned(),
        times => time(median(times)),
    }
}

/// The middle one of several times.
pub(crate) fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[(times.len() - 1) / 2]
}
