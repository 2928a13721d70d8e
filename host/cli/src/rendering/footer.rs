//! The last lines of a run: how much happened, where its record is, and how to check that record.

use floe_session::Closed;

use crate::terminal::{Keep, Paint, Style, visible};

/// The lines for standard error.
pub(crate) fn footer(
    turns: u64,
    calls: u64,
    session: &str,
    closed: &Closed,
    paint: Paint,
) -> String {
    let label = |text: &str| paint.paint(Style::Quiet, format!("{text:<7}"));
    let mut lines = format!("\n{} {}\n", label("Did"), counts(turns, calls));
    if let Some(trace) = &closed.trace {
        lines.push_str(&format!(
            "{} {}\n",
            label("Trace"),
            visible(&trace.display().to_string(), Keep::Nothing)
        ));
    }
    if let Some(head) = &closed.head {
        lines.push_str(&format!("{} {}\n", label("Hash"), head.hash));
    }
    if closed.trace_fault.is_none() {
        lines.push_str(&format!(
            "{} floe trace verify {session}\n",
            label("Verify")
        ));
    }
    lines
}

fn counts(turns: u64, calls: u64) -> String {
    let plural =
        |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    format!("{}, {}", plural(turns, "turn"), plural(calls, "call"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!(counts(1, 0), "1 turn, 0 calls");
    }
}
