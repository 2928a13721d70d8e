//! Plain data at the border of the crate: what a command is asked to be, and what is told about one.

use std::fmt;

use floe_sandbox::{Excess, Widening, WorkspaceMode};

use crate::CommandError;

/// What to run and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandSpec {
    /// A script for `bash -c`, byte for byte; with `args` the program.
    pub command: String,
    /// The program's arguments. With them no shell is involved.
    pub args: Option<Vec<String>>,
    /// Relative to the Workspace, below `/workspace`, or below its canonical path on the host; the Workspace where
    /// none.
    pub working_directory: Option<String>,
    /// Added to what the host sets. HOME, TMPDIR and the hardened variables keep the host's values.
    pub environment: Vec<(String, String)>,
    /// Run in a terminal of 80 columns and 24 rows instead of with pipes.
    pub terminal: bool,
    /// Give the bytes as they came instead of text.
    pub raw_output: bool,
    /// The most that it may do with the Workspace, whatever the Session's policy allows.
    pub workspace: WorkspaceMode,
    /// What the person lets this command reach beyond the Session's policy.
    pub widening: Widening,
}

impl CommandSpec {
    /// A shell script in the Workspace's root, with pipes and text.
    pub fn shell(script: impl Into<String>) -> CommandSpec {
        CommandSpec {
            command: script.into(),
            ..CommandSpec::default()
        }
    }

    /// The command as one line of at most 120 characters, for lists and reports. Control characters are left in.
    pub(crate) fn label(&self) -> String {
        const LONGEST: usize = 120;
        let mut whole = self.command.clone();
        for argument in self.args.iter().flatten() {
            whole.push(' ');
            whole.push_str(argument);
        }
        let line = whole.trim().lines().next().unwrap_or_default();
        if line.chars().count() <= LONGEST {
            return line.to_owned();
        }
        let kept: String = line.chars().take(LONGEST - 1).collect();
        format!("{kept}…")
    }
}

/// Where output came from. A terminal has only one, which counts as `Stdout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Descriptor 1, or the terminal.
    Stdout,
    /// Descriptor 2.
    Stderr,
}

/// Output of one channel.
#[derive(Clone, PartialEq, Eq)]
pub struct OutputChunk {
    /// Where it came from.
    pub channel: Channel,
    /// UTF-8 that splits no character, unless the output is raw.
    pub data: Vec<u8>,
}

impl fmt::Debug for OutputChunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}:{:?}",
            self.channel,
            String::from_utf8_lossy(&self.data)
        )
    }
}

/// The answer of one read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputBatch {
    /// In order of arrival.
    pub chunks: Vec<OutputChunk>,
    /// What was lost just before these chunks because nobody read: characters, or bytes where the output is raw.
    pub dropped: u64,
    /// The command has ended and all was read.
    pub ended: bool,
    /// The command is known to wait for input.
    pub waiting_for_input: bool,
}

impl OutputBatch {
    /// All chunks as one text.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self
            .chunks
            .iter()
            .flat_map(|chunk| chunk.data.iter().copied())
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// How a command is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It runs, or its last output is still being collected.
    Running,
    /// It ended with this code.
    Exited(i32),
    /// It was ended by the signal of this name, `SIGKILL` where it was ended from here.
    Signaled(String),
    /// It was ended, with all its children, because it used more than the operator allows.
    Stopped(Excess),
    /// Its sandbox went away, and with it the knowledge of how it ended.
    Lost(CommandError),
}

/// A line of [`crate::CommandSessions::list`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSummary {
    /// Its id.
    pub process_id: String,
    /// The first line of its command.
    pub label: String,
    /// How it is.
    pub status: Status,
    /// Whether it outlives the call that started it.
    pub kept: bool,
}

/// The end of a command whose end was to be announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedCommand {
    /// Its id.
    pub process_id: String,
    /// The first line of its command, at most 120 characters.
    pub label: String,
    /// How it ended.
    pub status: Status,
    /// The last unread output, at most 4000 characters. It stays unread.
    pub output: String,
    /// Whether `output` is only the end of what is unread.
    pub output_cut: bool,
}

/// Who wants to know what nobody asked for.
pub trait Observe: Send + Sync + 'static {
    /// Something that the person should know: a word for programs, and a sentence.
    fn warning(&self, code: &'static str, message: &str);

    /// A command has ended that was kept with `announce_end`, and was neither killed nor read to its end.
    fn ended(&self, command: EndedCommand);
}

/// Tells nobody but the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observe for Unobserved {
    fn warning(&self, code: &'static str, message: &str) {
        tracing::warn!(code, "{message}");
    }

    fn ended(&self, command: EndedCommand) {
        tracing::debug!(process_id = command.process_id, "a kept command ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_the_first_line_and_at_most_120_characters() {
        assert_eq!(
            CommandSpec::shell("\n make all \nsecond").label(),
            "make all "
        );
        let long = CommandSpec::shell("ä".repeat(200)).label();
        assert_eq!(long.chars().count(), 120);
        assert!(long.ends_with('…'));
        let exact = CommandSpec::shell("x".repeat(120)).label();
        assert_eq!(exact, "x".repeat(120));
    }

    #[test]
    fn a_label_of_a_program_holds_its_arguments() {
        let spec = CommandSpec {
            command: "ls".into(),
            args: Some(vec!["-l".into()]),
            ..CommandSpec::default()
        };
        assert_eq!(spec.label(), "ls -l");
    }
}
