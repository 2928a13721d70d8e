//! What goes into a call and what comes out of it, as plain data.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use floe_protocol::StopReason;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::admission::AdmissionError;
use crate::capability::output::OutputSink;
use crate::capability::{Failure, Image};
use crate::capability_set::CapabilitySet;
use crate::hosts::Hosts;

/// Where the Workspace is for a tool.
pub const WORKSPACE_DIR: &str = "/workspace";

/// One call of `execute`.
pub struct CallRequest {
    /// A JSON object that has passed the tool's schema.
    pub arguments: String,
    /// What the tool is told about where it runs.
    pub context: CallContext,
    /// What was granted. The call reaches what the component imports of it and declares, and nothing else.
    pub granted: CapabilitySet,
    /// The implementations behind the granted capabilities.
    pub hosts: Arc<Hosts>,
    /// Where the text goes.
    pub output: Arc<dyn OutputSink>,
    /// What the call may use up.
    pub limits: CallLimits,
    /// Ends the call at once.
    pub cancel: CancellationToken,
}

/// What a tool is told about its call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallContext {
    /// Unique within the Session.
    pub tool_call_id: String,
    /// The Session.
    pub session_id: String,
    /// Open set.
    pub metadata: Vec<(String, String)>,
}

/// What one call may use up. Memory, tables, instances and the data of a host call are always bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Bytes of all linear memories together.
    pub memory_bytes: usize,
    /// Wall time over guest and host alike, from the moment of the call; none for no limit.
    pub deadline: Option<Duration>,
    /// Bytes that the guest may hand to the host in one host call.
    pub host_call_fuel: usize,
}

impl CallLimits {
    /// 64 MiB.
    pub const DEFAULT_MEMORY_BYTES: usize = 64 << 20;
    /// 32 MiB.
    pub const DEFAULT_HOST_CALL_FUEL: usize = 32 << 20;
}

impl Default for CallLimits {
    /// 64 MiB of memory, two minutes, 32 MiB a host call.
    fn default() -> Self {
        CallLimits {
            memory_bytes: CallLimits::DEFAULT_MEMORY_BYTES,
            deadline: Some(Duration::from_secs(120)),
            host_call_fuel: CallLimits::DEFAULT_HOST_CALL_FUEL,
        }
    }
}

/// How a call ended, and what the host saw while it ran.
#[derive(Clone, Debug)]
pub struct Call {
    /// How it ended.
    pub end: CallEnd,
    /// What a guest cannot set.
    pub facts: HostFacts,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub enum CallEnd {
    /// The tool returned a result.
    Returned(ToolResult),
    /// The tool returned a failure, or let one of the host's pass.
    Failed(Failure),
    /// The guest broke off. The message is the guest's last words and the reason, never the host's own trace.
    Trapped {
        /// For the model: one or more lines, bounded.
        message: String,
    },
    /// The cancellation token ended it.
    Cancelled,
    /// Its time was up.
    DeadlineExceeded,
}

/// What a tool returned.
#[derive(Clone, Debug, Default)]
pub struct ToolResult {
    /// How the tool says it ended; none for completed.
    pub stop_reason: Option<StopReason>,
    /// A line about the output, outside its limit.
    pub note: Option<String>,
    /// For the model.
    pub images: Vec<Image>,
    /// For programs.
    pub structured: Option<Value>,
    /// Open set.
    pub metadata: Vec<(String, String)>,
}

/// What the host knows about a call's command, because the guest watched it end through the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// The exit code of the command that ended last.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<String>,
    /// How the command that was started or attached last is confined.
    pub confinement: Option<String>,
    /// Lines for the model that are the host's and not the tool's, such as what making room for a command has cost.
    pub notes: Vec<String>,
}

/// Why `definition` or `permission-for` gave no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallFault {
    /// The component cannot be run at all.
    #[error(transparent)]
    Refused(#[from] AdmissionError),
    /// The guest broke off.
    #[error("`{tool}` broke off in `{function}`: {message}")]
    Trapped {
        /// The component's name.
        tool: String,
        /// What was called.
        function: &'static str,
        /// Its last words and the reason.
        message: String,
    },
    /// It did not answer in time.
    #[error(
        "`{tool}` did not answer `{function}` within {limit:?}; it must answer without waiting for anything"
    )]
    TimedOut {
        /// The component's name.
        tool: String,
        /// What was called.
        function: &'static str,
        /// How long it had.
        limit: Duration,
    },
    /// What it says about itself cannot be used.
    #[error(
        "`{tool}` describes itself wrongly: `{field}` {reason}; fix the tool's definition and build it again"
    )]
    BadDefinition {
        /// The component's name.
        tool: String,
        /// The field of the definition.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// A [`Failure`] on its way out of a host function whose signature has no failure: it ends the call as that failure.
#[derive(Clone, Debug)]
pub(crate) struct Raised(pub(crate) Failure);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Raised {}
