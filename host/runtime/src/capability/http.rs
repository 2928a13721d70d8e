//! `http`: requests through the network gate. The gate decides what is reached; nothing here opens a socket.

mod gated;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;
use wasmtime::component::Resource;

use super::{Deny, Failure, Recorder, Refusal};
use crate::bindings::floe::tool::http as wit;
pub use crate::bindings::floe::tool::http::{Header, Request};
use crate::capability_set::Capability;
use crate::state::CallState;

pub use gated::{GatedHttp, ObserveDenials};

/// Sends requests. Runs on the host's runtime.
#[async_trait]
pub trait Http: Send + Sync {
    /// Sends one and waits for the head of its response.
    async fn send(&self, request: Request) -> Result<Response, Failure>;
}

/// The head of a response, and its body to be read.
pub struct Response {
    /// The status code.
    pub status: u16,
    /// In the order in which they came.
    pub headers: Vec<Header>,
    /// Where the response came from, after redirects.
    pub final_url: String,
    /// The body.
    pub body: Box<dyn ResponseBody>,
}

/// A body under way. Dropping it ends the transfer.
#[async_trait]
pub trait ResponseBody: Send {
    /// The next bytes, at most `max_bytes`; none at the end.
    async fn read_chunk(&mut self, max_bytes: u32) -> Result<Option<Vec<u8>>, Failure>;
}

/// A guest's handle of a body.
pub struct BodyHandle(Arc<Mutex<Box<dyn ResponseBody>>>);

#[async_trait]
impl<R: Refusal> Http for R {
    async fn send(&self, _request: Request) -> Result<Response, Failure> {
        Err(self.refuse(Capability::Http))
    }
}

/// Answers every request with 200 and one body, for tests. Nothing is sent.
#[derive(Clone, Debug, Default)]
pub struct RecordingHttp {
    /// What was asked.
    pub requests: Recorder,
    /// The body of every response.
    pub body: Vec<u8>,
}

#[async_trait]
impl Http for RecordingHttp {
    async fn send(&self, request: Request) -> Result<Response, Failure> {
        self.requests
            .record(format!("send {} {}", request.method, request.url));
        Ok(Response {
            status: 200,
            headers: Vec::new(),
            final_url: request.url,
            body: Box::new(self.clone()),
        })
    }
}

#[async_trait]
impl ResponseBody for RecordingHttp {
    async fn read_chunk(&mut self, max_bytes: u32) -> Result<Option<Vec<u8>>, Failure> {
        self.requests.record(format!("read-chunk {max_bytes}"));
        let taken = self.body.len().min(max_bytes as usize);
        let chunk: Vec<u8> = self.body.drain(..taken).collect();
        Ok((!chunk.is_empty()).then_some(chunk))
    }
}

impl wit::Host for CallState {
    async fn send(&mut self, request: Request) -> wasmtime::Result<Result<wit::Response, Failure>> {
        let http = self.hosts.http.clone();
        let response = self.ask_host(async move { http.send(request).await }).await;
        let response = match response {
            Ok(response) => response,
            Err(failure) => return Ok(Err(failure)),
        };
        let body = self.keep(Ok(BodyHandle(Arc::new(Mutex::new(response.body)))))?;
        Ok(body.map(|body| wit::Response {
            status: response.status,
            headers: response.headers,
            final_url: response.final_url,
            body,
        }))
    }
}

impl wit::HostResponseBody for CallState {
    async fn read_chunk(
        &mut self,
        body: Resource<BodyHandle>,
        max_bytes: u32,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, Failure>> {
        let body = self.table.get(&body)?.0.clone();
        Ok(self
            .ask_host(async move { body.lock().await.read_chunk(max_bytes).await })
            .await)
    }

    async fn drop(&mut self, body: Resource<BodyHandle>) -> wasmtime::Result<()> {
        self.table.delete(body)?;
        Ok(())
    }
}

impl wit::Host for Deny {
    async fn send(
        &mut self,
        _request: Request,
    ) -> wasmtime::Result<Result<wit::Response, Failure>> {
        Ok(Err(Failure::denied(Capability::Http)))
    }
}

impl wit::HostResponseBody for Deny {
    async fn read_chunk(
        &mut self,
        _body: Resource<BodyHandle>,
        _max_bytes: u32,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, Failure>> {
        Ok(Err(Failure::denied(Capability::Http)))
    }

    async fn drop(&mut self, _body: Resource<BodyHandle>) -> wasmtime::Result<()> {
        Ok(())
    }
}
