//! Lets a tool end early and tidy. A tool that does not look is stopped all the same.

use crate::bindings::floe::tool::cancellation as host;
use std::time::Duration;

/// True once the person has interrupted the call.
pub fn is_cancelled() -> bool {
    host::is_cancelled()
}

/// The time until the deadline of this call; none where there is none.
pub fn remaining() -> Option<Duration> {
    host::remaining_ms().map(Duration::from_millis)
}
