//! `commands`: native commands, confined to the Workspace by the operating system. A command whose handle goes away ends with
//! all its children, unless the tool kept it; that holds for a guest that traps, is cancelled or leaks its handles too.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use wasmtime::component::Resource;

use super::{Deny, Failure, Recorder, Refusal};
use crate::bindings::floe::tool::commands as wit;
pub use crate::bindings::floe::tool::commands::{
    CommandSpec, CommandStatus, EnvironmentVariable, OutputBatch, OutputChannel, OutputChunk,
};
use crate::capability_set::Capability;
use crate::state::CallState;

/// Starts commands and finds those that run. Runs on the host's runtime.
#[async_trait]
pub trait Commands: Send + Sync {
    /// Starts a command. It runs to its end once begun, also where the caller is gone; what it returns is then dropped.
    async fn spawn(&self, spec: CommandSpec) -> Result<Arc<dyn CommandSession>, Failure>;

    /// Finds a running command of this Session by its id.
    async fn attach(&self, process_id: &str) -> Result<Arc<dyn CommandSession>, Failure>;
}

/// One command.
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

    /// The handle is gone: what was not kept ends with all its children. Called once per handle, on any thread; must not block.
    fn release(&self);
}

/// A guest's handle of a command.
pub struct CommandHandle {
    session: Arc<dyn CommandSession>,
    raw_output: bool,
}

impl Drop for CommandHandle {
    fn drop(&mut self) {
        self.session.release();
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
        Ok(Arc::new(self.clone()))
    }

