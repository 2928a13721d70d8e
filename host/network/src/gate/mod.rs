//! The gate: the one way by which tools speak HTTP. It decides where a request may go, looks the name up once, connects to what it
//! judged, follows redirects by judging each, and bounds all that comes back.
//!
//! A request is written by a model and a response by anybody. Nothing of either decides anything: what may be reached comes from
//! the person's configuration and from what a person granted to the call. It never reads the environment for proxies, never
//! connects to an address that is not public unless the person named that address, and never gives a secret to whoever asks.

mod address;
mod body;
#[cfg(test)]
mod corpus;
mod decode;
mod denial;
mod dial;
mod error;
mod exchange;
mod limits;
mod memory;
mod names;
mod pool;
mod redirect;
mod request;
mod route;
mod scope;
mod scrub;
mod secrets;
mod standing;

use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderMap};
use http::{Method, Response};
use hyper::body::Incoming;
use rustls::ClientConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use self::address::Address;
use self::body::{Keep, Source};
use self::decode::Coding;
use self::dial::{Connection, Trust, dial};
use self::error::Late;
use self::exchange::{Attempt, Outgoing, exchange};
use self::memory::{Kept, Key, Memory};
use self::pool::Pool;
use self::request::Checked;
use self::scrub::Scrub;
use crate::grants::{HostGrant, HostGrants};
use crate::resolver::{Pins, Resolve, SystemResolver};

pub use body::GateBody;
pub use denial::{Denial, Why};
pub use error::GateError;
pub use limits::GateLimits;
pub use request::GateRequest;
pub use scope::{DomainList, DomainPattern, Scope};
pub use secrets::{HostSecret, HostSecrets};
pub use standing::Standing;

/// What a gate is made from. The default lets every public host be read.
#[derive(Clone)]
pub struct GateOptions {
    /// What may be reached without a grant.
    pub scope: Scope,
    /// What the person granted to all calls: each host for any method, and alone what leads to an address that is not public.
    pub grants: HostGrants,
    /// What tools use without having it.
    pub secrets: HostSecrets,
    /// How much one request may take.
    pub limits: GateLimits,
    /// Who looks names up.
    pub resolver: Arc<dyn Resolve>,
    /// Which certificates are believed; those of the machine where none.
    pub tls: Option<Arc<ClientConfig>>,
}

impl Default for GateOptions {
    fn default() -> GateOptions {
        GateOptions {
            scope: Scope::default(),
            grants: HostGrants::default(),
            secrets: HostSecrets::default(),
            limits: GateLimits::default(),
            resolver: Arc::new(SystemResolver),
            tls: None,
        }
    }
}

impl std::fmt::Debug for GateOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GateOptions")
            .field("scope", &self.scope)
            .field("grants", &self.grants)
            .field("secrets", &self.secrets)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// What one call may do beyond, or not do, of what its Session may.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// Only GET, HEAD and OPTIONS without a body.
    pub reads_only: bool,
    /// Hosts that a person granted to this call, for any method it has.
    pub hosts: HostGrants,
}

/// The head of a response, and its body.
#[derive(Debug)]
pub struct GateResponse {
    /// The status code.
    pub status: u16,
    /// In the order in which they came, without secrets.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Where it came from.
    pub final_url: String,
    /// Decompressed.
    pub body: GateBody,
}

/// The gate of one Session. Clones share it.
#[derive(Clone)]
pub struct Gate(Arc<Shared>);

/// What all requests of a Session have in common.
struct Shared {
    scope: Scope,
    grants: HostGrants,
    secrets: HostSecrets,
    scrub: Option<Arc<Scrub>>,
    limits: GateLimits,
    pins: Pins,
    trust: Trust,
    pool: Pool,
    memory: Memory,
    at_once: Arc<Semaphore>,
}

impl Gate {
    /// Nothing is opened or looked up.
    pub fn new(options: GateOptions) -> Gate {
        let GateOptions {
            scope,
            grants,
            secrets,
            limits,
            resolver,
            tls,
        } = options;
        Gate(Arc::new(Shared {
            scope,
            grants,
            scrub: Scrub::new(&secrets),
            secrets,
            pins: Pins::new(resolver, limits.connect),
            trust: Trust::new(tls),
            pool: Pool::default(),
            memory: Memory::default(),
            at_once: Arc::new(Semaphore::new(limits.at_once)),
            limits,
        }))
    }

