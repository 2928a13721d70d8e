//! The window of a call in which it waits for a command: hand on what arrives, end with the command or with the time.

use super::{OutputBatch, Status};
use crate::{Failure, Outcome};
use std::time::{Duration, Instant};

/// How much one read asks for.
pub(super) const READ_BYTES: u32 = 64 * 1024;

/// How a window ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowEnd {
    /// The time is up and the command runs on.
    StillRunning {
        /// The command is known to wait for input.
        waiting_for_input: bool,
    },
    /// The command exited with this code, and all its output was handed on.
    Exited(i32),
    /// The command was ended by this signal, and all its output was handed on.
    Signaled(String),
}

impl WindowEnd {
    /// The outcome of a call whose command has ended so: completed for exit code 0, else failed with a note. None while it runs.
    pub fn outcome(&self) -> Option<Outcome> {
        match self {
            WindowEnd::StillRunning { .. } => None,
            WindowEnd::Exited(0) => Some(Outcome::completed()),
            WindowEnd::Exited(code) => {
                Some(Outcome::failed_silently().with_note(format!("[exit code: {code}]")))
            }
            WindowEnd::Signaled(name) => {
                Some(Outcome::failed_silently().with_note(format!("[terminated by signal {name}]")))
            }
        }
    }
}

/// The line of a note that follows the one about a command that runs on, where it is known to wait for input.
const WAITING: &str = "[the process seems to wait for input]";

impl WindowEnd {
    /// The note of a call that leaves its command running: this line, and another where the command is known to wait for input.
    pub fn running_note(&self, line: String) -> String {
        match self {
            WindowEnd::StillRunning {
                waiting_for_input: true,
            } => format!("{line}\n{WAITING}"),
            _ => line,
        }
    }
}

/// Where output comes from: a command, or a test's list.
pub(super) trait Source {
    fn read(&mut self, wait: Duration) -> Result<OutputBatch, Failure>;
    fn status(&mut self) -> Status;
}

pub(super) fn stream(
    mut source: impl Source,
    window: Duration,
    now: impl Fn() -> Instant,
    mut write: impl FnMut(&str),
) -> Result<WindowEnd, Failure> {
    let deadline = now() + window;
    loop {
        let left = deadline.saturating_duration_since(now());
        let batch = source.read(left)?;
        // What was dropped before it could be read is told in the output, and counted, by the host.
        for chunk in &batch.chunks {
            let text = String::from_utf8_lossy(&chunk.data);
            if !text.is_empty() {
                write(&text);
            }
        }
        if batch.ended {
            match source.status() {
                Status::Exited(code) => return Ok(WindowEnd::Exited(code)),
                Status::Signaled(name) => return Ok(WindowEnd::Signaled(name)),
                Status::Running => {
                    return Err(Failure::new(
                        "io",
                        "The command's output ended, but not the command.",
                    ));
                }
            }
        }
        // With no time left the read above did not wait, so all that was there has been handed on.
        if left.is_zero() {
            return Ok(WindowEnd::StillRunning {
                waiting_for_input: batch.waiting_for_input,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{OutputChannel, OutputChunk};
    use std::cell::Cell;
    use std::rc::Rc;

    /// A command whose reads take a time each, on a clock that only they move.
    struct Scripted {
        reads: Vec<(Duration, OutputBatch)>,
        clock: Rc<Cell<Instant>>,
        status: Status,
    }

    impl Source for Scripted {
        fn read(&mut self, wait: Duration) -> Result<OutputBatch, Failure> {
            if self.reads.is_empty() || self.reads[0].0 > wait {
                self.clock.set(self.clock.get() + wait);
                return Ok(batch("", false));
            }
            let (took, batch) = self.reads.remove(0);
            self.clock.set(self.clock.get() + took);
            Ok(batch)
        }

        fn status(&mut self) -> Status {
            self.status.clone()
        }
    }

    fn batch(text: &str, ended: bool) -> OutputBatch {
        let chunks = if text.is_empty() {
            Vec::new()
        } else {
            vec![OutputChunk {
                channel: OutputChannel::Stdout,
                data: text.as_bytes().to_vec(),
            }]
        };
        OutputBatch {
            chunks,
            dropped: 0,
            ended,
            waiting_for_input: false,
        }
    }

    fn run(
        reads: Vec<(u64, OutputBatch)>,
        status: Status,
        window_ms: u64,
    ) -> (WindowEnd, Vec<String>, u64) {
        let start = Instant::now();
        let clock = Rc::new(Cell::new(start));
        let reads = reads
            .into_iter()
            .map(|(took, batch)| (Duration::from_millis(took), batch))
            .collect();
        let mut written = Vec::new();
        let source = Scripted {
            reads,
            clock: clock.clone(),
            status,
        };
        let end = stream(
            source,
            Duration::from_millis(window_ms),
            || clock.get(),
            |text| written.push(text.into()),
        )
        .unwrap();
        (end, written, (clock.get() - start).as_millis() as u64)
    }

    #[test]
    fn output_is_handed_on_as_it_arrives_until_the_command_ends() {
        let (end, written, took) = run(
            vec![
                (10, batch("a\n", false)),
                (10, batch("b\n", false)),
                (5, batch("", true)),
            ],
            Status::Exited(3),
            1000,
        );
        assert_eq!(
            (end, written, took),
            (WindowEnd::Exited(3), vec!["a\n".into(), "b\n".into()], 25)
        );
    }

    #[test]
    fn a_window_is_waited_out_while_output_streams() {
        let reads = (0..100).map(|_| (30, batch("x", false))).collect();
        let (end, written, took) = run(reads, Status::Running, 250);
        assert_eq!(
            (end, written.len(), took),
            (
                WindowEnd::StillRunning {
                    waiting_for_input: false
                },
                8,
                250
            )
        );
    }

    #[test]
    fn that_a_command_waits_for_input_is_a_further_line_where_it_is_known_at_the_end_of_the_window()
    {
        let waiting = OutputBatch {
            waiting_for_input: true,
            ..batch("Name: ", false)
        };
        let (end, ..) = run(vec![(10, waiting.clone())], Status::Running, 250);
        assert_eq!(end.running_note("[it runs]".into()), "[it runs]");
        let (end, ..) = run(
            vec![(250, batch("", false)), (0, waiting)],
            Status::Running,
            250,
        );
        assert_eq!(
            end.running_note("[it runs]".into()),
            "[it runs]\n[the process seems to wait for input]"
        );
    }

    #[test]
    fn the_end_of_a_command_decides_the_outcome() {
        let running = |waiting_for_input| WindowEnd::StillRunning { waiting_for_input };
        assert_eq!(running(false).outcome(), None);
        assert_eq!(running(true).outcome(), None);
        assert_eq!(WindowEnd::Exited(0).outcome(), Some(Outcome::completed()));
        let failed = WindowEnd::Exited(3).outcome().unwrap();
        assert_eq!(
            (failed.is_completed(), failed.note()),
            (false, Some("[exit code: 3]"))
        );
        let killed = WindowEnd::Signaled("SIGKILL".into()).outcome().unwrap();
        assert_eq!(
            (killed.is_completed(), killed.note()),
            (false, Some("[terminated by signal SIGKILL]"))
        );
    }
}
