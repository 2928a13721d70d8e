//! Native commands, confined to the Workspace by the operating system.

mod widen;
mod window;

use crate::Failure;
use crate::bindings::floe::tool::commands as host;
use std::time::{Duration, Instant};

pub use host::{OutputBatch, OutputChannel, OutputChunk};
pub use widen::Widen;
pub use window::WindowEnd;

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Command(host::CommandSpec);

impl Command {
    /// A script for the shell.
    pub fn shell(script: impl Into<String>) -> Command {
        Command::new(script.into(), None)
    }

    /// A program with its arguments, without a shell.
    pub fn program(
        program: impl Into<String>,
        arguments: impl IntoIterator<Item = impl Into<String>>,
    ) -> Command {
        Command::new(
            program.into(),
            Some(arguments.into_iter().map(Into::into).collect()),
        )
    }

    fn new(command: String, args: Option<Vec<String>>) -> Command {
        Command(host::CommandSpec {
            command,
            args,
            working_directory: None,
            environment: Vec::new(),
            tty: false,
            raw_output: false,
        })
    }

    /// Where it runs: relative to the Workspace, or absolute inside it. The Workspace where this is not called.
    #[must_use]
    pub fn working_directory(mut self, path: impl Into<String>) -> Command {
        self.0.working_directory = Some(path.into());
        self
    }

    /// Adds a variable to what the host sets. The host's hardened variables win.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Command {
        self.0.environment.push(host::EnvironmentVariable {
            name: name.into(),
            value: value.into(),
        });
        self
    }

    /// Gives the command a terminal of 80 columns and 24 rows instead of pipes.
    #[must_use]
    pub fn terminal(mut self, yes: bool) -> Command {
        self.0.tty = yes;
        self
    }

    /// Asks for the bytes as they come instead of cleaned text.
    #[must_use]
    pub fn raw_output(mut self) -> Command {
        self.0.raw_output = true;
        self
    }

    /// Starts the command.
    ///
    /// # Errors
    /// Where it cannot be started, with the reason and what to do; `denied` where commands were not granted.
    pub fn spawn(&self) -> Result<CommandSession, Failure> {
        host::CommandSession::spawn(&self.0).map(CommandSession)
    }
}

/// What to tell of a command that could not be started: the reason, and what to do on the next line.
pub fn spawn_error(failure: &Failure) -> String {
    match &failure.hint {
        Some(hint) => format!("[spawn error: {}]\n{hint}", failure.message),
        None => format!("[spawn error: {}]", failure.message),
    }
}

/// How a command is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It runs.
    Running,
    /// It ended with this exit code.
    Exited(i32),
    /// It was ended by this signal, such as `SIGKILL`.
    Signaled(String),
}

/// A command that was started. Dropping it ends the command and all its children, unless it was kept.
#[derive(Debug)]
pub struct CommandSession(host::CommandSession);

impl CommandSession {
    /// The command that an earlier call of this Session kept.
    ///
    /// # Errors
    /// `not-found` where there is none of that id.
    pub fn attach(process_id: &str) -> Result<CommandSession, Failure> {
        host::CommandSession::attach(process_id).map(CommandSession)
    }

    /// The id by which a later call reaches it.
    pub fn process_id(&self) -> String {
        self.0.process_id()
    }

    /// Waits for output or the end, whichever is first, but no longer than `wait`.
    ///
    /// # Errors
    /// Where the host lost the command.
    pub fn read_output(&self, max_bytes: u32, wait: Duration) -> Result<OutputBatch, Failure> {
        self.0.read_output(
            max_bytes,
            u32::try_from(wait.as_millis()).unwrap_or(u32::MAX),
        )
    }

    /// Hands text output to `write` as it arrives, until the command ends or the window has passed.
    ///
    /// Output that the host had to drop is marked on a line of its own.
    ///
    /// # Errors
    /// Where the host lost the command.
    pub fn stream(&self, window: Duration, write: impl FnMut(&str)) -> Result<WindowEnd, Failure> {
        window::stream(self, window, Instant::now, write)
    }

    /// Writes to its standard input.
    ///
    /// # Errors
    /// Where it is closed.
    pub fn write_stdin(&self, data: &[u8]) -> Result<(), Failure> {
        self.0.write_stdin(data)
    }

    /// Closes its standard input.
    ///
    /// # Errors
    /// Where the host lost the command.
    pub fn close_stdin(&self) -> Result<(), Failure> {
        self.0.close_stdin()
    }

    /// Sends `SIGINT`, `SIGTERM` or `SIGKILL` to the command and its children.
    ///
    /// # Errors
    /// `invalid` for another name.
    pub fn send_signal(&self, name: &str) -> Result<(), Failure> {
        self.0.send_signal(name)
    }

    /// Gives its terminal another size, in characters.
    ///
    /// # Errors
    /// `unsupported` for a command that has pipes.
    pub fn resize_terminal(&self, columns: u16, rows: u16) -> Result<(), Failure> {
        self.0.resize_terminal(columns, rows)
    }

    /// How it is doing.
    pub fn status(&self) -> Status {
        match self.0.status() {
            host::CommandStatus::Running => Status::Running,
            host::CommandStatus::Exited(code) => Status::Exited(code),
            host::CommandStatus::Signaled(name) => Status::Signaled(name),
        }
    }

    /// Leaves the command running after this call, reachable by its id. With `announce_end` the Session is told when it ends.
    ///
    /// # Errors
    /// Where the host lost the command.
    pub fn keep(&self, announce_end: bool) -> Result<(), Failure> {
        self.0.keep(announce_end)
    }
}

impl window::Source for &CommandSession {
    fn read(&mut self, wait: Duration) -> Result<OutputBatch, Failure> {
        self.read_output(window::READ_BYTES, wait)
    }

    fn status(&mut self) -> Status {
        CommandSession::status(self)
    }
}