    /// Sends a request, follows where it is led, and gives the head of what comes in the end. Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// It was refused, is not understood, or failed.
    pub async fn send(
        &self,
        request: GateRequest,
        reach: &Reach,
    ) -> Result<GateResponse, GateError> {
        let shared = &self.0;
        shared
            .send(&request, reach)
            .await
            .map_err(|error| match &shared.scrub {
                Some(scrub) => error.without(scrub),
                None => error,
            })
    }

    /// What a grant would add to what a call reaches anyway.
    pub fn standing(&self, grant: &HostGrant, reads_only: bool) -> Standing {
        self.0.standing(grant, reads_only)
    }

    /// Ends the connections that wait.
    pub fn close(&self) {
        self.0.pool.clear();
    }
}

impl Shared {
    async fn send(
        self: &Arc<Shared>,
        request: &GateRequest,
        reach: &Reach,
    ) -> Result<GateResponse, GateError> {
        let checked = Checked::new(request, &self.limits)?;
        if request.url.contains(secrets::PLACEHOLDER) {
            return Err(GateError::invalid(
                "a secret stands in the value of a header field only; every server on the way writes URLs down",
            ));
        }
        let address = Address::parse(&request.url)?;
        Sending::new(self, request, reach)
            .follow(checked, address)
            .await
    }
}

/// One request on its way.
struct Sending<'a> {
    shared: &'a Arc<Shared>,
    reach: &'a Reach,
    deadline: Instant,
    slow: Late,
    max_redirects: u32,
}

