//! `commands`: native commands, confined to the Workspace by the operating system. A command whose handle goes away ends with
//! all its children, unless the tool kept it; that holds for a guest that traps, is cancelled or leaks its handles too.

mod binding;
mod confined;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Failure, Recorder, Refusal};
pub use crate::bindings::floe::tool::commands::{
    CommandSpec, CommandStatus, EnvironmentVariable, OutputBatch, OutputChannel, OutputChunk,
};
use crate::capability_set::Capability;
pub use confined::ConfinedCommands;
pub use floe_command::{Record, Recording};

/// Starts commands and finds those that run. Runs on the host's runtime.
#[async_trait]
pub trait Commands: Send + Sync {
    /// Starts a command. It runs to its end once begun, also where the caller is gone; what it returns is then dropped.
    async fn spawn(&self, spec: CommandSpec) -> Result<Arc<dyn CommandSession>, Failure>;

    /// Finds a running command of this Session by its id.
    async fn attach(&self, process_id: &str) -> Result<Arc<dyn CommandSession>, Failure>;
}

/// One command. Dropping it is letting go: what was not kept ends with all its children. The drop may come on any thread and must
/// not block.
#[async_trait]
pub trait CommandSession: Send + Sync {
    /// Its id in this Session.
    fn process_id(&self) -> String;

    /// How it is confined: `native`, `UNCONFINED`, ...
    fn confinement(&self) -> String;

    /// Waits up to `wait` for output or the end, whichever is first, and takes at most `max_bytes`.
    async fn read_output(&self, max_bytes: u32, wait: Duration) -> Result<OutputBatch, Failure>;

    /// Writes all of `data` to its standard input.
    async fn write_stdin(&self, data: Vec<u8>) -> Result<(), Failure>;

    /// Ends its standard input.
    async fn close_stdin(&self) -> Result<(), Failure>;

    /// Sends a signal to the whole group.
    async fn send_signal(&self, name: &str) -> Result<(), Failure>;

    /// Whether it still runs.
    async fn status(&self) -> CommandStatus;

    /// Sets the size of its terminal.
    async fn resize_terminal(&self, columns: u16, rows: u16) -> Result<(), Failure>;

    /// Leaves it running after this call.
    async fn keep(&self, announce_end: bool) -> Result<(), Failure>;

    /// What making room for it has cost, as a line for the model.
    fn note(&self) -> Option<String> {
        None
    }

    /// What is to be said of its end, as lines for the model: why the host ended it, what it left for others to execute.
    fn end_note(&self) -> Option<String> {
        None
    }

    /// Ends it gently, also when it is dropped next: the call that started it was interrupted or ran out of time. Must not block.
    /// Where it does nothing, the drop that follows ends the command at once.
    fn terminate(&self) {}

    /// Its bytes as they came, where they are kept.
    fn recording(&self) -> Option<Arc<dyn Recording>> {
        None
    }

    /// Takes all that it has printed and nobody has read. Must not block.
    fn take_unread(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// A guest's handle of a command.
pub struct CommandHandle {
    session: Arc<dyn CommandSession>,
    raw_output: bool,
    /// Its bytes as they came, where the guest gets text.
    recording: Option<Arc<dyn Recording>>,
}

impl CommandHandle {
    fn new(session: Arc<dyn CommandSession>, raw_output: bool) -> CommandHandle {
        CommandHandle {
            recording: session.recording().filter(|_| !raw_output),
            session,
            raw_output,
        }
    }
}

#[async_trait]
impl<R: Refusal> Commands for R {
    async fn spawn(&self, _spec: CommandSpec) -> Result<Arc<dyn CommandSession>, Failure> {
        Err(self.refuse(Capability::Commands))
    }

    async fn attach(&self, _process_id: &str) -> Result<Arc<dyn CommandSession>, Failure> {
        Err(self.refuse(Capability::Commands))
    }
}

/// Commands that print one text and end with one status, for tests. Nothing runs.
#[derive(Clone, Debug)]
pub struct RecordingCommands {
    /// What was asked.
    pub requests: Recorder,
    /// What every command prints.
    pub stdout: Vec<u8>,
    /// How every command ends; a running one never does.
    pub status: CommandStatus,
}

impl Default for RecordingCommands {
    fn default() -> Self {
        RecordingCommands {
            requests: Recorder::default(),
            stdout: Vec::new(),
            status: CommandStatus::Exited(0),
        }
    }
}

#[async_trait]
impl Commands for RecordingCommands {
    async fn spawn(&self, spec: CommandSpec) -> Result<Arc<dyn CommandSession>, Failure> {
        self.requests.record(format!("spawn {}", spec.command));
        Ok(Arc::new(RecordingSession(self.clone())))
    }

    async fn attach(&self, process_id: &str) -> Result<Arc<dyn CommandSession>, Failure> {
        self.requests.record(format!("attach {process_id}"));
        Ok(Arc::new(RecordingSession(self.clone())))
    }
}

/// One of them; its drop is recorded as `release`.
struct RecordingSession(RecordingCommands);

impl Drop for RecordingSession {
    fn drop(&mut self) {
        self.0.requests.record("release");
    }
}

#[async_trait]
impl CommandSession for RecordingSession {
    fn process_id(&self) -> String {
        "proc-00000000".to_owned()
    }

    fn confinement(&self) -> String {
        "native".to_owned()
    }

    async fn read_output(&self, max_bytes: u32, wait: Duration) -> Result<OutputBatch, Failure> {
        self.0
            .requests
            .record(format!("read-output {max_bytes} {}", wait.as_millis()));
        if matches!(self.0.status, CommandStatus::Running) {
            tokio::time::sleep(wait).await;
        }
        Ok(OutputBatch {
            chunks: vec![OutputChunk {
                channel: OutputChannel::Stdout,
                data: self.0.stdout.clone(),
            }],
            dropped: 0,
            ended: !matches!(self.0.status, CommandStatus::Running),
            waiting_for_input: false,
        })
    }

    async fn write_stdin(&self, data: Vec<u8>) -> Result<(), Failure> {
        self.0
            .requests
            .record(format!("write-stdin {}", data.len()));
        Ok(())
    }

    async fn close_stdin(&self) -> Result<(), Failure> {
        self.0.requests.record("close-stdin");
        Ok(())
    }

    async fn send_signal(&self, name: &str) -> Result<(), Failure> {
        self.0.requests.record(format!("send-signal {name}"));
        Ok(())
    }

    async fn status(&self) -> CommandStatus {
        self.0.requests.record("status");
        self.0.status.clone()
    }

    async fn resize_terminal(&self, columns: u16, rows: u16) -> Result<(), Failure> {
        self.0
            .requests
            .record(format!("resize-terminal {columns} {rows}"));
        Ok(())
    }

    async fn keep(&self, announce_end: bool) -> Result<(), Failure> {
        self.0.requests.record(format!("keep {announce_end}"));
        Ok(())
    }

    fn terminate(&self) {
        self.0.requests.record("terminate");
    }
}
