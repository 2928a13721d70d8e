//! `cancellation`: lets a tool end early and tidy. Every call has it. A tool that does not look is stopped all the same.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::Deny;
use crate::bindings::floe::tool::cancellation as wit;
use crate::state::CallState;

/// What a tool may ask about its own end.
pub trait Cancellation: Send + Sync {
    /// True once the call is to end.
    fn is_cancelled(&self) -> bool;

    /// Time until the deadline; none where there is none.
    fn remaining(&self) -> Option<Duration>;
}

/// The real one: the token and the deadline of one call.
#[derive(Clone, Debug)]
pub(crate) struct CallCancellation {
    pub(crate) token: CancellationToken,
    pub(crate) deadline: Option<Instant>,
}

impl Cancellation for CallCancellation {
    fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    fn remaining(&self) -> Option<Duration> {
        self.deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }
}

/// Nothing ever cancels it.
impl Cancellation for Deny {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn remaining(&self) -> Option<Duration> {
        None
    }
}

/// Answers what a test says.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedCancellation {
    /// The answer to `is-cancelled`.
    pub cancelled: bool,
    /// The answer to `remaining-ms`.
    pub remaining: Option<Duration>,
}

impl Cancellation for FixedCancellation {
    fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    fn remaining(&self) -> Option<Duration> {
        self.remaining
    }
}

impl wit::Host for CallState {
    async fn is_cancelled(&mut self) -> wasmtime::Result<bool> {
        Ok(self.cancellation.is_cancelled())
    }

    async fn remaining_ms(&mut self) -> wasmtime::Result<Option<u64>> {
        Ok(self
            .cancellation
            .remaining()
            .map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)))
    }
}
