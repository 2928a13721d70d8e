//! The proxy of a Session: one listener inside the Session's network namespace, and the hosts that its commands may reach.
//! It ends with the Session, and everything that goes through it ends with it.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
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

/// The proxy of one Session. Dropping it ends it.
pub struct Proxy {
    shared: Arc<Shared>,
    /// Where clients find it; none before it serves.
    port: OnceLock<u16>,
}

/// What all connections of a proxy have.
pub(crate) struct Shared {
    pub(crate) limits: ProxyLimits,
    pub(crate) grants: HostGrants,
    pub(crate) credentials: Credentials,
    pub(crate) pins: Pins,
    observer: Arc<dyn ObserveNetwork>,
    stopped: CancellationToken,
}

impl Shared {
    pub(crate) fn refuse(&self, refusal: &Refusal) {
        self.observer.refused(refusal);
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("port", &self.port.get())
            .finish_non_exhaustive()
    }
}

impl Proxy {
    /// A proxy that does not serve yet. Nothing is started.
    pub fn new(options: ProxyOptions) -> Arc<Proxy> {
        Arc::new(Proxy {
            shared: Arc::new(Shared {
                limits: options.limits,
                grants: options.grants,
                credentials: Credentials::default(),
                pins: Pins::new(options.resolver, options.limits.connect),
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

    /// The hosts that every command of the Session may reach.
    pub fn grants(&self) -> &HostGrants {
        &self.shared.grants
    }

    /// Grants further hosts to whoever shows the token. Dropping it takes them back, and cuts what runs on it.
    ///
    /// # Errors
    ///
    /// The machine has no randomness to make a token of that nobody guesses.
    pub fn admit(&self, hosts: &HostGrants) -> io::Result<Token> {
        Ok(Token {
            secret: self.shared.credentials.add(hosts.clone())?,
            shared: Arc::clone(&self.shared),
        })
    }

    /// The variables that lead a command through this proxy, with its token if it has one; none before it serves.
    pub fn environment(&self, token: Option<&Token>) -> Vec<(String, String)> {
        let secret = token.map(|token| token.secret.as_str());
        self.port
            .get()
            .map_or_else(Vec::new, |port| environment::variables(*port, secret))
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
