//! `language-server`: definitions, references, diagnostics and the like.

use std::sync::Arc;

use async_trait::async_trait;
use floe_language::{Kind, LanguageServers, QueryError};

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

/// The language servers of a Session.
#[derive(Clone)]
pub struct SessionLanguageServers(Arc<LanguageServers>);

impl SessionLanguageServers {
    /// Questions go to these.
    pub fn new(servers: Arc<LanguageServers>) -> SessionLanguageServers {
        SessionLanguageServers(servers)
    }
}

#[async_trait]
impl LanguageServer for SessionLanguageServers {
    async fn ask(&self, query: Query) -> Result<QueryAnswer, Failure> {
        let kind = Kind::from_name(&query.kind).ok_or_else(|| {
            let known = Kind::ALL.map(Kind::as_str).join(", ");
            let message = format!("There is no kind of question \"{}\".", query.kind);
            Failure::new("invalid-args", message).with_hint(format!("Known are: {known}."))
        })?;
        let place = |Position { line, character }| floe_language::Position { line, character };
        let query = floe_language::Query {
            kind,
            language: query.language,
            file: query.file,
            target: query.target.map(|target| match target {
                Target::At(position) => floe_language::Target::At(place(position)),
                Target::Named(name) => floe_language::Target::Named(name),
            }),
            max_results: query.max_results,
        };
        let answer = self.0.ask(&query).await.map_err(failure)?;
        let place = |floe_language::Position { line, character }| Position { line, character };
        let location = |found: floe_language::Location| Location {
            path: found.path,
            start: place(found.start),
            end: place(found.end),
            text: found.text,
        };
        Ok(QueryAnswer {
            locations: answer.locations.into_iter().map(location).collect(),
            text: answer.text,
        })
    }
}

fn failure(error: QueryError) -> Failure {
    match error {
        QueryError::Workspace(error) => error.into(),
        error => Failure {
            code: error.code().to_owned(),
            hint: error.hint().map(str::to_owned),
            retryable: error.is_retryable(),
            message: error.to_string(),
        },
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
