//! Connects a guest's `commands` to the call's host, or to `Deny`. How a command ended that the guest watched is written down
//! here, because a guest cannot be asked.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::Resource;

use super::{CommandHandle, CommandSession, CommandSpec, CommandStatus, OutputBatch};
use crate::bindings::floe::tool::commands as wit;
use crate::call::Raised;
use crate::capability::{Deny, Failure};
use crate::capability_set::Capability;
use crate::state::CallState;

impl CallState {
    fn session(
        &self,
        session: &Resource<CommandHandle>,
    ) -> wasmtime::Result<Arc<dyn CommandSession>> {
        Ok(self.table.get(session)?.session.clone())
    }

    /// Puts a command that the host handed out into the guest's table. From here on the handle holds it.
    fn hold(
        &mut self,
        session: Result<CommandHandle, Failure>,
    ) -> wasmtime::Result<Result<Resource<CommandHandle>, Failure>> {
        if let Ok(handle) = &session {
            self.record.confined(handle.session.confinement());
            self.record.note(handle.session.note());
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
                Ok(CommandHandle::new(session, raw_output))
            })
            .await;
        if let Ok(handle) = &spawned {
            self.record
                .started(&handle.session, handle.recording.as_ref());
        }
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
                Ok(CommandHandle::new(session, false))
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
        let handle = self.table.get(&session)?;
        let (raw_output, recording) = (handle.raw_output, handle.recording.clone());
        let session = self.session(&session)?;
        let wait = Duration::from_millis(wait_ms.into());
        let answer = self
            .ask_host(async move {
                let batch = session.read_output(max_bytes, wait).await?;
                let end = match batch.ended {
                    true => Some((session.status().await, session.end_note())),
                    false => None,
                };
                Ok((batch, end))
            })
            .await;
        Ok(answer.map(|(batch, end)| {
            if let Some((status, note)) = end {
                self.record.ended_with(&status, note);
            }
            if let Some(recording) = &recording {
                // Also where there is no text, so that what was dropped has a source.
                self.record.output.handed(recording, &[]);
            }
            if !raw_output && batch.dropped > 0 {
                self.record.output.dropped(batch.dropped);
            }
            if let Some(recording) = &recording {
                for chunk in &batch.chunks {
                    self.record.output.handed(recording, &chunk.data);
                }
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
        let (status, note) = self
            .ask_host(async move { Ok((session.status().await, session.end_note())) })
            .await
            .map_err(Raised)?;
        self.record.ended_with(&status, note);
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
