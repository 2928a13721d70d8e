//! JSON-RPC with one server: requests that are answered or given up, notifications, and what the server asks.
//!
//! Two tasks own the pipes. Neither waits for the other: what is sent waits in a queue, and a server that neither reads nor writes costs a
//! question its time and nothing else.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::framing;

/// Messages that wait to be written.
const QUEUE: usize = 128;
/// Bytes of the id of a server's request.
const LONGEST_ID: usize = 1024;

/// Hears what a server says of its own accord.
pub(crate) trait Receive: Send + Sync + 'static {
    /// A notification.
    fn notified(&self, method: &str, params: &Value);

    /// A request of the server; none where it is not understood.
    fn asked(&self, method: &str, params: &Value) -> Option<Value>;
}

/// A connection to a server. Dropping it lets go of the pipes.
pub(crate) struct Connection {
    outgoing: mpsc::Sender<Vec<u8>>,
    shared: Arc<Shared>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

struct Shared {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Response>>>,
    /// Why nothing can be said any more.
    ended: watch::Sender<Option<String>>,
}

type Response = Result<Value, Refusal>;

/// A server's own words for why it does not answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// It took too long, and was cancelled.
    Timeout,
    /// The connection has ended.
    Ended,
    /// The server refused.
    Refused(Refusal),
}

/// Whatever comes from a server.
#[derive(Deserialize)]
struct Incoming {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<Value>,
}

impl Connection {
    /// Must be called in the context of a tokio runtime.
    pub(crate) fn open(
        input: impl AsyncWrite + Unpin + Send + 'static,
        output: impl AsyncRead + Unpin + Send + 'static,
        receiver: Arc<dyn Receive>,
    ) -> Connection {
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared {
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
            ended: watch::Sender::new(None),
        });
        let reading = read(
            output,
            receiver,
            outgoing.clone().downgrade(),
            Arc::clone(&shared),
        );
        let tasks = [
            tokio::spawn(write(input, queue, Arc::clone(&shared))),
            tokio::spawn(reading),
        ];
        Connection {
            outgoing,
            shared,
            _tasks: tasks.map(AbortOnDropHandle::new),
        }
    }

    /// Asks, and waits for the answer until then at most. A request that is not waited for any more is cancelled.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Value,
        until: Instant,
    ) -> Result<Value, RequestError> {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let (sender, response) = oneshot::channel();
        self.shared.waiting().insert(id, sender);
        let mut asked = Asked {
            connection: self,
            id,
            is_sent: false,
        };
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let exchange = async {
            self.send(message).await?;
            asked.is_sent = true;
            match response.await {
                Ok(Ok(result)) => Ok(result),
                Ok(Err(refusal)) => Err(RequestError::Refused(refusal)),
                Err(_) => Err(RequestError::Ended),
            }
        };
        let answer = timeout_at(until, exchange).await;
        answer.unwrap_or(Err(RequestError::Timeout))
    }

    /// Tells the server something, waiting until then at most for it to take what was sent before.
    pub(crate) async fn notify(
        &self,
        method: &str,
        params: Value,
        until: Instant,
    ) -> Result<(), RequestError> {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let sent = timeout_at(until, self.send(message)).await;
        sent.unwrap_or(Err(RequestError::Timeout))
    }

    async fn send(&self, message: Value) -> Result<(), RequestError> {
        if self.end().is_some() {
            return Err(RequestError::Ended);
        }
        let sent = self.outgoing.send(message.to_string().into_bytes()).await;
        sent.map_err(|_| RequestError::Ended)
    }

    /// Why nothing can be said any more, where that is so.
    pub(crate) fn end(&self) -> Option<String> {
        self.shared.ended.borrow().clone()
    }

    /// Waits until nothing can be said any more.
    pub(crate) async fn ended(&self) {
        let mut ended = self.shared.ended.subscribe();
        // The sender lives in what this holds.
        let _ = ended.wait_for(Option::is_some).await;
    }
}

