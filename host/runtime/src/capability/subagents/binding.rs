//! Connects a guest's `subagents` to the call's host, or to `Deny`.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::Resource;

use super::{Subagent, SubagentHandle, SubagentRequest, SubagentStatus};
use crate::bindings::floe::tool::subagents as wit;
use crate::capability::{Deny, Failure};
use crate::capability_set::Capability;
use crate::state::CallState;

impl CallState {
    fn subagent(&self, subagent: &Resource<SubagentHandle>) -> wasmtime::Result<Arc<dyn Subagent>> {
        Ok(self.table.get(subagent)?.0.clone())
    }
}

impl wit::Host for CallState {}

impl wit::HostSubagent for CallState {
    async fn start(
        &mut self,
        request: SubagentRequest,
    ) -> wasmtime::Result<Result<Resource<SubagentHandle>, Failure>> {
        let subagents = self.hosts.subagents.clone();
        let started = self
            .ask_host_to_the_end(async move { subagents.start(request).await.map(SubagentHandle) })
            .await;
        self.keep(started)
    }

    async fn attach(
        &mut self,
        subagent_id: String,
    ) -> wasmtime::Result<Result<Resource<SubagentHandle>, Failure>> {
        let subagents = self.hosts.subagents.clone();
        let attached = self
            .ask_host_to_the_end(
                async move { subagents.attach(&subagent_id).await.map(SubagentHandle) },
            )
            .await;
        self.keep(attached)
    }

    async fn subagent_id(
        &mut self,
        subagent: Resource<SubagentHandle>,
    ) -> wasmtime::Result<String> {
        Ok(self.subagent(&subagent)?.subagent_id())
    }

    async fn send_prompt(
        &mut self,
        subagent: Resource<SubagentHandle>,
        prompt: String,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let subagent = self.subagent(&subagent)?;
        Ok(self
            .ask_host(async move { subagent.send_prompt(&prompt).await })
            .await)
    }

    async fn wait(
        &mut self,
        subagent: Resource<SubagentHandle>,
        wait_ms: u32,
    ) -> wasmtime::Result<Result<SubagentStatus, Failure>> {
        let subagent = self.subagent(&subagent)?;
        let wait = Duration::from_millis(wait_ms.into());
        Ok(self
            .ask_host(async move { subagent.wait(wait).await })
            .await)
    }

    async fn stop(
        &mut self,
        subagent: Resource<SubagentHandle>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let subagent = self.subagent(&subagent)?;
        Ok(self
            .ask_host_to_the_end(async move { subagent.stop().await })
            .await)
    }

    async fn keep(
        &mut self,
        subagent: Resource<SubagentHandle>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let subagent = self.subagent(&subagent)?;
        Ok(self
            .ask_host_to_the_end(async move { subagent.keep().await })
            .await)
    }

    async fn drop(&mut self, subagent: Resource<SubagentHandle>) -> wasmtime::Result<()> {
        self.table.delete(subagent)?;
        Ok(())
    }
}

impl wit::Host for Deny {}

impl wit::HostSubagent for Deny {
    async fn start(
        &mut self,
        _request: SubagentRequest,
    ) -> wasmtime::Result<Result<Resource<SubagentHandle>, Failure>> {
        Ok(Err(Failure::denied(Capability::Subagents)))
    }

    async fn attach(
        &mut self,
        _subagent_id: String,
    ) -> wasmtime::Result<Result<Resource<SubagentHandle>, Failure>> {
        Ok(Err(Failure::denied(Capability::Subagents)))
    }

    async fn subagent_id(
        &mut self,
        _subagent: Resource<SubagentHandle>,
    ) -> wasmtime::Result<String> {
        Err(Deny.raise(Capability::Subagents))
    }

    async fn send_prompt(
        &mut self,
        _subagent: Resource<SubagentHandle>,
        _prompt: String,
    ) -> wasmtime::Result<Result<(), Failure>> {
        Ok(Err(Failure::denied(Capability::Subagents)))
    }

    async fn wait(
        &mut self,
        _subagent: Resource<SubagentHandle>,
        _wait_ms: u32,
    ) -> wasmtime::Result<Result<SubagentStatus, Failure>> {
        Ok(Err(Failure::denied(Capability::Subagents)))
    }

    async fn stop(
        &mut self,
        _subagent: Resource<SubagentHandle>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        Ok(Err(Failure::denied(Capability::Subagents)))
    }

    async fn keep(
        &mut self,
        _subagent: Resource<SubagentHandle>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        Ok(Err(Failure::denied(Capability::Subagents)))
    }

    async fn drop(&mut self, _subagent: Resource<SubagentHandle>) -> wasmtime::Result<()> {
        Ok(())
    }
}
