//! What a guest can reach, one module per interface of wit/. Each has the same parts in the same order: the trait that the host
//! implements, the real implementation or its seam, what `Deny` answers, a recording fake, and last the binding that connects a
//! guest's import to the trait, in a file `binding.rs` of its own where it is long. Adding a capability is adding a WIT file, a file here and a row in
//! the linker's table. Nothing here knows of sessions, models or messages.

pub mod cancellation;
pub mod commands;
pub mod edits;
pub mod http;
pub mod interaction;
pub mod language_server;
pub mod log;
pub mod output;
pub mod session_state;
pub mod subagents;
pub mod vision;
pub mod web_search;
pub mod workspace;

use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::component::HasData;

pub use crate::bindings::floe::tool::types::{Failure, Image};
use crate::capability_set::Capability;

/// Refuses everything with the code `denied`. It is zero-sized: where it is linked, no authority can be reached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deny;

impl HasData for Deny {
    type Data<'a> = Deny;
}

/// Answers everything with the code `unsupported`: the seam of a capability that this host does not have yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unsupported;

/// What gives one answer to every question of a capability: [`Deny`] and [`Unsupported`].
pub(crate) trait Refusal: Send + Sync + 'static {
    /// The answer.
    fn refuse(&self, capability: Capability) -> Failure;
}

impl Refusal for Deny {
    fn refuse(&self, capability: Capability) -> Failure {
        Failure::denied(capability)
    }
}

impl Refusal for Unsupported {
    fn refuse(&self, capability: Capability) -> Failure {
        Failure::unsupported(capability)
    }
}

impl Failure {
    /// A failure with a code of the documented list and a message; not retryable, without a hint.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Failure {
        Failure {
            code: code.into(),
            message: message.into(),
            hint: None,
            retryable: false,
        }
    }

    /// The same failure with a word on what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// The capability was not granted to this call.
    pub fn denied(capability: Capability) -> Failure {
        Failure::new(
            "denied",
            format!("the capability `{capability}` is not granted to this call"),
        )
    }

    /// This host does not have the capability.
    pub fn unsupported(capability: Capability) -> Failure {
        Failure::new(
            "unsupported",
            format!("the capability `{capability}` is not supported by this host"),
        )
    }

    /// The call is over, so nothing is done for it any more.
    pub(crate) fn call_is_over() -> Failure {
        Failure::new("cancelled", "the call has ended")
    }

    /// The host's own code failed; the guest is told no more than that.
    pub(crate) fn internal() -> Failure {
        Failure::new("internal", "the host failed while it served this request")
    }
}

impl PartialEq for Failure {
    fn eq(&self, other: &Failure) -> bool {
        self.code == other.code
            && self.message == other.message
            && self.hint == other.hint
            && self.retryable == other.retryable
    }
}

/// What a recording fake was asked, in order, one line per request.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    /// Writes one request down.
    pub fn record(&self, line: impl Into<String>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line.into());
    }

    /// What was asked so far.
    pub fn lines(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