/// A request under way.
struct Asked<'c> {
    connection: &'c Connection,
    id: u64,
    is_sent: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let is_open = self.connection.shared.waiting().remove(&self.id).is_some();
        if is_open && self.is_sent {
            let cancel =
                json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": self.id}});
            // Where the queue is full the server reads nothing anyway.
            let _ = self
                .connection
                .outgoing
                .try_send(cancel.to_string().into_bytes());
        }
    }
}

impl Shared {
    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Response>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing can be said any more: whoever waits is told so.
    fn fail(&self, reason: String) {
        self.ended.send_if_modified(|ended| {
            let is_first = ended.is_none();
            ended.get_or_insert(reason);
            is_first
        });
        self.waiting().clear();
    }
}

async fn write(
    mut input: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Vec<u8>>,
    shared: Arc<Shared>,
) {
    while let Some(message) = queue.recv().await {
        if framing::write(&mut input, &message).await.is_err() {
            return shared.fail("it closed its input".to_owned());
        }
    }
}

async fn read(
    output: impl AsyncRead + Unpin,
    receiver: Arc<dyn Receive>,
    outgoing: mpsc::WeakSender<Vec<u8>>,
    shared: Arc<Shared>,
) {
    let mut output = BufReader::new(output);
    let reason = loop {
        let message = match framing::read(&mut output).await {
            Ok(message) => message,
            Err(error) => break error.to_string(),
        };
        let Ok(incoming) = serde_json::from_slice::<Incoming>(&message) else {
            break framing::FrameError::Garbage.to_string();
        };
        match (incoming.method, incoming.id) {
            // An answer holds it once more, and a hundred answers may wait.
            (Some(_), Some(Value::String(id))) if id.len() > LONGEST_ID => {
                break framing::FrameError::Garbage.to_string();
            }
            (Some(_), Some(Value::Array(_) | Value::Object(_))) => {
                break framing::FrameError::Garbage.to_string();
            }
            (Some(method), Some(id)) => {
                let reply = match receiver.asked(&method, &incoming.params) {
                    Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                    None => {
                        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "not supported"}})
                    }
                };
                let Some(outgoing) = outgoing.upgrade() else {
                    return;
                };
                // To wait here could be to wait for each other.
                if outgoing.try_send(reply.to_string().into_bytes()).is_err() {
                    break "it asks without reading the answers".to_owned();
                }
            }
            (Some(method), None) => receiver.notified(&method, &incoming.params),
            (None, Some(id)) => {
                let waiting = id.as_u64().and_then(|id| shared.waiting().remove(&id));
                // One that is not waited for any more was cancelled.
                if let Some(waiting) = waiting {
                    let _ = waiting.send(match incoming.error {
                        None | Some(Value::Null) => Ok(incoming.result),
                        Some(error) => Err(serde_json::from_value(error).unwrap_or(Refusal {
                            code: 0,
                            message: String::new(),
                        })),
                    });
                }
            }
            (None, None) => {}
        }
        // A server that floods must not keep the thread from everything else.
        tokio::task::consume_budget().await;
    };
    shared.fail(reason);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{DuplexStream, ReadHalf, WriteHalf, split};

    use super::*;

    struct Heard(Mutex<Vec<String>>);

    impl Receive for Heard {
        fn notified(&self, method: &str, _params: &Value) {
            self.0.lock().unwrap().push(method.to_owned());
        }

        fn asked(&self, method: &str, _params: &Value) -> Option<Value> {
            (method == "known").then(|| json!(1))
        }
    }

    type Server = (BufReader<ReadHalf<DuplexStream>>, WriteHalf<DuplexStream>);

    fn connected() -> (Connection, Arc<Heard>, Server) {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let heard = Arc::new(Heard(Mutex::default()));
        let (output, input) = split(ours);
        let connection = Connection::open(input, output, Arc::clone(&heard) as _);
        let (theirs_in, theirs_out) = split(theirs);
        (connection, heard, (BufReader::new(theirs_in), theirs_out))
    }

    async fn next(server: &mut Server) -> Value {
        serde_json::from_slice(&framing::read(&mut server.0).await.unwrap()).unwrap()
    }

    async fn say(server: &mut Server, message: Value) {
        let message = message.to_string();
        framing::write(&mut server.1, message.as_bytes())
            .await
            .unwrap();
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[tokio::test]
    async fn answers_find_their_requests_in_whatever_order_they_come() {
        let (connection, _, mut server) = connected();
        let both = async {
            tokio::join!(
                connection.request("a", json!(1), soon()),
                connection.request("b", json!(2), soon())
            )
        };
        let answering = async {
            let (first, second) = (next(&mut server).await, next(&mut server).await);
            for asked in [second, first] {
                let (id, method) = (&asked["id"], &asked["method"]);
                say(&mut server, json!({"id": id, "result": method})).await;
            }
            server
        };
        let ((a, b), _server) = tokio::join!(both, answering);
        assert_eq!((a.unwrap(), b.unwrap()), (json!("a"), json!("b")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_takes_too_long_is_cancelled_and_a_late_answer_is_nobodys() {
        let (connection, heard, mut server) = connected();
        let until = Instant::now() + Duration::from_secs(10);
        let answer = connection.request("slow", Value::Null, until).await;
        assert!(matches!(answer, Err(RequestError::Timeout)));
        let asked = next(&mut server).await;
        let cancelled = next(&mut server).await;
        assert_eq!(cancelled["method"], "$/cancelRequest");
        assert_eq!(cancelled["params"]["id"], asked["id"]);
        say(&mut server, json!({"id": asked["id"], "result": 1})).await;
        say(&mut server, json!({"id": 99, "method": "known"})).await;
        assert_eq!(next(&mut server).await["result"], 1);
        assert!(heard.0.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_request_that_is_dropped_is_cancelled() {
        let (connection, _, mut server) = connected();
        {
            let request = connection.request("slow", Value::Null, soon());
            tokio::pin!(request);
            tokio::select! {
                _ = &mut request => panic!("nobody answers"),
                asked = next(&mut server) => assert_eq!(asked["method"], "slow"),
            }
        }
        assert_eq!(next(&mut server).await["method"], "$/cancelRequest");
    }

    #[tokio::test]
    async fn what_the_server_asks_is_answered_and_what_is_not_understood_refused() {
        let (connection, heard, mut server) = connected();
        say(&mut server, json!({"id": "x", "method": "known"})).await;
        say(&mut server, json!({"id": 2, "method": "other"})).await;
        assert_eq!(next(&mut server).await["result"], 1);
        assert_eq!(next(&mut server).await["error"]["code"], -32601);
        say(&mut server, json!({"method": "told"})).await;
        say(&mut server, json!({"id": 3, "method": "known"})).await;
        next(&mut server).await;
        assert_eq!(*heard.0.lock().unwrap(), ["told"]);
        assert_eq!(connection.end(), None);
    }

    #[tokio::test]
    async fn a_request_whose_id_is_no_id_ends_the_connection() {
        for id in [json!("x".repeat(LONGEST_ID + 1)), json!([1]), json!({})] {
            let (connection, _, mut server) = connected();
            say(&mut server, json!({"id": id, "method": "known"})).await;
            connection.ended().await;
            assert!(connection.end().unwrap().contains("no message"));
        }
    }

    #[tokio::test]
    async fn whoever_waits_is_told_when_the_server_is_gone() {
        let (connection, _, server) = connected();
        let request = connection.request("a", Value::Null, soon());
        let (answer, ()) = tokio::join!(request, async { drop(server) });
        assert!(matches!(answer, Err(RequestError::Ended)));
        connection.ended().await;
        let later = connection.request("b", Value::Null, soon()).await;
        assert!(matches!(later, Err(RequestError::Ended)));
    }
}
