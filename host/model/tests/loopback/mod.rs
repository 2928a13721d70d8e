//! A service on the loopback interface that answers each request with the bytes that a test gives it.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe_model::{ModelAnswer, ModelDriver, ModelError, ModelRequest, ModelSettings, OpenAiDriver};
use floe_protocol::ModelMsg;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// What the service does with one request.
#[derive(Clone)]
pub(crate) struct Reply {
    /// The head and the body, in the pieces in which they are written.
    pub(crate) pieces: Vec<Vec<u8>>,
    /// True to go silent after the last piece instead of closing.
    pub(crate) silent: bool,
}

/// The head of an event stream that ends with its connection.
pub(crate) const CLOSED_AT_END: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
/// The head of an event stream in chunks.
pub(crate) const CHUNKED: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";

impl Reply {
    /// One piece.
    pub(crate) fn whole(bytes: impl Into<Vec<u8>>) -> Reply {
        Reply {
            pieces: vec![bytes.into()],
            silent: false,
        }
    }

    /// A response with a status and a JSON body.
    pub(crate) fn json(status: u16, body: &str) -> Reply {
        Reply::whole(format!(
            "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        ))
    }

    /// An event stream that ends with its connection.
    pub(crate) fn events(body: &str) -> Reply {
        Reply::whole(format!("{CLOSED_AT_END}{body}"))
    }
}

/// The service: answers the n-th request with the n-th reply, and the last reply ever after.
pub(crate) struct Service {
    address: SocketAddr,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// A request as it was received.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Request line and headers, in lower case.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: Value,
}

impl Service {
    pub(crate) async fn start(replies: Vec<Reply>) -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let replies = Arc::new(Mutex::new(VecDeque::from(replies)));
        let service = Service {
            address,
            replies: Arc::clone(&replies),
            requests: Arc::clone(&requests),
        };
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let request = read_request(&mut connection).await;
                requests.lock().unwrap().push(request);
                let reply = {
                    let mut replies = replies.lock().unwrap();
                    if replies.len() > 1 {
                        replies.pop_front().unwrap()
                    } else {
                        replies[0].clone()
                    }
                };
                answer(connection, reply).await;
            }
        });
        service
    }

    /// What all further requests are answered with.
    pub(crate) fn reply_with(&self, reply: Reply) {
        *self.replies.lock().unwrap() = VecDeque::from([reply]);
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn driver(&self) -> OpenAiDriver {
        OpenAiDriver::new("test-model", &self.settings()).unwrap()
    }

    pub(crate) fn settings(&self) -> ModelSettings {
        ModelSettings {
            base_url: Some(self.base_url()),
            idle_timeout: Duration::from_secs(20),
            ..ModelSettings::default()
        }
    }
}

async fn read_request(connection: &mut TcpStream) -> Request {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length: usize = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"))
                .map_or(0, |value| value.trim().parse().unwrap());
            if bytes.len() >= end + 4 + length {
                let body = serde_json::from_slice(&bytes[end + 4..]).unwrap();
                return Request { head, body };
            }
        }
        let read = connection.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the client closed within its request");
        bytes.extend_from_slice(&buffer[..read]);
    }
}

async fn answer(mut connection: TcpStream, reply: Reply) {
    connection.set_nodelay(true).unwrap();
    for piece in reply.pieces {
        if connection.write_all(&piece).await.is_err() {
            return;
        }
        // Lets the client read this piece before the next is written; what it makes of them must not depend on it.
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
    }
    if reply.silent {
        tokio::spawn(async move {
            let _ = connection.read(&mut [0; 1]).await;
        });
    } else {
        let _ = connection.shutdown().await;
    }
}

/// Puts a body into chunks of an HTTP/1.1 message, ended in good order.
pub(crate) fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut framed = Vec::new();
    for chunk in body.chunks(size) {
        framed.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        framed.extend_from_slice(chunk);
        framed.extend_from_slice(b"\r\n");
    }
    framed.extend_from_slice(b"0\r\n\r\n");
    framed
}

/// Asks a driver once and keeps every message.
pub(crate) async fn ask(
    driver: &dyn ModelDriver,
    request: &ModelRequest,
    cancel: &CancellationToken,
) -> (Vec<ModelMsg>, Result<ModelAnswer, ModelError>) {
    let mut messages = Vec::new();
    let mut emit = |message| messages.push(message);
    let result = driver.stream(request, &mut emit, cancel).await;
    (messages, result)
}

pub(crate) async fn ask_once(
    driver: &dyn ModelDriver,
) -> (Vec<ModelMsg>, Result<ModelAnswer, ModelError>) {
    let request = ModelRequest {
        history: vec![ModelMsg::user_text("go")],
        ..ModelRequest::default()
    };
    ask(driver, &request, &CancellationToken::new()).await
}
