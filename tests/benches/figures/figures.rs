//! The table: every single sample of a figure is kept, so that its quantiles are those of the samples and not of their averages.

use std::fmt::Write as _;
use std::time::Duration;

use criterion::{Criterion, SamplingMode};

use crate::beside::Task;

/// What a figure should come to.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// Half of the samples take at most so long.
    Median(Duration),
    /// Nine of ten samples take at most so long.
    NinetiethPercentile(Duration),
    /// It is here to be compared with.
    None,
}

/// How much is measured.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// Samples that are taken first and thrown away.
    pub(crate) warm_ups: u64,
    /// For how long criterion measures.
    pub(crate) measure: Duration,
    /// Into how many batches criterion groups the samples.
    pub(crate) batches: usize,
}

impl Effort {
    /// For what takes microseconds: comes to far more than 10,000 samples.
    pub(crate) const SHORT: Effort = Effort {
        warm_ups: 1_000,
        measure: Duration::from_secs(4),
        batches: 50,
    };
    /// For what takes milliseconds: several hundred samples or more.
    pub(crate) const LONG: Effort = Effort {
        warm_ups: 20,
        measure: Duration::from_secs(5),
        batches: 50,
    };
}

/// One line of the table.
struct Row {
    what: String,
    samples: usize,
    median: Duration,
    /// At 90 and 99 of a hundred samples; a difference of two medians has neither.
    tail: Option<[Duration; 2]>,
    goal: Goal,
}

/// A line of the table for what is no duration.
struct Quantity {
    what: String,
    value: String,
    /// In words, and whether it was met.
    goal: Option<(String, bool)>,
}

/// A line of the table.
enum Line {
    Row(Row),
    Quantity(Quantity),
}

/// What was measured so far.
pub(crate) struct Figures<'run> {
    criterion: &'run mut Criterion,
    lines: Vec<Line>,
    /// Further tables, for what is measured beside other programs.
    tables: Vec<String>,
}

