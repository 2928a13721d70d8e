//! The real `commands`: the command sessions of a Session, which start every process through the sandbox.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use floe_command::{Channel, CommandError, CommandSessions, Status};
use floe_sandbox::{Widening, WorkspaceMode};

use super::{
    CommandSession, CommandSpec, CommandStatus, Commands, OutputBatch, OutputChannel, OutputChunk,
    Recording,
};
use crate::capability::Failure;

/// The commands of a Session as tools use them.
#[derive(Clone)]
pub struct ConfinedCommands {
    sessions: Arc<CommandSessions>,
    workspace: WorkspaceMode,
    widening: Widening,
}

impl ConfinedCommands {
    /// Commands are started and found here.
    pub fn new(sessions: Arc<CommandSessions>) -> ConfinedCommands {
        ConfinedCommands {
            sessions,
            workspace: WorkspaceMode::default(),
            widening: Widening::default(),
        }
    }

    /// The same commands for one call: those that it starts may do no more than `workspace` with the Workspace, and reach
    /// `widening` as well, which a person granted.
    #[must_use]
    pub fn for_call(&self, workspace: WorkspaceMode, widening: Widening) -> ConfinedCommands {
        ConfinedCommands {
            sessions: Arc::clone(&self.sessions),
            workspace,
            widening,
        }
    }
}

/// A hold on one session. Dropping the handle inside is what lets go of it.
struct Held(floe_command::CommandHandle);

#[async_trait]
impl Commands for ConfinedCommands {
    async fn spawn(&self, spec: CommandSpec) -> Result<Arc<dyn CommandSession>, Failure> {
        let spec = floe_command::CommandSpec {
            command: spec.command,
            args: spec.args,
            working_directory: spec.working_directory,
            environment: spec
                .environment
                .into_iter()
                .map(|variable| (variable.name, variable.value))
                .collect(),
            terminal: spec.tty,
            raw_output: spec.raw_output,
            workspace: self.workspace,
            widening: self.widening.clone(),
        };
        let handle = self.sessions.spawn(spec).await.map_err(failure)?;
        Ok(Arc::new(Held(handle)))
    }

    async fn attach(&self, process_id: &str) -> Result<Arc<dyn CommandSession>, Failure> {
        let handle = self.sessions.attach(process_id).map_err(failure)?;
        Ok(Arc::new(Held(handle)))
    }
}

#[async_trait]
impl CommandSession for Held {
    fn process_id(&self) -> String {
        self.0.process_id().to_owned()
    }

    fn confinement(&self) -> String {
        self.0.confinement().to_owned()
    }

    async fn read_output(&self, max_bytes: u32, wait: Duration) -> Result<OutputBatch, Failure> {
        let batch = self.0.read_output(max_bytes as usize, wait).await;
        let batch = batch.map_err(failure)?;
        Ok(OutputBatch {
            chunks: batch
                .chunks
                .into_iter()
                .map(|chunk| OutputChunk {
                    channel: match chunk.channel {
                        Channel::Stdout => OutputChannel::Stdout,
                        Channel::Stderr => OutputChannel::Stderr,
                    },
                    data: chunk.data,
                })
                .collect(),
            dropped: batch.dropped,
            ended: batch.ended,
            waiting_for_input: batch.waiting_for_input,
        })
    }

    async fn write_stdin(&self, data: Vec<u8>) -> Result<(), Failure> {
        self.0.write_stdin(&data).await.map_err(failure)
    }

    async fn close_stdin(&self) -> Result<(), Failure> {
        self.0.close_stdin();
        Ok(())
    }

    async fn send_signal(&self, name: &str) -> Result<(), Failure> {
        self.0.send_signal(name).map_err(failure)
    }

    async fn status(&self) -> CommandStatus {
        match self.0.status() {
            Status::Running => CommandStatus::Running,
            Status::Exited(code) => CommandStatus::Exited(code),
            Status::Signaled(name) => CommandStatus::Signaled(name),
            // A sandbox that goes away kills what is in it.
            Status::Stopped(_) | Status::Lost(_) => CommandStatus::Signaled("SIGKILL".to_owned()),
        }
    }

    async fn resize_terminal(&self, columns: u16, rows: u16) -> Result<(), Failure> {
        self.0.resize_terminal(columns, rows).map_err(failure)
    }

    async fn keep(&self, announce_end: bool) -> Result<(), Failure> {
        self.0.keep(announce_end);
        Ok(())
    }

    fn note(&self) -> Option<String> {
        self.0.note().map(str::to_owned)
    }

    fn terminate(&self) {
        if !self.0.is_kept() {
            self.0.terminate();
        }
    }

    fn recording(&self) -> Option<Arc<dyn Recording>> {
        self.0.recording().cloned()
    }

    fn take_unread(&self) -> Vec<u8> {
        match self.0.is_kept() {
            true => Vec::new(),
            false => self.0.take_unread(),
        }
    }

    fn end_note(&self) -> Option<String> {
        let stopped = match self.0.status() {
            Status::Stopped(excess) => Some(format!("[command stopped: {excess}]")),
            _ => None,
        };
        let left = self.0.left_behind();
        let left = left.map(|left| format!("[executed later: {left}]"));
        let lines: Vec<String> = stopped.into_iter().chain(left).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

fn failure(error: CommandError) -> Failure {
    Failure {
        code: error.code().to_owned(),
        hint: error.hint().map(str::to_owned),
        retryable: error.retryable(),
        message: error.to_string(),
    }
}
