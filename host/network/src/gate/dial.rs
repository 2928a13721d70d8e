//! From addresses to a connection that speaks HTTP. There is no resolver here: what is connected to are the addresses that were
//! judged, and the certificate must be that of the name that was asked for.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

use super::address::Address;
use super::error::{GateError, Late};
use super::limits::{GateLimits, LONGEST_RESPONSE_HEAD, MOST_RESPONSE_HEADERS};
use crate::dial::{Unreachable, connect};
use crate::host::Host;

/// Characters of the reason why there is no encrypted connection.
const LONGEST_REASON: usize = 300;

/// A connection. Dropping it ends it, whatever is under way.
pub(super) struct Connection {
    pub(super) sender: http1::SendRequest<Full<Bytes>>,
    _task: AbortOnDropHandle<()>,
}

/// Which certificates are believed; the machine's own are read when the first encrypted connection needs them.
pub(super) struct Trust(OnceLock<Result<TlsConnector, String>>);

impl Trust {
    pub(super) fn new(given: Option<Arc<ClientConfig>>) -> Trust {
        Trust(given.map_or_else(OnceLock::new, |config| {
            OnceLock::from(Ok(TlsConnector::from(config)))
        }))
    }

    fn connector(&self) -> Result<TlsConnector, GateError> {
        let made = self
            .0
            .get_or_init(|| of_the_machine().map_err(|e| e.to_string()));
        made.clone()
            .map_err(|error| GateError::failed(format!("no certificate can be checked: {error}")))
    }
}

fn of_the_machine() -> Result<TlsConnector, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Connects to one of `addresses`, all of which were judged to be those of `to`.
pub(super) async fn dial(
    to: &Address,
    addresses: &[SocketAddr],
    trust: &Trust,
    limits: &GateLimits,
    deadline: Instant,
    late: &Late,
) -> Result<Connection, GateError> {
    let host = &to.target.host;
    let patience = Instant::now() + limits.connect;
    let end = deadline.min(patience);
    let slow = || match end < patience {
        true => late(&format!("connecting to {host}")),
        false => GateError::TimedOut {
            what: format!("connecting to {host}"),
            limit: limits.connect,
        },
    };
    let stream = match connect(addresses, end).await {
        Ok(stream) => stream,
        Err(Unreachable::TimedOut) => return Err(slow()),
        Err(Unreachable::Failed(error)) => {
            let reason = error.kind();
            return Err(GateError::failed(format!(
                "{host} cannot be reached: {reason}"
            )));
        }
        Err(_) => return Err(GateError::failed(format!("{host} cannot be reached"))),
    };
    let _ = stream.set_nodelay(true);
    if !to.is_secure {
        return speak(stream, host).await;
    }
    let name = match host {
        Host::Name(name) => ServerName::try_from(name.clone())
            .map_err(|_| GateError::invalid(format!("{host} is no name for a certificate")))?,
        Host::Address(address) => ServerName::IpAddress((*address).into()),
    };
    let connector = trust.connector()?;
    let stream = timeout_at(end, connector.connect(name, stream))
        .await
        .map_err(|_| slow())?
        .map_err(|error| {
            // It may list all names of a certificate, which whoever made that chose.
            let reason: String = error.to_string().chars().take(LONGEST_REASON).collect();
            GateError::failed(format!("no encrypted connection to {host}: {reason}"))
        })?;
    speak(stream, host).await
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    host: &Host,
) -> Result<Connection, GateError> {
    let (sender, connection) = http1::Builder::new()
        .max_headers(MOST_RESPONSE_HEADERS)
        .max_buf_size(LONGEST_RESPONSE_HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|_| GateError::failed(format!("{host} does not take a request")))?;
    let task = tokio::spawn(async move {
        // What goes wrong is told where the response is waited for.
        let _ = connection.await;
    });
    Ok(Connection {
        sender,
        _task: AbortOnDropHandle::new(task),
    })
}
