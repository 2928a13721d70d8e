//! The real implementation: everything goes through the network gate, which knows what this call may reach.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use floe_network::{Denial, Gate, GateBody, GateError, GateRequest, GateResponse, Reach};

use super::{Header, Http, Request, Response, ResponseBody};
use crate::capability::Failure;

/// Is told what the gate refused. Called while the call waits: it must not block.
pub trait ObserveDenials: Send + Sync {
    /// A request was not sent. May come as often as a tool tries.
    fn denied(&self, denial: &Denial);
}

/// HTTP through a gate, as far as one call may reach.
pub struct GatedHttp {
    gate: Gate,
    reach: Reach,
    observer: Arc<dyn ObserveDenials>,
}

impl GatedHttp {
    /// The HTTP of one call.
    pub fn new(gate: Gate, reach: Reach, observer: Arc<dyn ObserveDenials>) -> GatedHttp {
        GatedHttp {
            gate,
            reach,
            observer,
        }
    }
}

#[async_trait]
impl Http for GatedHttp {
    async fn send(&self, request: Request) -> Result<Response, Failure> {
        let headers = request.headers.into_iter();
        let request = GateRequest {
            method: request.method,
            url: request.url,
            headers: headers.map(|field| (field.name, field.value)).collect(),
            body: request.body,
            timeout: request
                .timeout_ms
                .map(|milliseconds| Duration::from_millis(milliseconds.into())),
            max_redirects: request.max_redirects,
        };
        let sent = self.gate.send(request, &self.reach).await;
        let GateResponse {
            status,
            headers,
            final_url,
            body,
        } = sent.map_err(|error| {
            if let Some(denial) = error.denial() {
                self.observer.denied(denial);
            }
            failure(&error)
        })?;
        let headers = headers.into_iter();
        Ok(Response {
            status,
            headers: headers
                .map(|(name, value)| Header { name, value })
                .collect(),
            final_url,
            body: Box::new(body),
        })
    }
}

#[async_trait]
impl ResponseBody for GateBody {
    async fn read_chunk(&mut self, max_bytes: u32) -> Result<Option<Vec<u8>>, Failure> {
        let read = self.read(max_bytes as usize).await;
        read.map(|bytes| bytes.map(Into::into))
            .map_err(|error| failure(&error))
    }
}

fn failure(error: &GateError) -> Failure {
    Failure {
        code: error.code().to_owned(),
        message: error.to_string(),
        hint: error.hint().map(str::to_owned),
        retryable: error.is_retryable(),
    }
}
