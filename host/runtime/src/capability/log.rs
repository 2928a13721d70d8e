//! `log`: for the person who debugs the tool, never for the model. Every call has it.

use super::{Deny, Recorder};
use crate::bindings::floe::tool::log as wit;
pub use crate::bindings::floe::tool::log::{Field, Level};
use crate::state::CallState;

/// More fields than this in one line are left out.
const MAX_FIELDS: usize = 32;

/// Where a tool's log lines go. Called on the guest's thread: it must be quick and must not block.
pub trait Log: Send + Sync {
    /// Takes one line of the call with that id.
    fn write(&self, tool_call_id: &str, level: Level, message: &str, fields: &[Field]);
}

/// The real one: the host's own `tracing` subscriber, under the target `floe::tool`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingLog;

impl Log for TracingLog {
    fn write(&self, tool_call_id: &str, level: Level, message: &str, fields: &[Field]) {
        let fields = FieldList(fields);
        // A guest wrote it: a line feed or a control character in it must not pass for a line of the host.
        let message = message.escape_debug();
        match level {
            Level::Trace => {
                tracing::trace!(target: "floe::tool", tool_call_id, %fields, "{message}");
            }
            Level::Debug => {
                tracing::debug!(target: "floe::tool", tool_call_id, %fields, "{message}");
            }
            Level::Info => tracing::info!(target: "floe::tool", tool_call_id, %fields, "{message}"),
            Level::Warn => tracing::warn!(target: "floe::tool", tool_call_id, %fields, "{message}"),
            Level::Error => {
                tracing::error!(target: "floe::tool", tool_call_id, %fields, "{message}");
            }
        }
    }
}

/// Fields as `name=value`, written only where a subscriber wants the line. Values come from the guest, so they are escaped.
struct FieldList<'a>(&'a [Field]);

impl std::fmt::Display for FieldList<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, field) in self.0.iter().take(MAX_FIELDS).enumerate() {
            let gap = if index == 0 { "" } else { " " };
            write!(
                f,
                "{gap}{}={}",
                field.name.escape_debug(),
                field.value.escape_debug()
            )?;
        }
        Ok(())
    }
}

impl Log for Deny {
    fn write(&self, _tool_call_id: &str, _level: Level, _message: &str, _fields: &[Field]) {}
}

/// Keeps the lines, for tests.
#[derive(Clone, Debug, Default)]
pub struct RecordingLog(
    /// `LEVEL message name=value …`, one per line.
    pub Recorder,
);

impl Log for RecordingLog {
    fn write(&self, _tool_call_id: &str, level: Level, message: &str, fields: &[Field]) {
        self.0
            .record(format!("{level:?} {message} {}", FieldList(fields)).trim_end());
    }
}

impl wit::Host for CallState {
    async fn write(
        &mut self,
        level: Level,
        message: String,
        fields: Vec<Field>,
    ) -> wasmtime::Result<()> {
        self.hosts
            .log
            .write(&self.tool_call_id, level, &message, &fields);
        Ok(())
    }
}
