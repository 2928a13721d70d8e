//! What a guest said before it broke off: the bounded tail of its standard error, and the reason of its trap in plain words.
//! The host's own trace never gets into it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime::{Trap, WasmBacktrace};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// Bytes that are kept of a guest's standard error.
const TAIL_BYTES: usize = 4096;
/// Frames that look at recursion; fewer say nothing.
const RECURSION_FRAMES: usize = 8;

/// The tail of a guest's standard error. Clones share it; writing more than it holds forgets the beginning and never fails, so
/// that a guest that prints without end is not ended for it.
#[derive(Clone, Default)]
pub(crate) struct LastWords(Arc<Mutex<VecDeque<u8>>>);

impl LastWords {
    fn push(&self, bytes: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        let excess = (tail.len() + bytes.len()).saturating_sub(TAIL_BYTES);
        tail.drain(..excess);
        tail.extend(bytes);
    }

    /// What was kept, as a person would want to read it.
    pub(crate) fn text(&self) -> String {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (front, back) = tail.as_slices();
        readable(&String::from_utf8_lossy(&[front, back].concat()))
    }
}

impl IsTerminal for LastWords {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LastWords {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for LastWords {
    async fn ready(&mut self) {}
}

impl OutputStream for LastWords {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 << 10)
    }
}

impl AsyncWrite for LastWords {
    fn poll_write(
        self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        self.push(bytes);
        std::task::Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}

/// Drops control characters, the first part of a cut first line, and the advice that Rust gives to its own users. A Rust panic
/// becomes `MESSAGE (panicked at FILE:LINE:COLUMN)`.
fn readable(raw: &str) -> String {
    let clean: String = raw
        .chars()
        .filter(|one| *one == '\n' || *one == '\t' || !one.is_control())
        .collect();
    let mut lines: Vec<&str> = clean
        .lines()
        .filter(|line| !line.starts_with("note: run with `RUST_BACKTRACE"))
        .collect();
    if raw.len() >= TAIL_BYTES && lines.len() > 1 {
        lines.remove(0);
    }
    let Some(start) = lines.iter().rposition(|line| panic_place(line).is_some()) else {
        return lines.join("\n").trim().to_owned();
    };
    let place = panic_place(lines[start]).unwrap_or_default();
    let message = lines[start + 1..].join("\n");
    let message = message.trim();
    match message.is_empty() {
        true => format!("panicked at {place}"),
        false => format!("{message} (panicked at {place})"),
    }
}

/// The place in `thread '…' panicked at PLACE:`, where the line is one.
fn panic_place(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.starts_with("thread '")
        .then(|| line.split_once(" panicked at "))
        .flatten()
        .map(|(_, place)| place.trim_end_matches(':'))
}

/// Why the guest broke off, for the model: its last words where it has any, then what the host knows.
pub(crate) fn explain(
    error: &wasmtime::Error,
    last_words: &LastWords,
    limit: Option<&str>,
) -> String {
    let words = last_words.text();
    let reason = reason(error);
    // A panic ends in `unreachable`, which says less than the panic did.
    let telling = words.is_empty()
        || !matches!(
            error.downcast_ref::<Trap>(),
            Some(Trap::UnreachableCodeReached)
        ) && error.downcast_ref::<wasmtime_wasi::I32Exit>().is_none();
    let mut message = words;
    for part in [telling.then_some(reason.as_str()), limit]
        .into_iter()
        .flatten()
    {
        if !message.is_empty() {
            message.push('\n');
        }
        message.push_str(part);
    }
    message
}

fn reason(error: &wasmtime::Error) -> String {
    if let Some(exit) = error.downcast_ref::<wasmtime_wasi::I32Exit>() {
        return format!("the tool ended itself with exit status {}", exit.0);
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => {
            "the tool used up its stack (probably endless recursion)".to_owned()
        }
        Some(Trap::MemoryOutOfBounds) if recurses(error) => {
            format!("{} (probably stack overflow)", error.root_cause())
        }
        _ => error.root_cause().to_string(),
    }
}

/// True where the topmost frames are one function, or two in turn.
fn recurses(error: &wasmtime::Error) -> bool {
    let Some(trace) = error.downcast_ref::<WasmBacktrace>() else {
        return false;
    };
    let top: Vec<u32> = trace
        .frames()
        .iter()
        .take(RECURSION_FRAMES)
        .map(wasmtime::FrameInfo::func_index)
        .collect();
    // The very first may be a leaf that the recursion calls.
    top.len() == RECURSION_FRAMES && top[1..].windows(3).all(|frames| frames[0] == frames[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rust_panic_reads_as_its_message_and_its_place() {
        let raw = "\nthread '<unnamed>' (1) panicked at src/lib.rs:7:5:\nboom\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        assert_eq!(readable(raw), "boom (panicked at src/lib.rs:7:5)");
    }

    #[test]
    fn only_the_last_panic_is_told() {
        let raw =
            "thread 'a' panicked at a.rs:1:1:\nfirst\nthread 'a' panicked at b.rs:2:2:\nsecond\n";
        assert_eq!(readable(raw), "second (panicked at b.rs:2:2)");
    }

    #[test]
    fn a_traceback_is_kept_without_control_characters() {
        let raw = "Traceback (most recent call last):\n  File \"app.py\", line 3\nValueError: \u{1b}[31mboom\r\n";
        assert_eq!(
            readable(raw),
            "Traceback (most recent call last):\n  File \"app.py\", line 3\nValueError: [31mboom"
        );
    }

    #[test]
    fn the_tail_is_bounded_and_keeps_the_end() {
        let words = LastWords::default();
        for index in 0..10_000 {
            words.push(format!("line {index}\n").as_bytes());
        }
        words.push(&[b'x'; 3 * TAIL_BYTES]);
        words.push("\nthe end é".as_bytes());
        let text = words.text();
        assert!(text.ends_with("the end é"), "{text}");
        assert!(text.len() <= TAIL_BYTES);
    }
}
