//! A server that answers as a test wants, down to the byte, and the gate that is led to it.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe_network::{
    Gate, GateError, GateLimits, GateOptions, GateRequest, GateResponse, HostGrants, Reach, Resolve,
};
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// Longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) line: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The number of the connection that it came on.
    pub(crate) connection: usize,
}

impl Received {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }

    pub(crate) fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap()
    }
}

/// What a server does about a request.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Sends this and waits for the next request.
    Bytes(Vec<u8>),
    /// Sends this and closes.
    Last(Vec<u8>),
    /// Sends this and then nothing more.
    Hang(Vec<u8>),
    /// Sends the first and then the second again and again.
    Endless(Vec<u8>, Vec<u8>),
}

/// A whole response with this body.
pub(crate) fn ok(body: &str) -> Answer {
    response("200 OK", &[], body.as_bytes())
}

pub(crate) fn response(status: &str, fields: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in fields {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    Answer::Bytes(bytes)
}

pub(crate) fn redirect(status: &str, to: &str) -> Answer {
    response(status, &[("location", to)], b"elsewhere")
}

type Handler = Arc<dyn Fn(&Received) -> Answer + Send + Sync>;

/// A server on the loopback.
pub(crate) struct Server {
    pub(crate) port: u16,
    received: Arc<Mutex<Vec<Received>>>,
    _task: AbortOnDropHandle<()>,
}

impl Server {
    pub(crate) async fn start(
        handler: impl Fn(&Received) -> Answer + Send + Sync + 'static,
    ) -> Server {
        Server::wrapped(handler, |stream| Box::pin(async move { Some(stream) })).await
    }

    /// One whose connections are wrapped before they are spoken on.
    pub(crate) async fn wrapped<S, W>(
        handler: impl Fn(&Received) -> Answer + Send + Sync + 'static,
        wrap: W,
    ) -> Server
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        W: Fn(TcpStream) -> BoxFuture<'static, Option<S>> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let (handler, seen): (Handler, _) = (Arc::new(handler), Arc::clone(&received));
        let task = tokio::spawn(async move {
            let mut served = tokio::task::JoinSet::new();
            for connection in 0.. {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let wrapped = wrap(stream);
                let (handler, seen) = (Arc::clone(&handler), Arc::clone(&seen));
                served.spawn(async move {
                    if let Some(stream) = wrapped.await {
                        let _ = serve(stream, connection, &handler, &seen).await;
                    }
                });
            }
        });
        Server {
            port,
            received,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// All requests so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// The grant by which `name` leads here.
    pub(crate) fn grant(&self, name: &str) -> String {
        format!("{name}=127.0.0.1:{}", self.port)
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: usize,
    handler: &Handler,
    seen: &Mutex<Vec<Received>>,
) -> io::Result<()> {
    loop {
        let received = read(&mut stream, connection).await?;
        let answer = handler(&received);
        seen.lock().unwrap().push(received);
        match answer {
            Answer::Bytes(bytes) => stream.write_all(&bytes).await?,
            Answer::Last(bytes) => {
                stream.write_all(&bytes).await?;
                return stream.shutdown().await;
            }
            Answer::Hang(bytes) => {
                stream.write_all(&bytes).await?;
                stream.flush().await?;
                // Until the other side has had enough.
                let mut rest = Vec::new();
                stream.read_to_end(&mut rest).await?;
                return Ok(());
            }
            Answer::Endless(first, again) => {
                stream.write_all(&first).await?;
                loop {
                    stream.write_all(&again).await?;
                }
            }
        }
        stream.flush().await?;
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin), connection: usize) -> io::Result<Received> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.trim_end().split("\r\n");
    let line = lines.next().unwrap().to_owned();
    let fields: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let length = fields
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, length)| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Received {
        line,
        fields,
        body,
        connection,
    })
}

/// Names and their addresses; what is not here is not known. Counts what it is asked.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) known: Vec<(&'static str, Vec<&'static str>)>,
    pub(crate) asked: AtomicUsize,
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let found = self.known.iter().find(|(known, _)| *known == name);
        let found =
            found.map(|(_, addresses)| addresses.iter().map(|a| a.parse().unwrap()).collect());
        Box::pin(std::future::ready(
            found.ok_or_else(|| io::ErrorKind::NotFound.into()),
        ))
    }
}

/// Options in which only these grants lead anywhere.
pub(crate) fn granted(grants: &[String]) -> GateOptions {
    GateOptions {
        grants: HostGrants::parse(grants).unwrap(),
        resolver: Arc::new(Names::default()),
        limits: GateLimits {
            connect: PATIENCE,
            total: PATIENCE,
            idle: PATIENCE,
            ..GateLimits::default()
        },
        ..GateOptions::default()
    }
}

/// A server, and a gate in which `fixture.test` leads to it.
pub(crate) async fn served(
    handler: impl Fn(&Received) -> Answer + Send + Sync + 'static,
) -> (Server, Gate) {
    let server = Server::start(handler).await;
    let gate = Gate::new(granted(&[server.grant("fixture.test:80")]));
    (server, gate)
}

pub(crate) const URL: &str = "http://fixture.test/";

pub(crate) fn get(url: &str) -> GateRequest {
    GateRequest {
        method: "GET".into(),
        url: url.into(),
        ..GateRequest::default()
    }
}

pub(crate) async fn send(gate: &Gate, request: GateRequest) -> Result<GateResponse, GateError> {
    gate.send(request, &Reach::default()).await
}

/// The whole body.
pub(crate) async fn body(response: &mut GateResponse) -> Result<Vec<u8>, GateError> {
    let mut whole = Vec::new();
    while let Some(bytes) = response.body.read(1 << 20).await? {
        whole.extend_from_slice(&bytes);
    }
    Ok(whole)
}

/// The whole body of what a request brings, as text.
pub(crate) async fn text(gate: &Gate, request: GateRequest) -> String {
    let mut response = send(gate, request).await.unwrap();
    String::from_utf8(body(&mut response).await.unwrap()).unwrap()
}

pub(crate) fn field<'r>(response: &'r GateResponse, name: &str) -> Option<&'r str> {
    let mut fields = response.headers.iter();
    let (_, value) = fields.find(|(known, _)| known == name)?;
    Some(std::str::from_utf8(value).unwrap())
}
