//! What `chars` asks for, how long to collect afterwards, and the words for it. Pure.

use floe_tool::commands::Status;
use floe_tool::{Failure, Outcome};
use std::time::Duration;

const INTERRUPT: char = '\u{3}';
const LEAST_MS: f64 = 250.0;
const WRITE_DEFAULT_MS: f64 = 250.0;
const POLL_DEFAULT_MS: f64 = 5_000.0;
/// What is left of the time of a call for its end.
const RESERVE_MS: f64 = 1_000.0;

/// What is to be done before collecting output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Poll,
    Interrupt,
    Write(String),
}

impl Action {
    /// What `chars` asks for, or why it asks for nothing that can be done.
    pub(crate) fn of(chars: &str) -> Result<Action, &'static str> {
        if chars.is_empty() {
            Ok(Action::Poll)
        } else if chars == "\u{3}" {
            Ok(Action::Interrupt)
        } else if chars.contains(INTERRUPT) {
            Err(
                r#"[input_command error: chars mixes U+0003 (Ctrl-C) with other content; send "\u0003" alone to interrupt]"#,
            )
        } else {
            Ok(Action::Write(chars.into()))
        }
    }

    /// The time to collect: what was asked for, but at least 250 ms, and otherwise at most what the call has left less a second.
    pub(crate) fn window(&self, asked_ms: Option<f64>, remaining: Option<Duration>) -> Duration {
        let default = if *self == Action::Poll {
            POLL_DEFAULT_MS
        } else {
            WRITE_DEFAULT_MS
        };
        let asked = asked_ms
            .filter(|asked| asked.is_finite())
            .unwrap_or(default);
        let most = remaining.map_or(f64::from(u32::MAX), |remaining| {
            remaining.as_secs_f64() * 1000.0 - RESERVE_MS
        });
        Duration::from_millis(asked.min(most).max(LEAST_MS) as u64)
    }
}

/// Why the command of this id cannot be reached.
pub(crate) fn attach_error(id: &str, failure: &Failure) -> String {
    match failure.code.as_str() {
        "not-found" => {
            let unknown = format!(
                "[input_command error: unknown process_id {id} (the session may have exited and been cleared)]"
            );
            match &failure.hint {
                Some(hint) => format!("{unknown}\n{hint}"),
                None => unknown,
            }
        }
        _ => error(failure),
    }
}

/// What could not be done to a command.
pub(crate) fn error(failure: &Failure) -> String {
    format!("[input_command error: {}]", failure.explanation())
}

/// What the model is told of input that was not taken. A command that has closed its input, or is ending, needs no word: its output
/// and its end are collected next.
pub(crate) fn write_notice(failure: &Failure) -> Option<String> {
    (failure.code == "input-blocked").then(|| error(failure))
}

/// The outcome with this line before its own note.
pub(crate) fn with_notice(outcome: Outcome, notice: &str) -> Outcome {
    match outcome.note().map(String::from) {
        Some(note) => outcome.with_note(format!("{notice}\n{note}")),
        None => outcome.with_note(notice),
    }
}

/// The note of a command that runs on.
pub(crate) fn running_note(id: &str) -> String {
    format!("[process still running with process_id {id}]")
}

/// What became of a command that was to be killed and had this status before.
pub(crate) fn killed_note(id: &str, before: &Status) -> String {
    match before {
        Status::Running => format!(
            "[process {id} killed (SIGTERM to the process group, SIGKILL after a grace period)]"
        ),
        Status::Exited(code) => {
            format!("[process {id} had already exited (exit code {code}); session removed]")
        }
        Status::Signaled(name) => format!(
            "[process {id} had already exited (terminated by signal {name}); session removed]"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_chars_only_poll() {
        assert_eq!(Action::of(""), Ok(Action::Poll));
    }

    #[test]
    fn ctrl_c_alone_interrupts_and_mixed_with_other_text_is_refused() {
        assert_eq!(Action::of("\u{3}"), Ok(Action::Interrupt));
        for chars in ["\u{3}\n", "y\u{3}", "\u{3}\u{3}"] {
            let message = r#"[input_command error: chars mixes U+0003 (Ctrl-C) with other content; send "\u0003" alone to interrupt]"#;
            assert_eq!(Action::of(chars), Err(message), "{chars:?}");
        }
    }

    #[test]
    fn a_poll_collects_for_5_seconds_and_input_for_250_ms_by_default() {
        let remaining = Some(Duration::from_millis(130_000));
        assert_eq!(Action::Poll.window(None, remaining).as_millis(), 5_000);
        assert_eq!(
            Action::Write("y\n".into())
                .window(None, remaining)
                .as_millis(),
            250
        );
        assert_eq!(Action::Interrupt.window(None, remaining).as_millis(), 250);
    }

    #[test]
    fn a_window_is_at_least_250_ms_and_ends_a_second_before_the_call() {
        let remaining = Some(Duration::from_millis(130_000));
        assert_eq!(Action::Poll.window(Some(1.0), remaining).as_millis(), 250);
        assert_eq!(
            Action::Poll.window(Some(999_999.0), remaining).as_millis(),
            129_000
        );
    }

    #[test]
    fn an_unknown_process_id_is_explained() {
        assert_eq!(
            attach_error("proc-1", &Failure::new("not-found", "x")),
            "[input_command error: unknown process_id proc-1 (the session may have exited and been cleared)]"
        );
        let known = Failure::new("not-found", "x").with_hint("It was killed.");
        assert_eq!(
            attach_error("proc-1", &known),
            "[input_command error: unknown process_id proc-1 (the session may have exited and been cleared)]\nIt was killed."
        );
        assert_eq!(
            attach_error("proc-1", &Failure::new("denied", "Commands are denied.")),
            "[input_command error: Commands are denied.]"
        );
    }

    #[test]
    fn input_to_a_closed_end_is_ignored_and_input_that_nobody_reads_is_told() {
        assert_eq!(write_notice(&Failure::new("io", "closed")), None);
        let notice =
            write_notice(&Failure::new("input-blocked", "3 of 9 bytes were taken")).unwrap();
        assert_eq!(notice, "[input_command error: 3 of 9 bytes were taken]");
        let outcome = with_notice(
            Outcome::completed().with_note(running_note("proc-1")),
            &notice,
        );
        assert_eq!(
            outcome.note(),
            Some(
                "[input_command error: 3 of 9 bytes were taken]\n[process still running with process_id proc-1]"
            )
        );
    }

    #[test]
    fn a_kill_tells_whether_the_command_had_ended_before() {
        assert_eq!(
            killed_note("proc-1", &Status::Running),
            "[process proc-1 killed (SIGTERM to the process group, SIGKILL after a grace period)]"
        );
        assert_eq!(
            killed_note("proc-1", &Status::Exited(0)),
            "[process proc-1 had already exited (exit code 0); session removed]"
        );
        assert_eq!(
            killed_note("proc-1", &Status::Signaled("SIGINT".into())),
            "[process proc-1 had already exited (terminated by signal SIGINT); session removed]"
        );
    }
}