impl<'run> Figures<'run> {
    pub(crate) fn new(criterion: &'run mut Criterion) -> Figures<'run> {
        Figures {
            criterion,
            lines: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// Whether the command line asks for a figure that criterion does not drive.
    pub(crate) fn wants(&self, what: &str) -> bool {
        let filter = std::env::args().skip(1).find(|it| !it.starts_with('-'));
        filter.is_none_or(|filter| what.contains(&filter))
    }

    /// Measures a figure: `batch` takes so many samples, each on its own. Returns the median.
    pub(crate) fn measure(
        &mut self,
        what: &str,
        goal: Goal,
        effort: Effort,
        mut batch: impl FnMut(u64) -> Vec<Duration>,
    ) -> Duration {
        let mut cold = true;
        let mut samples = Vec::new();
        let mut group = self.criterion.benchmark_group("figures");
        group
            .sampling_mode(SamplingMode::Flat)
            .sample_size(effort.batches)
            .warm_up_time(Duration::from_millis(500))
            .measurement_time(effort.measure);
        group.bench_function(what, |bencher| {
            if std::mem::take(&mut cold) {
                batch(effort.warm_ups);
            }
            bencher.iter_custom(|count| {
                let taken = batch(count);
                let total = taken.iter().sum();
                samples.extend(taken);
                total
            });
        });
        group.finish();
        self.add(what, goal, samples)
    }

    /// Adds a figure that was measured beside another. Returns the median.
    pub(crate) fn add(&mut self, what: &str, goal: Goal, mut samples: Vec<Duration>) -> Duration {
        // A filter on the command line leaves figures out.
        if samples.is_empty() {
            return Duration::ZERO;
        }
        samples.sort_unstable();
        let quantile = |hundredths: usize| samples[(samples.len() - 1) * hundredths / 100];
        let median = quantile(50);
        self.lines.push(Line::Row(Row {
            what: what.to_owned(),
            samples: samples.len(),
            median,
            tail: Some([quantile(90), quantile(99)]),
            goal,
        }));
        median
    }

    /// Adds memory, in KiB, which is measured once; `most` is the goal.
    pub(crate) fn add_memory(&mut self, what: &str, most: Option<u64>, kib: u64) {
        let mebibytes = |kib: u64| format!("{:.1} MiB", kib as f64 / 1024.0);
        self.lines.push(Line::Quantity(Quantity {
            what: what.to_owned(),
            value: mebibytes(kib),
            goal: most.map(|most| (format!("≤ {}", mebibytes(most)), kib <= most)),
        }));
    }

    /// Adds how many times as long as ripgrep the tasks took, in the middle and at most, and at most beside the loop line by line.
    pub(crate) fn add_ratios(&mut self, what: &str, tasks: &[Task]) {
        let tasks = || tasks.iter().filter(|task| task.is_comparable());
        let mut ratios: Vec<f64> = tasks().map(Task::ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let of_lines = tasks().filter_map(Task::ratio_to_lines);
        for (which, ratio, most) in [
            (
                "beside `rg -j1`, median of the patterns",
                ratios.get(ratios.len() / 2).copied(),
                1.0,
            ),
            (
                "beside `rg -j1`, worst pattern",
                ratios.last().copied(),
                2.0,
            ),
            (
                "beside the loop line by line, worst pattern",
                of_lines.max_by(f64::total_cmp),
                1.0,
            ),
        ] {
            let Some(ratio) = ratio else { continue };
            self.lines.push(Line::Quantity(Quantity {
                what: format!("{what} {which}"),
                value: format!("{ratio:.2} ×"),
                goal: Some((format!("≤ {most} ×"), ratio <= most)),
            }));
        }
    }

    /// Adds a table that stands behind the others.
    pub(crate) fn add_table(&mut self, table: String) {
        self.tables.push(table);
    }

    /// Adds what one median is above another.
    pub(crate) fn add_difference(
        &mut self,
        what: &str,
        goal: Goal,
        median: Duration,
        above: Duration,
    ) {
        if median.is_zero() || above.is_zero() {
            return;
        }
        self.lines.push(Line::Row(Row {
            what: what.to_owned(),
            samples: 0,
            median: median.saturating_sub(above),
            tail: None,
            goal,
        }));
    }

    /// The table, in the form of docs/performance.md.
    pub(crate) fn table(&self) -> String {
        let mut table = String::from(
            "| what | goal | median | p90 | p99 | samples | |\n|---|---|---|---|---|---|---|\n",
        );
        for line in &self.lines {
            let row = match line {
                Line::Row(row) => row,
                Line::Quantity(Quantity { what, value, goal }) => {
                    let (goal, verdict) = match goal {
                        None => ("–", ""),
                        Some((goal, true)) => (goal.as_str(), "met"),
                        Some((goal, false)) => (goal.as_str(), "missed"),
                    };
                    // Writing to a string does not fail.
                    let _ = writeln!(
                        table,
                        "| {what} | {goal} | {value} | – | – | 1 | {verdict} |"
                    );
                    continue;
                }
            };
            let [p90, p99] = row
                .tail
                .map_or([String::from("–"), String::from("–")], |tail| {
                    tail.map(time)
                });
            let samples = match row.samples {
                0 => "–".to_owned(),
                samples => samples.to_string(),
            };
            let _ = writeln!(
                table,
                "| {} | {} | {} | {p90} | {p99} | {samples} | {} |",
                row.what,
                row.goal(),
                time(row.median),
                row.verdict(),
            );
        }
        for further in &self.tables {
            table.push('\n');
            table.push_str(further);
        }
        table
    }
}

impl Row {
    fn goal(&self) -> String {
        match self.goal {
            Goal::Median(limit) => format!("≤ {} median", time(limit)),
            Goal::NinetiethPercentile(limit) => format!("≤ {} p90", time(limit)),
            Goal::None => "–".to_owned(),
        }
    }

    fn verdict(&self) -> &'static str {
        let met = match self.goal {
            Goal::Median(limit) => self.median <= limit,
            Goal::NinetiethPercentile(limit) => self.tail.is_some_and(|[p90, _]| p90 <= limit),
            Goal::None => return "",
        };
        if met { "met" } else { "missed" }
    }
}

/// Three digits and a unit.
pub(crate) fn time(time: Duration) -> String {
    let nanoseconds = time.as_secs_f64() * 1e9;
    let (value, unit) = match nanoseconds {
        ..1e3 => (nanoseconds, "ns"),
        ..1e6 => (nanoseconds / 1e3, "µs"),
        ..1e9 => (nanoseconds / 1e6, "ms"),
        _ => (nanoseconds / 1e9, "s"),
    };
    let decimals = match value {
        _ if value.fract() == 0.0 => 0,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}
