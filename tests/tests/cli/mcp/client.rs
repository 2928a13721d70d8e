//! A client that writes and reads lines and knows nothing but JSON-RPC, so that it can also do what no client should.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::Place;

/// No test waits longer for anything.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);

/// A `floe mcp` and the test at its pipes.
pub(super) struct Client {
    pub(super) child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// What came while something else was waited for.
    pub(super) passed: Vec<Value>,
    next_id: u64,
}

/// How it ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: i32,
    pub(super) stderr: String,
    /// Every message that nobody had waited for.
    pub(super) messages: Vec<Value>,
}

impl Client {
    /// Starts it; nothing is said yet.
    pub(super) fn spawn(place: &Place, arguments: &[&str]) -> Client {
        let mut line = vec!["mcp"];
        line.extend(arguments);
        let mut child = place.spawn(place.command(&line).stdin(std::process::Stdio::piped()));
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                let line = line.unwrap();
                let message = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Client {
            stdin: child.stdin.take(),
            child,
            messages,
            passed: Vec::new(),
            next_id: 1,
        }
    }

    /// Starts it and shakes hands, as a client that cannot do anything special.
    pub(super) fn start(place: &Place, arguments: &[&str]) -> Client {
        Client::able_to(place, arguments, json!({}))
    }

    /// Starts it and shakes hands as a client with these capabilities.
    pub(super) fn able_to(place: &Place, arguments: &[&str], capabilities: Value) -> Client {
        let mut client = Client::spawn(place, arguments);
        client.shake_hands("2025-11-25", capabilities);
        client
    }

    pub(super) fn shake_hands(&mut self, version: &str, capabilities: Value) {
        let answer = self.request(
            "initialize",
            json!({
                "protocolVersion": version,
                "capabilities": capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "floe");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    /// Writes bytes as they are. A server that has ended is no fault here.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        let _ = stdin.write_all(bytes).and_then(|()| stdin.flush());
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Sends a request and gives its id.
    pub(super) fn ask(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a request and waits for its response.
    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.response(id)
    }

    /// Asks for a call.
    pub(super) fn ask_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool and waits for its result.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.ask_call(tool, arguments);
        self.result(id)
    }

    pub(super) fn response(&mut self, id: u64) -> Value {
        self.wait_for(&format!("the response to {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    /// The result of a request, which is no error of the protocol.
    pub(super) fn result(&mut self, id: u64) -> Value {
        let mut response = self.response(id);
        assert!(response.get("error").is_none(), "{response}");
        response["result"].take()
    }

    /// The next message that is wanted; others are put aside.
    pub(super) fn wait_for(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.passed.iter().position(&wanted) {
            return self.passed.remove(at);
        }
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left) {
                Ok(message) => {
                    must_be_protocol(&message);
                    if wanted(&message) {
                        return message;
                    }
                    self.passed.push(message);
                }
                Err(RecvTimeoutError::Timeout) => panic!("{what} did not come: {:?}", self.passed),
                Err(RecvTimeoutError::Disconnected) => {
                    let mut stderr = String::new();
                    if let Some(mut pipe) = self.child.stderr.take() {
                        let _ = pipe.read_to_string(&mut stderr);
                    }
                    panic!("it ended before {what}: {:?}\n{stderr}", self.passed)
                }
            }
        }
    }

    /// Closes the connection as a client does, and waits for the end.
    pub(super) fn close(mut self) -> Ended {
        self.stdin = None;
        self.ended()
    }

    /// Waits for the end.
    pub(super) fn ended(mut self) -> Ended {
        let mut stderr = String::new();
        let mut pipe = self.child.stderr.take().unwrap();
        let reader = std::thread::spawn(move || {
            pipe.read_to_string(&mut stderr).unwrap();
            stderr
        });
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut messages = std::mem::take(&mut self.passed);
        messages.extend(self.messages.iter());
        messages.iter().for_each(must_be_protocol);
        Ended {
            status,
            stderr: reader.join().unwrap(),
            messages,
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A test that failed leaves nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whatever is on standard output is a message.
fn must_be_protocol(message: &Value) {
    assert_eq!(message["jsonrpc"], "2.0", "not of the protocol: {message}");
}

/// The text of a result, which may be an error of the tool.
pub(super) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// The form that the server lets the client show.
pub(super) fn question(client: &mut Client) -> Value {
    client.wait_for("a question", |message| {
        message["method"] == "elicitation/create"
    })
}

/// What became of a form.
pub(super) fn answer(client: &mut Client, question: &Value, result: Value) {
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
}

/// Waits until a condition holds.
pub(super) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// True while a process has this word among its arguments, in whatever namespace.
pub(super) fn runs(word: &str) -> bool {
    let processes = std::fs::read_dir(Path::new("/proc")).unwrap();
    processes.flatten().any(|process| {
        std::fs::read(process.path().join("cmdline")).is_ok_and(|line| {
            line.split(|byte| *byte == 0)
                .any(|argument| argument == word.as_bytes())
        })
    })
}
