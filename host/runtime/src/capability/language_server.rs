//! `language-server`: definitions, references, diagnostics and the like.

use async_trait::async_trait;

use super::{Deny, Failure, Recorder, Refusal};
use crate::bindings::floe::tool::language_server as wit;
pub use crate::bindings::floe::tool::language_server::{
    Location, Position, Query, QueryAnswer, Target,
};
use crate::capability_set::Capability;
use crate::state::CallState;

/// Asks language servers. Runs on the host's runtime.
#[async_trait]
pub trait LanguageServer: Send + Sync {
    /// Asks one question.
    async fn ask(&self, query: Query) -> Result<QueryAnswer, Failure>;
}

#[async_trait]
impl<R: Refusal> LanguageServer for R {
    async fn ask(&self, _query: Query) -> Result<QueryAnswer, Failure> {
        Err(self.refuse(Capability::LanguageServer))
    }
}

/// A server that finds nothing, for tests.
#[derive(Clone, Debug, Default)]
pub struct RecordingLanguageServer {
    /// What was asked.
    pub requests: Recorder,
}

#[async_trait]
impl LanguageServer for RecordingLanguageServer {
    async fn ask(&self, query: Query) -> Result<QueryAnswer, Failure> {
        self.requests
            .record(format!("ask {} {}", query.kind, query.file));
        Ok(QueryAnswer {
            locations: Vec::new(),
            text: None,
        })
    }
}

impl wit::Host for CallState {
    async fn ask(&mut self, query: Query) -> wasmtime::Result<Result<QueryAnswer, Failure>> {
        let server = self.hosts.language_server.clone();
        Ok(self.ask_host(async move { server.ask(query).await }).await)
    }
}

impl wit::Host for Deny {
    async fn ask(&mut self, _query: Query) -> wasmtime::Result<Result<QueryAnswer, Failure>> {
        Ok(Err(Failure::denied(Capability::LanguageServer)))
    }
}
