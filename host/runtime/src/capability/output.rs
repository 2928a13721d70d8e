//! `output`: all text for the model. Every call has it, so it cannot be withheld; what an instance without capabilities writes
//! is thrown away.

use std::sync::{Arc, Mutex, PoisonError};

use super::Deny;
use super::commands::Recording;
use crate::bindings::floe::tool::output as wit;
use crate::state::CallState;

/// Where the text of a call goes. Called on the guest's thread: it must be quick and must not block.
pub trait OutputSink: Send + Sync {
    /// Takes the next text. Returns how many more characters will be kept, so that a tool can stop early.
    fn write(&self, delta: &str) -> u32;

    /// Is told that a ring lost that many characters of a command's output before the tool saw them.
    fn dropped(&self, characters: u64);

    /// Is told, before it is written if it is, of text of a command that the tool was handed, and where the bytes are that it was
    /// made of. Who does not keep whole outputs has no use for it.
    fn handed(&self, _recording: &Arc<dyn Recording>, _text: &[u8]) {}
}

/// The real end of `output`: the sink of one call, until the call is over. After [`OutputGate::close`] returns nothing reaches
/// the sink any more, also from a guest that is still being stopped.
pub(crate) struct OutputGate(Mutex<Option<Arc<dyn OutputSink>>>);

impl OutputGate {
    pub(crate) fn new(sink: Arc<dyn OutputSink>) -> OutputGate {
        OutputGate(Mutex::new(Some(sink)))
    }

    pub(crate) fn write(&self, delta: &str) -> u32 {
        let sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sink.as_ref().map_or(0, |sink| sink.write(delta))
    }

    pub(crate) fn dropped(&self, characters: u64) {
        let sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sink) = sink.as_ref() {
            sink.dropped(characters);
        }
    }

    pub(crate) fn handed(&self, recording: &Arc<dyn Recording>, text: &[u8]) {
        let sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sink) = sink.as_ref() {
            sink.handed(recording, text);
        }
    }

    pub(crate) fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_none()
    }
}

impl OutputSink for Deny {
    fn write(&self, _delta: &str) -> u32 {
        0
    }

    fn dropped(&self, _characters: u64) {}
}

/// Keeps all text, for tests.
#[derive(Debug, Default)]
pub struct RecordingOutput {
    deltas: Mutex<Vec<String>>,
    dropped: Mutex<u64>,
}

impl RecordingOutput {
    /// An empty recording.
    pub fn new() -> Arc<RecordingOutput> {
        Arc::default()
    }

    /// The deltas so far, one by one.
    pub fn deltas(&self) -> Vec<String> {
        self.deltas
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// All text so far.
    pub fn text(&self) -> String {
        self.deltas().concat()
    }

    /// How many characters rings have lost.
    pub fn dropped_characters(&self) -> u64 {
        *self.dropped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputSink for RecordingOutput {
    fn write(&self, delta: &str) -> u32 {
        self.deltas
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(delta.to_owned());
        u32::MAX
    }

    fn dropped(&self, characters: u64) {
        *self.dropped.lock().unwrap_or_else(PoisonError::into_inner) += characters;
    }
}

impl wit::Host for CallState {
    async fn write(&mut self, delta: String) -> wasmtime::Result<u32> {
        Ok(self.record.output.write(&delta))
    }
}
