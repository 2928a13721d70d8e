//! One connection from its first byte to its end: the Session is opened, served, and closed with its Trace made durable, whoever ends
//! it and however.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use floe_environment::{Question, Surface};
use floe_protocol::Source;
use floe_sandbox::Network;
use floe_session::{Closed, Session, SessionError, SessionOptions};
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::server::Server;
use crate::transport::Pipes;

/// What a call gets to end by itself when its client has gone: it may have been the last of a script.
const LAST_CALLS: Duration = Duration::from_millis(500);
/// What the rest gets when everything was told to end.
const CLOSING: Duration = Duration::from_secs(5);

/// Writes a question for a person, with everything escaped that comes from a model.
pub type Describe = Arc<dyn Fn(&Question) -> String + Send + Sync>;

/// A connection that has ended.
#[derive(Debug)]
pub struct Served {
    /// What the Session left behind.
    pub closed: Closed,
    /// Why the client was never served; the client's going away is no fault.
    pub fault: Option<String>,
}

/// A connection that could not begin.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The Session cannot be opened.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The threads at the pipes cannot start.
    #[error("the threads that read and write cannot start: {0}")]
    Threads(#[from] io::Error),
}

/// Serves a client on a pair of pipes until it closes them, or until `interrupted`. The Session is made of `options`; who is asked,
/// the surface and the source are set here, and the observer sees the stream as it would anywhere.
///
/// When it returns, nothing runs any more. The thread that reads may still wait for a client that holds its end open.
///
/// # Errors
///
/// The Session cannot be opened.
pub async fn serve(
    mut options: SessionOptions,
    describe: Describe,
    (input, output): (impl Read + Send + 'static, impl Write + Send + 'static),
    interrupted: &CancellationToken,
) -> Result<Served, ServeError> {
    let desk = Arc::new(Desk::new(Arc::clone(&options.observer), describe));
    options.observer = Arc::clone(&desk) as _;
    options.approver = Some(Arc::clone(&desk) as _);
    options.clarifier = Some(Arc::clone(&desk) as _);
    options.surface = Surface::Mcp;
    options.source = Some(Source::Mcp);
    let reaches_out = options.policy.network != Network::Off;
    let session = Arc::new(Session::open(options)?);
    let (gone, ended, stop) = (
        CancellationToken::new(),
        CancellationToken::new(),
        CancellationToken::new(),
    );
    let pipes = Pipes::open(input, output, gone.clone())?;
    let ends = (ended.clone(), gone.clone());
    let server = Server::new(Arc::clone(&session), desk, ends, reaches_out);
    let serving = serve_lines(server, pipes, stop.clone());
    tokio::pin!(serving);
    let fault = tokio::select! {
        fault = &mut serving => fault,
        () = until_end(&gone, interrupted) => {
            ended.cancel();
            // Who closed its end has told so already, and its last answers are written.
            if interrupted.is_cancelled() {
                stop.cancel();
            }
            tokio::time::timeout(CLOSING, serving).await.unwrap_or_default()
        }
    };
    ended.cancel();
    let closed = session.close().await;
    Ok(Served { closed, fault })
}

/// Until the calls have to end.
async fn until_end(gone: &CancellationToken, interrupted: &CancellationToken) {
    tokio::select! {
        () = interrupted.cancelled() => return,
        () = gone.cancelled() => {}
    }
    tokio::select! {
        () = interrupted.cancelled() => {}
        () = tokio::time::sleep(LAST_CALLS) => {}
    }
}

/// Serves until the client's end is closed or `stop`; says why the client could not be served.
async fn serve_lines(server: Server, pipes: Pipes, stop: CancellationToken) -> Option<String> {
    match serve_server_with_ct(server, pipes, stop).await {
        Ok(running) => {
            // It ends by itself; that it broke off is told by the pipes.
            let _ = running.waiting().await;
            None
        }
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => None,
        Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
            Some("the client did not begin with `initialize`".into())
        }
        Err(error) => Some(error.to_string()),
    }
}
