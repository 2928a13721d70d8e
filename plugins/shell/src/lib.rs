//! The tool `shell`: runs a command to its end and shows what it printed, standard output first, then standard error.
//!
//! Everything that a command may touch is decided below the `commands` interface, never here.

use floe_tool::commands::{Command, CommandSession, OutputChannel, Status, Widen, spawn_error};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool, Truncation, output};
use std::time::{Duration, Instant};

const TIMEOUT_MS: u64 = 60_000;
const TIMEOUT_MOST_MS: u64 = 600_000;
/// What one read asks for.
const READ_BYTES: u32 = 64 * 1024;
/// As much of standard error as is held until the end; of more, the first and the last part.
const ERROR_BYTES: usize = 1024 * 1024;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The command, for bash.
    #[schemars(length(min = 1))]
    command: String,
    /// The folder to run it in, relative to the Workspace. Default: the Workspace.
    workdir: Option<String>,
    /// Milliseconds after which it is ended. Default 60000, at most 600000.
    #[schemars(range(min = 1, max = 600_000))]
    timeout_ms: Option<u64>,
    /// Asks the person to let this one command reach more than the sandbox gives it. Only for what the task cannot do without.
    #[schemars(with = "Option<Widen>")]
    #[serde(rename = "widen")]
    _widen: Option<serde::de::IgnoredAny>,
}

struct Shell;

impl Tool for Shell {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            "shell",
            "Runs a shell command in the Workspace to its end and returns what it printed: standard output, then [stderr] and standard error, then \
             the exit code where it is not 0. It has no input. The command is confined: it can write only inside the Workspace and temporary folders, \
             and it has no network beyond its own loopback. What a command needs beyond that can be asked for with widen: the person decides, and \
             a no is final.",
        )
        .permission(Permission::Execute)
        .timeout_ms(610_000)
        .max_output_length(30_000)
        .truncation(Truncation::HeadTail)
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        if arguments.command.is_empty() {
            return Ok(Outcome::missing_argument("command", "shell"));
        }
        let limit = arguments
            .timeout_ms
            .unwrap_or(TIMEOUT_MS)
            .clamp(1, TIMEOUT_MOST_MS);
        let mut command = Command::shell(&arguments.command);
        if let Some(folder) = &arguments.workdir {
            command = command.working_directory(folder);
        }
        match command.spawn() {
            Ok(session) => {
                session.close_stdin()?;
                follow(&session, limit)
            }
            Err(failure) => Ok(Outcome::failed(spawn_error(&failure))),
        }
    }
}

floe_tool::export!(Shell);

fn follow(session: &CommandSession, limit_ms: u64) -> Result<Outcome, Failure> {
    let deadline = Instant::now() + Duration::from_millis(limit_ms);
    let mut printed = Printed::default();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let batch = session.read_output(READ_BYTES, left)?;
        for chunk in &batch.chunks {
            let text = String::from_utf8_lossy(&chunk.data);
            match chunk.channel {
                OutputChannel::Stdout => printed.out(&text, |text| {
                    output::write(text);
                }),
                OutputChannel::Stderr => printed.error(&text),
            }
        }
        if batch.ended {
            output::write(&printed.rest());
            return Ok(ended(&session.status()));
        }
        if left.is_zero() {
            // Dropping the session ends the command and all that it started.
            output::write(&printed.rest());
            return Ok(Outcome::failed_silently()
                .with_note(format!("[tool timeout: exceeded {limit_ms}ms]")));
        }
    }
}

/// What 127 means, which standard error does not always say.
const NOT_FOUND: &str = "[127: a command was not found; a program must be on PATH inside the sandbox, or be named by its path]";

fn ended(status: &Status) -> Outcome {
    match status {
        Status::Exited(0) => Outcome::completed(),
        Status::Exited(127) => {
            Outcome::failed_silently().with_note(format!("[exit code: 127]\n{NOT_FOUND}"))
        }
        Status::Exited(code) => {
            Outcome::failed_silently().with_note(format!("[exit code: {code}]"))
        }
        Status::Signaled(name) => {
            Outcome::failed_silently().with_note(format!("[terminated by signal {name}]"))
        }
        Status::Running => Outcome::failed_silently(),
    }
}

/// What a command printed: its standard output has been handed on, its standard error is held back.
#[derive(Debug, Default)]
struct Printed {
    /// The standard output so far does not end with a line ending.
    is_open: bool,
    head: String,
    tail: String,
    left_out: usize,
}

impl Printed {
    fn out(&mut self, text: &str, write: impl FnOnce(&str)) {
        if !text.is_empty() {
            write(text);
            self.is_open = !text.ends_with('\n');
        }
    }

    fn error(&mut self, text: &str) {
        let mut text = text;
        if self.tail.is_empty() && self.head.len() < ERROR_BYTES / 2 {
            let end = text.floor_char_boundary(ERROR_BYTES / 2 - self.head.len());
            self.head.push_str(&text[..end]);
            text = &text[end..];
        }
        self.tail.push_str(text);
        if self.tail.len() > ERROR_BYTES {
            let gone = self
                .tail
                .floor_char_boundary(self.tail.len() - ERROR_BYTES / 2);
            self.left_out += self.tail[..gone].chars().count();
            self.tail.drain(..gone);
        }
    }

    /// What follows the standard output.
    fn rest(&self) -> String {
        if self.head.is_empty() {
            return String::new();
        }
        let mut text = String::new();
        if self.is_open {
            text.push('\n');
        }
        text.push_str("[stderr]\n");
        text.push_str(&self.head);
        if self.left_out > 0 {
            text.push_str(&format!(
                "\n[{} characters of stderr left out]\n",
                self.left_out
            ));
        }
        text + &self.tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_error_follows_standard_output_on_a_line_of_its_own() {
        let mut printed = Printed::default();
        let mut out = String::new();
        printed.error("warning\n");
        printed.out("a", |text| out.push_str(text));
        assert_eq!(out + &printed.rest(), "a\n[stderr]\nwarning\n");
        let mut printed = Printed::default();
        printed.out("a\n", |_| ());
        assert_eq!(printed.rest(), "");
        printed.error("x");
        assert_eq!(printed.rest(), "[stderr]\nx");
    }

    #[test]
    fn of_much_standard_error_the_first_and_the_last_part_are_held() {
        let mut printed = Printed::default();
        for number in 0..40_000 {
            printed.error(&format!("line {number} é {}\n", "x".repeat(90)));
        }
        let rest = printed.rest();
        assert!(rest.starts_with("[stderr]\nline 0 é") && rest.ends_with("x\n"));
        assert!(rest.contains("line 39999 ") && rest.contains("characters of stderr left out]"));
        assert!(rest.len() < 2 * ERROR_BYTES);
    }

    #[test]
    fn every_end_has_its_words() {
        assert!(ended(&Status::Exited(0)).is_completed());
        assert_eq!(ended(&Status::Exited(7)).note(), Some("[exit code: 7]"));
        let unknown = ended(&Status::Exited(127));
        assert!(
            unknown
                .note()
                .unwrap()
                .starts_with("[exit code: 127]\n[127: a command was not found")
        );
        let killed = ended(&Status::Signaled("SIGKILL".into()));
        assert_eq!(killed.note(), Some("[terminated by signal SIGKILL]"));
    }
}
