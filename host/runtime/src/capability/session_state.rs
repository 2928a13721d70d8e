//! `session-state`: the todo list, the plan and the mode of the Session.

use async_trait::async_trait;

use super::{Deny, Failure, Recorder, Refusal};
use crate::bindings::floe::tool::session_state as wit;
pub use crate::bindings::floe::tool::session_state::{TodoItem, TodoStatus};
use crate::call::Raised;
use crate::capability_set::Capability;
use crate::state::CallState;

/// What a tool may know and change about its Session. Runs on the host's runtime.
///
/// `todos` and `mode` have no failure in the contract; a failure of theirs ends the call with it.
#[async_trait]
pub trait SessionState: Send + Sync {
    /// The todo list.
    async fn todos(&self) -> Result<Vec<TodoItem>, Failure>;

    /// Replaces the todo list.
    async fn set_todos(&self, items: Vec<TodoItem>) -> Result<(), Failure>;

    /// Proposes a plan and waits: `approved`, `rejected` or `revise`, with the person's words.
    async fn propose_plan(&self, plan: &str) -> Result<(String, Option<String>), Failure>;

    /// `plan` or `build`.
    async fn mode(&self) -> Result<String, Failure>;
}

#[async_trait]
impl<R: Refusal> SessionState for R {
    async fn todos(&self) -> Result<Vec<TodoItem>, Failure> {
        Err(self.refuse(Capability::SessionState))
    }

    async fn set_todos(&self, _items: Vec<TodoItem>) -> Result<(), Failure> {
        Err(self.refuse(Capability::SessionState))
    }

    async fn propose_plan(&self, _plan: &str) -> Result<(String, Option<String>), Failure> {
        Err(self.refuse(Capability::SessionState))
    }

    async fn mode(&self) -> Result<String, Failure> {
        Err(self.refuse(Capability::SessionState))
    }
}

/// An empty todo list in build mode that approves every plan, for tests.
#[derive(Clone, Debug, Default)]
pub struct RecordingSessionState {
    /// What was asked.
    pub requests: Recorder,
}

#[async_trait]
impl SessionState for RecordingSessionState {
    async fn todos(&self) -> Result<Vec<TodoItem>, Failure> {
        self.requests.record("todos");
        Ok(Vec::new())
    }

    async fn set_todos(&self, items: Vec<TodoItem>) -> Result<(), Failure> {
        self.requests.record(format!("set-todos {}", items.len()));
        Ok(())
    }

    async fn propose_plan(&self, plan: &str) -> Result<(String, Option<String>), Failure> {
        self.requests.record(format!("propose-plan {plan}"));
        Ok(("approved".to_owned(), None))
    }

    async fn mode(&self) -> Result<String, Failure> {
        self.requests.record("mode");
        Ok("build".to_owned())
    }
}

impl wit::Host for CallState {
    async fn todos(&mut self) -> wasmtime::Result<Vec<TodoItem>> {
        let session = self.hosts.session_state.clone();
        let todos = self.ask_host(async move { session.todos().await }).await;
        Ok(todos.map_err(Raised)?)
    }

    async fn set_todos(&mut self, items: Vec<TodoItem>) -> wasmtime::Result<Result<(), Failure>> {
        let session = self.hosts.session_state.clone();
        Ok(self
            .ask_host(async move { session.set_todos(items).await })
            .await)
    }

    async fn propose_plan(
        &mut self,
        plan: String,
    ) -> wasmtime::Result<Result<(String, Option<String>), Failure>> {
        let session = self.hosts.session_state.clone();
        Ok(self
            .ask_host(async move { session.propose_plan(&plan).await })
            .await)
    }

    async fn mode(&mut self) -> wasmtime::Result<String> {
        let session = self.hosts.session_state.clone();
        let mode = self.ask_host(async move { session.mode().await }).await;
        Ok(mode.map_err(Raised)?)
    }
}

impl wit::Host for Deny {
    async fn todos(&mut self) -> wasmtime::Result<Vec<TodoItem>> {
        Err(Deny.raise(Capability::SessionState))
    }

    async fn set_todos(&mut self, _items: Vec<TodoItem>) -> wasmtime::Result<Result<(), Failure>> {
        Ok(Err(Failure::denied(Capability::SessionState)))
    }

    async fn propose_plan(
        &mut self,
        _plan: String,
    ) -> wasmtime::Result<Result<(String, Option<String>), Failure>> {
        Ok(Err(Failure::denied(Capability::SessionState)))
    }

    async fn mode(&mut self) -> wasmtime::Result<String> {
        Err(Deny.raise(Capability::SessionState))
    }
}