impl<'a> Sending<'a> {
    fn new(shared: &'a Arc<Shared>, request: &GateRequest, reach: &'a Reach) -> Sending<'a> {
        let limits = &shared.limits;
        let limit = request.timeout.unwrap_or(limits.total);
        let limit = limit.clamp(Duration::from_millis(1), limits.longest_total);
        let redirects = request.max_redirects.unwrap_or(limits.redirects);
        Sending {
            shared,
            reach,
            deadline: Instant::now() + limit,
            slow: Arc::new(move |what| GateError::TimedOut {
                what: what.to_owned(),
                limit,
            }),
            max_redirects: redirects.min(limits.most_redirects),
        }
    }

    async fn follow(
        &self,
        mut request: Checked,
        mut address: Address,
    ) -> Result<GateResponse, GateError> {
        let permit = timeout_at(
            self.deadline,
            Arc::clone(&self.shared.at_once).acquire_owned(),
        )
        .await
        .map_err(|_| (self.slow)("waiting for other requests"))?
        .map_err(|_| GateError::failed("the Session has ended"))?;
        let key = Key::new(&address, &request.headers, self.max_redirects);
        let is_get = request.method == Method::GET && request.reads_only();
        let max_age = request.max_age.filter(|_| is_get);
        if let Some(max_age) = max_age
            && let Some((kept, age)) = self.shared.memory.recall(&key, max_age)
        {
            return self.recalled(&kept, age, permit);
        }
        let mut way = Vec::new();
        let mut used_secret = false;
        loop {
            let (connection, response, with_secret) = self.ask(&request, &address).await?;
            used_secret |= with_secret;
            way.push(address.clone());
            let next = match way.len() <= self.max_redirects as usize {
                true => redirect::target(&address, response.status(), response.headers())?
                    .filter(|next| self.shared.may_lead(&address, next, self.reach)),
                // Whoever follows no further gets the response itself, wherever it leads.
                false => None,
            };
            if let Some(next) = next {
                redirect::adapt(&mut request, response.status(), &address, &next);
                address = next;
                continue;
            }
            if used_secret || self.shared.secrets.is_any_for(&address) {
                decode::can_be_looked_through(&request.method, &address, response.headers())?;
            }
            let keep = max_age
                .filter(|_| !used_secret && response.status().is_success())
                .map(|_| key);
            return Ok(self.answered(connection, response, &request, way, keep, permit));
        }
    }

    /// One hop: judged, connected, sent.
    async fn ask(
        &self,
        request: &Checked,
        to: &Address,
    ) -> Result<(Connection, Response<Incoming>, bool), GateError> {
        let shared = self.shared;
        let permit = shared.permit(to, request.reads_only(), self.reach)?;
        let mut headers = request.headers.clone();
        let with_secret = shared
            .secrets
            .fill(&mut headers, to, permit.is_loopback())?;
        let outgoing = Outgoing {
            method: request.method.clone(),
            headers,
            body: request.body.clone(),
        };
        let addresses = shared.addresses(to, &permit, self.deadline).await?;
        // One that waited may have been ended by the other side meanwhile.
        while let Some(mut connection) = shared.pool.take(to) {
            let attempt = self.exchange(&mut connection, &outgoing, to).await?;
            if let Attempt::Answered(response) = attempt {
                return Ok((connection, response, with_secret));
            }
        }
        let mut connection = dial(
            to,
            &addresses,
            &shared.trust,
            &shared.limits,
            self.deadline,
            &self.slow,
        )
        .await?;
        match self.exchange(&mut connection, &outgoing, to).await? {
            Attempt::Answered(response) => Ok((connection, response, with_secret)),
            Attempt::NotSent => Err(GateError::failed(format!(
                "{} closed the connection before the request",
                to.target.host
            ))),
        }
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        outgoing: &Outgoing,
        to: &Address,
    ) -> Result<Attempt, GateError> {
        exchange(connection, outgoing, to, self.deadline, &self.slow).await
    }

    fn answered(
        &self,
        connection: Connection,
        response: Response<Incoming>,
        request: &Checked,
        way: Vec<Address>,
        key: Option<Key>,
        permit: OwnedSemaphorePermit,
    ) -> GateResponse {
        let shared = self.shared;
        let (head, incoming) = response.into_parts();
        let is_gzip = Coding::of(&head.headers) == Coding::Gzip && request.method != Method::HEAD;
        let status = head.status.as_u16();
        let headers = self.shown(&head.headers, is_gzip);
        let last = way.last().expect("a response has come from somewhere");
        let final_url = self.scrubbed_text(last.url.as_str());
        let source = Source {
            incoming,
            connection,
            target: last.target.clone(),
            is_secure: last.is_secure,
            shared: Arc::clone(shared),
            deadline: self.deadline,
            slow: Arc::clone(&self.slow),
            _permit: permit,
        };
        let keep = key.map(|key| Keep {
            shared: Arc::clone(shared),
            key,
            response: Kept {
                way,
                status,
                headers: headers.clone(),
                body: bytes::Bytes::new(),
            },
            body: Vec::new(),
        });
        let limit = shared.limits.response_body;
        GateResponse {
            status,
            headers,
            final_url,
            body: GateBody::new(source, is_gzip, shared.scrub.clone(), limit, keep),
        }
    }

    /// A response that was kept, if this call may reach all that it came through.
    fn recalled(
        &self,
        kept: &Kept,
        age: Duration,
        permit: OwnedSemaphorePermit,
    ) -> Result<GateResponse, GateError> {
        for address in &kept.way {
            self.shared.permit(address, true, self.reach)?;
        }
        let mut headers = kept.headers.clone();
        headers.retain(|(name, _)| name != "age");
        headers.push(("age".into(), age.as_secs().to_string().into_bytes()));
        Ok(GateResponse {
            status: kept.status,
            headers,
            final_url: kept
                .way
                .last()
                .map_or_else(String::new, |last| self.scrubbed_text(last.url.as_str())),
            body: GateBody::remembered(kept.body.clone(), permit),
        })
    }

    /// Header fields as a tool sees them: those of a body that was decompressed would mislead.
    fn shown(&self, headers: &HeaderMap, is_decompressed: bool) -> Vec<(String, Vec<u8>)> {
        let misleads = |name: &header::HeaderName| {
            is_decompressed && (name == header::CONTENT_ENCODING || name == header::CONTENT_LENGTH)
        };
        // One that is called by a secret cannot be told by another name.
        let scrub = self.shared.scrub.as_ref();
        let is_secret =
            |name: &header::HeaderName| scrub.is_some_and(|scrub| scrub.is_in(name.as_ref()));
        headers
            .iter()
            .filter(|(name, _)| !misleads(name) && !is_secret(name))
            .map(|(name, value)| (name.to_string(), self.scrubbed(value.as_bytes())))
            .collect()
    }

    fn scrubbed(&self, bytes: &[u8]) -> Vec<u8> {
        match &self.shared.scrub {
            Some(scrub) => scrub.all(bytes),
            None => bytes.to_vec(),
        }
    }

    fn scrubbed_text(&self, text: &str) -> String {
        match &self.shared.scrub {
            Some(scrub) => scrub.text(text),
            None => text.to_owned(),
        }
    }
}