    async fn attach(&self, process_id: &str) -> Result<Arc<dyn CommandSession>, Failure> {
        self.requests.record(format!("attach {process_id}"));
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl CommandSession for RecordingCommands {
    fn process_id(&self) -> String {
        "proc-00000000".to_owned()
    }

    fn confinement(&self) -> String {
        "native".to_owned()
    }

    async fn read_output(&self, max_bytes: u32, wait: Duration) -> Result<OutputBatch, Failure> {
        self.requests
            .record(format!("read-output {max_bytes} {}", wait.as_millis()));
        if matches!(self.status, CommandStatus::Running) {
            tokio::time::sleep(wait).await;
        }
        Ok(OutputBatch {
            chunks: vec![OutputChunk {
                channel: OutputChannel::Stdout,
                data: self.stdout.clone(),
            }],
            dropped: 0,
            ended: !matches!(self.status, CommandStatus::Running),
            waiting_for_input: false,
        })
    }

    async fn write_stdin(&self, data: Vec<u8>) -> Result<(), Failure> {
        self.requests.record(format!("write-stdin {}", data.len()));
        Ok(())
    }

    async fn close_stdin(&self) -> Result<(), Failure> {
        self.requests.record("close-stdin");
        Ok(())
    }

    async fn send_signal(&self, name: &str) -> Result<(), Failure> {
        self.requests.record(format!("send-signal {name}"));
        Ok(())
    }

    async fn status(&self) -> CommandStatus {
        self.requests.record("status");
        self.status.clone()
    }

    async fn resize_terminal(&self, columns: u16, rows: u16) -> Result<(), Failure> {
        self.requests
            .record(format!("resize-terminal {columns} {rows}"));
        Ok(())
    }

    async fn keep(&self, announce_end: bool) -> Result<(), Failure> {
        self.requests.record(format!("keep {announce_end}"));
        Ok(())
    }

    fn release(&self) {
        self.requests.record("release");
    }
}

impl CallState {
    fn session(
        &self,
        session: &Resource<CommandHandle>,
    ) -> wasmtime::Result<Arc<dyn CommandSession>> {
        Ok(self.table.get(session)?.session.clone())
    }

    /// Puts a command that the host handed out into the guest's table. From here on its handle releases it.
    fn hold(
        &mut self,
        session: Result<CommandHandle, Failure>,
    ) -> wasmtime::Result<Result<Resource<CommandHandle>, Failure>> {
        if let Ok(handle) = &session {
            self.record.confined(handle.session.confinement());
        }
        self.keep(session)
    }
}

impl wit::Host for CallState {}

impl wit::HostCommandSession for CallState {
    async fn spawn(
        &mut self,
        spec: CommandSpec,
    ) -> wasmtime::Result<Result<Resource<CommandHandle>, Failure>> {
        let commands = self.hosts.commands.clone();
        let raw_output = spec.raw_output;
        let spawned = self
            .ask_host_to_the_end(async move {
                let session = commands.spawn(spec).await?;
                Ok(CommandHandle {
                    session,
                    raw_output,
                })
            })
            .await;
        self.hold(spawned)
    }

    async fn attach(
        &mut self,
        process_id: String,
    ) -> wasmtime::Result<Result<Resource<CommandHandle>, Failure>> {
        let commands = self.hosts.commands.clone();
        let attached = self
            .ask_host_to_the_end(async move {
                let session = commands.attach(&process_id).await?;
                Ok(CommandHandle {
                    session,
                    raw_output: false,
                })
            })
            .await;
        self.hold(attached)
    }

    async fn process_id(&mut self, session: Resource<CommandHandle>) -> wasmtime::Result<String> {
        Ok(self.session(&session)?.process_id())
    }

    async fn read_output(
        &mut self,
        session: Resource<CommandHandle>,
        max_bytes: u32,
        wait_ms: u32,
    ) -> wasmtime::Result<Result<OutputBatch, Failure>> {
        let raw_output = self.table.get(&session)?.raw_output;
        let session = self.session(&session)?;
        let wait = Duration::from_millis(wait_ms.into());
        let answer = self
            .ask_host(async move {
                let batch = session.read_output(max_bytes, wait).await?;
                let status = match batch.ended {
                    true => Some(session.status().await),
                    false => None,
                };
                Ok((batch, status))
            })
            .await;
        Ok(answer.map(|(batch, status)| {
            if let Some(status) = status {
                self.record.ended_with(&status);
            }
            if !raw_output && batch.dropped > 0 {
                self.record.output.dropped(batch.dropped);
            }
            batch
        }))
    }

    async fn write_stdin(
        &mut self,
        session: Resource<CommandHandle>,
        data: Vec<u8>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let session = self.session(&session)?;
        Ok(self
            .ask_host(async move { session.write_stdin(data).await })
            .await)
    }

    async fn close_stdin(
        &mut self,
        session: Resource<CommandHandle>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let session = self.session(&session)?;
        Ok(self
            .ask_host(async move { session.close_stdin().await })
            .await)
    }

    async fn send_signal(
        &mut self,
        session: Resource<CommandHandle>,
        name: String,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let session = self.session(&session)?;
        Ok(self
            .ask_host(async move { session.send_signal(&name).await })
            .await)
    }

    async fn status(
        &mut self,
        session: Resource<CommandHandle>,
    ) -> wasmtime::Result<CommandStatus> {
        let session = self.session(&session)?;
        let status = self
            .ask_host(async move { Ok(session.status().await) })
            .await
            .map_err(crate::call::Raised)?;
        self.record.ended_with(&status);
        Ok(status)
    }

    async fn resize_terminal(
        &mut self,
        session: Resource<CommandHandle>,
        columns: u16,
        rows: u16,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let session = self.session(&session)?;
        Ok(self
            .ask_host(async move { session.resize_terminal(columns, rows).await })
            .await)
    }

    async fn keep(
        &mut self,
        session: Resource<CommandHandle>,
        announce_end: bool,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let session = self.session(&session)?;
        Ok(self
            .ask_host_to_the_end(async move { session.keep(announce_end).await })
            .await)
    }

    async fn drop(&mut self, session: Resource<CommandHandle>) -> wasmtime::Result<()> {
        self.table.delete(session)?;
        Ok(())
    }
}

impl wit::Host for Deny {}

impl wit::HostCommandSession for Deny {
    async fn spawn(
        &mut self,
        _spec: CommandSpec,
    ) -> wasmtime::Result<Result<Resource<CommandHandle>, Failure>> {
        Ok(Err(Failure::denied(Capability::Commands)))
    }

    async fn attach(
        &mut self,
        _process_id: String,
    ) -> wasmtime::Result<Result<Resource<CommandHandle>, Failure>> {
        Ok(Err(Failure::denied(Capability::Commands)))
    }

    async fn process_id(&mut self, _session: Resource<CommandHandle>) -> wasmtime::Result<String> {
        Err(Deny.raise(Capability::Commands))
    }

    async fn read_output(
        &mut self,
        _session: Resource<CommandHandle>,
        _max_bytes: u32,
        _wait_ms: u32,
    ) -> wasmtime::Result<Result<OutputBatch, Failure>> {
        Ok(Err(Failure::denied(Capability::Commands)))
    }

    async fn write_stdin(
        &mut self,
        _session: Resource<CommandHandle>,
        _data: Vec<u8>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        Ok(Err(Failure::denied(Capability::Commands)))
    }

    async fn close_stdin(
        &mut self,
        _session: Resource<CommandHandle>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        Ok(Err(Failure::denied(Capability::Commands)))
    }

    async fn send_signal(
        &mut self,
        _session: Resource<CommandHandle>,
        _name: String,
    ) -> wasmtime::Result<Result<(), Failure>> {
        Ok(Err(Failure::denied(Capability::Commands)))
    }

    async fn status(
        &mut self,
        _session: Resource<CommandHandle>,
    ) -> wasmtime::Result<CommandStatus> {
        Err(Deny.raise(Capability::Commands))
    }

    async fn resize_terminal(
        &mut self,
        _session: Resource<CommandHandle>,
        _columns: u16,
        _rows: u16,
    ) -> wasmtime::Result<Result<(), Failure>> {
        Ok(Err(Failure::denied(Capability::Commands)))
    }

    async fn keep(
        &mut self,
        _session: Resource<CommandHandle>,
        _announce_end: bool,
    ) -> wasmtime::Result<Result<(), Failure>> {
        Ok(Err(Failure::denied(Capability::Commands)))
    }

    async fn drop(&mut self, _session: Resource<CommandHandle>) -> wasmtime::Result<()> {
        Ok(())
    }
}
