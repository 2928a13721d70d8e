//! `web-search`: a search engine that the operator set up.

mod json;

use async_trait::async_trait;

use super::{Deny, Failure, Recorder, Refusal};
use crate::bindings::floe::tool::web_search as wit;
pub use crate::bindings::floe::tool::web_search::{Hit, Hits};
use crate::capability_set::Capability;
use crate::state::CallState;
pub use json::{JsonEngine, JsonEngineOptions, JsonSearch};

/// Searches the web. Runs on the host's runtime.
#[async_trait]
pub trait WebSearch: Send + Sync {
    /// At most `max_results` hits for one query.
    async fn search(&self, query: &str, max_results: u32) -> Result<Hits, Failure>;
}

#[async_trait]
impl<R: Refusal> WebSearch for R {
    async fn search(&self, _query: &str, _max_results: u32) -> Result<Hits, Failure> {
        Err(self.refuse(Capability::WebSearch))
    }
}

/// What answers where the operator set no engine up.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEngine;

#[async_trait]
impl WebSearch for NoEngine {
    async fn search(&self, _query: &str, _max_results: u32) -> Result<Hits, Failure> {
        Err(
            Failure::new("unsupported", "no search engine is set up here.").with_hint(
                "The person can name one with web_search.url in the configuration. Until then go on without, or read pages whose \
                 address you know.",
            ),
        )
    }
}

/// An engine that finds nothing, for tests.
#[derive(Clone, Debug, Default)]
pub struct RecordingWebSearch {
    /// What was asked.
    pub requests: Recorder,
}

#[async_trait]
impl WebSearch for RecordingWebSearch {
    async fn search(&self, query: &str, max_results: u32) -> Result<Hits, Failure> {
        self.requests
            .record(format!("search {query} {max_results}"));
        Ok(Hits {
            provider: "recording".to_owned(),
            items: Vec::new(),
        })
    }
}

impl wit::Host for CallState {
    async fn search(
        &mut self,
        query: String,
        max_results: u32,
    ) -> wasmtime::Result<Result<Hits, Failure>> {
        let engine = self.hosts.web_search.clone();
        Ok(self
            .ask_host(async move { engine.search(&query, max_results).await })
            .await)
    }
}

impl wit::Host for Deny {
    async fn search(
        &mut self,
        _query: String,
        _max_results: u32,
    ) -> wasmtime::Result<Result<Hits, Failure>> {
        Ok(Err(Failure::denied(Capability::WebSearch)))
    }
}
