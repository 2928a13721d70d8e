//! `subagents`: child Sessions. One whose handle goes away ends, unless the tool kept it.

mod binding;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Failure, Recorder, Refusal};
pub use crate::bindings::floe::tool::subagents::{SubagentRequest, SubagentState, SubagentStatus};
use crate::capability_set::Capability;

/// Starts child Sessions and finds those that live. Runs on the host's runtime.
#[async_trait]
pub trait Subagents: Send + Sync {
    /// Starts one. It runs to its end once begun, also where the caller is gone; what it returns is then dropped.
    async fn start(&self, request: SubagentRequest) -> Result<Arc<dyn Subagent>, Failure>;

    /// Finds one by its id.
    async fn attach(&self, subagent_id: &str) -> Result<Arc<dyn Subagent>, Failure>;
}

/// One child Session. Dropping it is letting go: what was not kept ends. The drop may come on any thread and must not block.
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
}

/// A guest's handle of a child Session.
pub struct SubagentHandle(Arc<dyn Subagent>);

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
}
