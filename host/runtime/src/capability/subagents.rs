//! `subagents`: child Sessions. One whose handle goes away ends, unless the tool kept it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use wasmtime::component::Resource;

use super::{Deny, Failure, Recorder, Refusal};
use crate::bindings::floe::tool::subagents as wit;
pub use crate::bindings::floe::tool::subagents::{SubagentRequest, SubagentState, SubagentStatus};
use crate::capability_set::Capability;
use crate::state::CallState;

/// Starts child Sessions and finds those that live. Runs on the host's runtime.
#[async_trait]
pub trait Subagents: Send + Sync {
    /// Starts one. It runs to its end once begun, also where the caller is gone; what it returns is then dropped.
    async fn start(&self, request: SubagentRequest) -> Result<Arc<dyn Subagent>, Failure>;

    /// Finds one by its id.
    async fn attach(&self, subagent_id: &str) -> Result<Arc<dyn Subagent>, Failure>;
}

/// One child Session.
#[async_trait]
pub trait Subagent: Send + Sync {
    /// Its id in this Session.
    fn subagent_id(&self) -> String;

    /// Gives it more to do.
    async fn send_prompt(&self, prompt: &str) -> Result<(), Failure>;

    /// Waits up to `wait` for something new.
    async fn wait(&self, wait: Duration) -> Result<SubagentStatus, Failure>;

    /// Ends it.
    async fn stop(&self) -> Result<(), Failure>;

    /// Leaves it alive after this call.
    async fn keep(&self) -> Result<(), Failure>;

    /// The handle is gone: what was not kept ends. Called once per handle, on any thread; must not block.
    fn release(&self);
}

/// A guest's handle of a child Session.
pub struct SubagentHandle(Arc<dyn Subagent>);

impl Drop for SubagentHandle {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[async_trait]
impl<R: Refusal> Subagents for R {
    async fn start(&self, _request: SubagentRequest) -> Result<Arc<dyn Subagent>, Failure> {
        Err(self.refuse(Capability::Subagents))
    }

    async fn attach(&self, _subagent_id: &str) -> Result<Arc<dyn Subagent>, Failure> {
        Err(self.refuse(Capability::Subagents))
    }
}

/// Children that have finished with one text, for tests.
#[derive(Clone, Debug, Default)]
pub struct RecordingSubagents {
    /// What was asked.
    pub requests: Recorder,
    /// What every child says.
    pub text: String,
}

#[async_trait]
impl Subagents for RecordingSubagents {
    async fn start(&self, request: SubagentRequest) -> Result<Arc<dyn Subagent>, Failure> {
        self.requests.record(format!("start {}", request.prompt));
        Ok(Arc::new(self.clone()))
    }

    async fn attach(&self, subagent_id: &str) -> Result<Arc<dyn Subagent>, Failure> {
        self.requests.record(format!("attach {subagent_id}"));
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Subagent for RecordingSubagents {
    fn subagent_id(&self) -> String {
        "agent-00000000".to_owned()
    }

    async fn send_prompt(&self, prompt: &str) -> Result<(), Failure> {
        self.requests.record(format!("send-prompt {prompt}"));
        Ok(())
    }

    async fn wait(&self, wait: Duration) -> Result<SubagentStatus, Failure> {
        self.requests.record(format!("wait {}", wait.as_millis()));
        Ok(SubagentStatus {
            state: SubagentState::Finished,
            text: self.text.clone(),
            pending_approvals: 0,
            failure: None,
        })
    }

    async fn stop(&self) -> Result<(), Failure> {
        self.requests.record("stop");
        Ok(())
    }

    async fn keep(&self) -> Result<(), Failure> {
        self.requests.record("keep");
        Ok(())
    }

    fn release(&self) {
        self.requests.record("release");
    }
}

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
