//! The proxy of a Session: one listener inside the Session's network namespace, the hosts that its commands may reach, and
//! what was moved. It ends with the Session, and everything that goes through it ends with it.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::connection;
use crate::credentials::Credentials;
use crate::environment;
use crate::grants::HostGrants;
use crate::refusal::{ObserveNetwork, Refusal, Unobserved};
use crate::resolver::{Pins, Resolve, SystemResolver};

/// How long accepting rests when the machine has no descriptor left.
const REST: Duration = Duration::from_millis(100);

/// The bounds of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Connections at once; further ones wait in line.
    pub connections: usize,
    /// How long a client may take to say what it wants.
    pub request: Duration,
    /// How long resolving a name may take, and how long connecting may take.
    pub connect: Duration,
    /// How long a connection may be silent.
    pub idle: Duration,
}

impl Default for ProxyLimits {
    fn default() -> ProxyLimits {
        ProxyLimits {
            connections: 64,
            request: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(300),
        }
    }
}

/// What a proxy is made of.
pub struct ProxyOptions {
    /// The hosts that every command of the Session may reach.
    pub grants: HostGrants,
    /// The bounds.
    pub limits: ProxyLimits,
    /// Who is asked for the addresses of names.
    pub resolver: Arc<dyn Resolve>,
    /// Who is told what was refused.
    pub observer: Arc<dyn ObserveNetwork>,
}

impl Default for ProxyOptions {
    /// Nothing is granted, the machine resolves, nobody is told.
    fn default() -> ProxyOptions {
        ProxyOptions {
            grants: HostGrants::default(),
            limits: ProxyLimits::default(),
            resolver: Arc::new(SystemResolver),
            observer: Arc::new(Unobserved),
        }
    }
}

/// What went through a proxy so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Connections that clients made.
    pub connections: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Bytes from commands to hosts.
    pub sent: u64,
    /// Bytes from hosts to commands.
    pub received: u64,
}

/// The proxy of one Session. Dropping it ends it.
pub struct Proxy {
    shared: Arc<Shared>,
    /// Where clients find it; none before it serves.
    port: OnceLock<u16>,
}

/// What all connections of a proxy have.
pub(crate) struct Shared {
    pub(crate) limits: ProxyLimits,
    pub(crate) grants: RwLock<HostGrants>,
    pub(crate) credentials: Credentials,
    pub(crate) pins: Pins,
    pub(crate) counters: Counters,
    observer: Arc<dyn ObserveNetwork>,
    stopped: CancellationToken,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    connections: AtomicU64,
    refused: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
}

impl Shared {
    pub(crate) fn refuse(&self, refusal: &Refusal) {
        self.counters.refused.fetch_add(1, Ordering::Relaxed);
        self.observer.refused(refusal);
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("port", &self.port.get())
            .field("traffic", &self.traffic())
            .finish_non_exhaustive()
    }
}

impl Proxy {
    /// A proxy that does not serve yet. Nothing is started.
    pub fn new(options: ProxyOptions) -> Arc<Proxy> {
        Arc::new(Proxy {
            shared: Arc::new(Shared {
                limits: options.limits,
                grants: RwLock::new(options.grants),
                credentials: Credentials::default(),
                pins: Pins::new(options.resolver, options.limits.connect),
                counters: Counters::default(),
                observer: options.observer,
                stopped: CancellationToken::new(),
            }),
            port: OnceLock::new(),
        })
    }

    /// Serves those who connect to `listener`, on the current tokio runtime, until it is closed or dropped. Once.
    ///
    /// # Errors
    ///
    /// The listener cannot be used, or it serves already.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn serve(&self, listener: std::net::TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let listener = TcpListener::from_std(listener)?;
        self.port
            .set(port)
            .map_err(|_| io::Error::from(io::ErrorKind::AlreadyExists))?;
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let stopped = shared.stopped.clone();
            stopped.run_until_cancelled(accept(shared, listener)).await;
        });
        Ok(())
    }

    /// Whether it serves.
    pub fn serves(&self) -> bool {
        self.port.get().is_some() && !self.shared.stopped.is_cancelled()
    }

    /// Grants the whole Session further hosts.
    pub fn extend(&self, hosts: &HostGrants) {
        let grants = &self.shared.grants;
        grants
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(hosts);
    }

    /// The hosts that every command of the Session may reach now.
    pub fn grants(&self) -> HostGrants {
        let grants = &self.shared.grants;
        grants
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Grants further hosts to whoever shows the token. Dropping it takes them back, and cuts what runs on it.
    pub fn admit(&self, hosts: &HostGrants) -> Token {
        Token {
            secret: self.shared.credentials.add(hosts.clone()),
            shared: Arc::clone(&self.shared),
        }
    }

    /// The variables that lead a command through this proxy, with its token if it has one; none before it serves.
    pub fn environment(&self, token: Option<&Token>) -> Vec<(String, String)> {
        let secret = token.map(|token| token.secret.as_str());
        self.port
            .get()
            .map_or_else(Vec::new, |port| environment::variables(*port, secret))
    }

    /// What went through it so far.
    pub fn traffic(&self) -> Traffic {
        let counters = &self.shared.counters;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            connections: count(&counters.connections),
            refused: count(&counters.refused),
            sent: count(&counters.sent),
            received: count(&counters.received),
        }
    }

    /// Stops serving and cuts every connection. It does not serve again.
    pub fn close(&self) {
        self.shared.stopped.cancel();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.close();
    }
}

/// What a command shows to reach hosts that were granted to it alone.
pub struct Token {
    secret: String,
    shared: Arc<Shared>,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.shared.credentials.remove(&self.secret);
    }
}

/// Serves one client after the other, so many at once. A client beyond that waits in the kernel's queue.
async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    let places = Arc::new(Semaphore::new(shared.limits.connections));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((client, _)) => {
                shared.counters.connections.fetch_add(1, Ordering::Relaxed);
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    let stopped = shared.stopped.clone();
                    let served = connection::serve(&shared, client);
                    if let Some(Err(error)) = stopped.run_until_cancelled(served).await {
                        tracing::debug!(%error, "a connection through the proxy broke off");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection to the proxy cannot be taken");
                tokio::time::sleep(REST).await;
            }
        }
    }
}
