//! The two ends of the client's pipe. Each has a thread of its own, which the program does not wait for when it ends: a client that
//! neither reads nor closes its end must not keep it. Queues are short, so a slow client slows down whoever writes to it.

use std::io::{self, Read, Write};
use std::thread;

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::lines::{Line, Lines, MAX_LINE};
use crate::message::{Incoming, read};

/// Lines that wait to be written.
const QUEUE: usize = 32;

/// A line and who waits until it is written.
type Written = (Vec<u8>, Option<oneshot::Sender<io::Result<()>>>);

/// A client at two pipes.
pub(crate) struct Pipes {
    lines: mpsc::Receiver<Line>,
    output: Option<mpsc::Sender<Written>>,
    gone: CancellationToken,
}

impl Pipes {
    /// Starts to read and to write. `gone` is cancelled when the client has closed either end.
    ///
    /// # Errors
    ///
    /// The threads cannot start.
    pub(crate) fn open(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        gone: CancellationToken,
    ) -> io::Result<Pipes> {
        let (line, lines) = mpsc::channel(1);
        let (sender, written) = mpsc::channel(QUEUE);
        let thread = |name: &str| thread::Builder::new().name(name.to_owned());
        thread("mcp-input").spawn(move || read_lines(input, &line))?;
        let closed = gone.clone();
        thread("mcp-output").spawn(move || write_lines(output, written, &closed))?;
        Ok(Pipes {
            lines,
            output: Some(sender),
            gone,
        })
    }
}

/// The end of the lines is told by dropping `line`.
fn read_lines(input: impl Read, line: &mpsc::Sender<Line>) {
    let mut lines = Lines::new(input, MAX_LINE);
    while let Ok(Some(next)) = lines.next() {
        if line.blocking_send(next).is_err() {
            break;
        }
    }
}

fn write_lines(
    mut output: impl Write,
    mut lines: mpsc::Receiver<Written>,
    gone: &CancellationToken,
) {
    while let Some((line, waits)) = lines.blocking_recv() {
        let written = output.write_all(&line).and_then(|()| output.flush());
        if written.is_err() {
            gone.cancel();
        }
        if let Some(waits) = waits {
            let _ = waits.send(written);
        }
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the client is gone")
}

/// A message as its line.
fn line(message: &TxJsonRpcMessage<RoleServer>) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

impl Transport<RoleServer> for Pipes {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = self.output.clone();
        async move {
            let output = output.ok_or_else(closed)?;
            let (waits, written) = oneshot::channel();
            let line = line(&message)?;
            output
                .send((line, Some(waits)))
                .await
                .map_err(|_| closed())?;
            written.await.map_err(|_| closed())?
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let Some(next) = self.lines.recv().await else {
                self.gone.cancel();
                return None;
            };
            match read(&next) {
                Incoming::Message(message) => return Some(*message),
                Incoming::Refused(answer) => {
                    // A client that floods and does not read gets no answers.
                    if let (Some(output), Ok(line)) = (&self.output, line(&answer)) {
                        let _ = output.try_send((line, None));
                    }
                }
                Incoming::Ignored => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ErrorCode, ErrorData, ServerJsonRpcMessage};

    use super::*;

    fn message() -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::error(ErrorData::new(ErrorCode::INTERNAL_ERROR, "x", None), None)
    }

    #[tokio::test]
    async fn messages_are_read_and_noise_between_them_is_answered() {
        let (mut client, output) = io::pipe().unwrap();
        let input: &[u8] = b"noise\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n{\"half";
        let gone = CancellationToken::new();
        let mut pipes = Pipes::open(input, output, gone.clone()).unwrap();
        assert!(pipes.receive().await.is_some());
        assert!(!gone.is_cancelled());
        assert!(pipes.receive().await.is_none());
        assert!(gone.is_cancelled());
        pipes.close().await.unwrap();
        let mut told = String::new();
        client.read_to_string(&mut told).unwrap();
        assert_eq!(told.lines().count(), 1);
        assert!(told.contains("-32700"), "{told}");
    }

    #[tokio::test]
    async fn a_client_that_no_longer_reads_is_gone() {
        let (client, output) = io::pipe().unwrap();
        let (_held, input) = {
            let (reader, writer) = io::pipe().unwrap();
            (writer, reader)
        };
        drop(client);
        let gone = CancellationToken::new();
        let mut pipes = Pipes::open(input, output, gone.clone()).unwrap();
        assert!(pipes.send(message()).await.is_err());
        assert!(gone.is_cancelled());
    }
}
