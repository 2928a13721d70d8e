//! `interaction`: asks the person and waits for the answer, however long that takes. The deadline of the call holds here too.

use async_trait::async_trait;

use super::{Deny, Failure, Recorder, Refusal};
use crate::bindings::floe::tool::interaction as wit;
pub use crate::bindings::floe::tool::interaction::{Answer, Choice, Question};
use crate::capability_set::Capability;
use crate::state::CallState;

/// Asks the person. Runs on the host's runtime.
#[async_trait]
pub trait Interaction: Send + Sync {
    /// Asks and waits.
    async fn ask(&self, question: Question) -> Result<Answer, Failure>;
}

#[async_trait]
impl<R: Refusal> Interaction for R {
    async fn ask(&self, _question: Question) -> Result<Answer, Failure> {
        Err(self.refuse(Capability::Interaction))
    }
}

/// A person who says one thing, for tests.
#[derive(Clone, Debug, Default)]
pub struct RecordingInteraction {
    /// What was asked.
    pub requests: Recorder,
    /// What is answered.
    pub text: String,
}

#[async_trait]
impl Interaction for RecordingInteraction {
    async fn ask(&self, question: Question) -> Result<Answer, Failure> {
        self.requests.record(format!("ask {}", question.text));
        Ok(Answer {
            text: Some(self.text.clone()),
            selected: Vec::new(),
        })
    }
}

impl wit::Host for CallState {
    async fn ask(&mut self, question: Question) -> wasmtime::Result<Result<Answer, Failure>> {
        let interaction = self.hosts.interaction.clone();
        Ok(self
            .ask_host(async move { interaction.ask(question).await })
            .await)
    }
}

impl wit::Host for Deny {
    async fn ask(&mut self, _question: Question) -> wasmtime::Result<Result<Answer, Failure>> {
        Ok(Err(Failure::denied(Capability::Interaction)))
    }
}
