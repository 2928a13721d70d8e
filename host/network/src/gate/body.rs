//! The body of a response: read as it comes, decompressed, counted, without secrets. Dropping it ends the transfer.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use super::Shared;
use super::decode::Gzip;
use super::dial::Connection;
use super::error::{GateError, Late};
use super::memory::{Kept, Key, MOST_OF_ONE};
use super::scrub::Scrub;
use crate::host::Target;

/// A body under way.
pub struct GateBody {
    /// What comes from the other side; none where all of it has come.
    source: Option<Source>,
    gzip: Option<Gzip>,
    scrub: Option<Arc<Scrub>>,
    /// May be the beginning of a secret.
    held: Vec<u8>,
    ready: Bytes,
    /// Bytes that may still come.
    left: u64,
    limit: u64,
    keep: Option<Keep>,
    fault: Option<GateError>,
    /// Of a remembered one, which takes as much of the host's memory as one that is under way.
    _permit: Option<OwnedSemaphorePermit>,
}

/// The transfer.
pub(super) struct Source {
    pub(super) incoming: Incoming,
    pub(super) connection: Connection,
    pub(super) target: Target,
    pub(super) is_secure: bool,
    pub(super) shared: Arc<Shared>,
    pub(super) deadline: Instant,
    pub(super) slow: Late,
    pub(super) _permit: OwnedSemaphorePermit,
}

/// What is kept of it at its end.
pub(super) struct Keep {
    pub(super) shared: Arc<Shared>,
    pub(super) key: Key,
    pub(super) response: Kept,
    pub(super) body: Vec<u8>,
}

impl GateBody {
    pub(super) fn new(
        source: Source,
        is_gzip: bool,
        scrub: Option<Arc<Scrub>>,
        limit: u64,
        keep: Option<Keep>,
    ) -> GateBody {
        GateBody {
            source: Some(source),
            gzip: is_gzip.then(Gzip::new),
            scrub,
            held: Vec::new(),
            ready: Bytes::new(),
            left: limit,
            limit,
            keep,
            fault: None,
            _permit: None,
        }
    }

    pub(super) fn remembered(body: Bytes, permit: OwnedSemaphorePermit) -> GateBody {
        GateBody {
            source: None,
            gzip: None,
            scrub: None,
            held: Vec::new(),
            ready: body,
            left: 0,
            limit: 0,
            keep: None,
            fault: None,
            _permit: Some(permit),
        }
    }

    /// The next bytes, at least one and at most `max`; none at the end.
    ///
    /// # Errors
    ///
    /// The transfer broke, took too long, or is too large. It stays that way.
    pub async fn read(&mut self, max: usize) -> Result<Option<Bytes>, GateError> {
        while self.ready.is_empty() {
            if let Some(fault) = &self.fault {
                return Err(fault.clone());
            }
            match self.advance().await {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(fault) => {
                    self.source = None;
                    self.keep = None;
                    self.fault = Some(match &self.scrub {
                        Some(scrub) => fault.without(scrub),
                        None => fault,
                    });
                }
            }
        }
        let taken = self.ready.len().min(max.max(1));
        Ok(Some(self.ready.split_to(taken)))
    }

    /// Lets a little more come; false where there is no more.
    async fn advance(&mut self) -> Result<bool, GateError> {
        if let Some(bytes) = self.gzip.as_mut().map_or(Ok(None), Gzip::next)? {
            self.take_in(&bytes, false)?;
            return Ok(true);
        }
        let Some(source) = &mut self.source else {
            return Ok(false);
        };
        match source.next().await? {
            Some(bytes) => match &mut self.gzip {
                Some(gzip) => gzip.push(bytes),
                None => self.take_in(&bytes, false)?,
            },
            None => {
                let rest = self.gzip.as_mut().map_or(Ok(Vec::new()), Gzip::finish)?;
                self.take_in(&rest, true)?;
                if let Some(source) = self.source.take() {
                    source.hand_back();
                }
                if let Some(keep) = self.keep.take() {
                    keep.done();
                }
            }
        }
        Ok(true)
    }

    /// Makes bytes ready, of which none are.
    fn take_in(&mut self, bytes: &[u8], is_end: bool) -> Result<(), GateError> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            GateError::TooLarge(format!(
                "the body of the response is over {} bytes",
                self.limit
            ))
        })?;
        self.ready = match &self.scrub {
            None => Bytes::copy_from_slice(bytes),
            Some(scrub) => {
                self.held.extend_from_slice(bytes);
                scrub.settle(&mut self.held, is_end).into()
            }
        };
        if let Some(keep) = &mut self.keep {
            keep.body.extend_from_slice(&self.ready);
            if keep.body.len() > MOST_OF_ONE {
                self.keep = None;
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for GateBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GateBody").finish_non_exhaustive()
    }
}

impl Source {
    /// The next bytes as they come; none at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, GateError> {
        let idle = self.shared.limits.idle;
        loop {
            let silence = Instant::now() + idle;
            let end = self.deadline.min(silence);
            let host = &self.target.host;
            let frame = match timeout_at(end, self.incoming.frame()).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => {
                    return Err(GateError::failed(format!(
                        "the response of {host} broke off: {error}"
                    )));
                }
                Err(_) if silence < self.deadline => {
                    return Err(GateError::TimedOut {
                        what: format!("a further byte from {host}"),
                        limit: idle,
                    });
                }
                Err(_) => return Err((self.slow)(&format!("the response of {host}"))),
            };
            // Trailers are passed over.
            if let Ok(bytes) = frame.into_data()
                && bytes.has_remaining()
            {
                return Ok(Some(bytes));
            }
        }
    }

    fn hand_back(self) {
        self.shared
            .pool
            .put(self.target, self.is_secure, self.connection);
    }
}

impl Keep {
    fn done(self) {
        let Keep {
            shared,
            key,
            mut response,
            body,
        } = self;
        response.body = body.into();
        shared.memory.keep(key, response);
    }
}
