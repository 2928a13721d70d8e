//! A small runtime for suites that need nothing around it.

use std::time::Duration;

use floe_runtime::{Runtime, RuntimeOptions};
use tokio::runtime::Handle;

/// A runtime with room for eight guests, which have 150 ms to describe themselves. Call it on the runtime that does the I/O.
///
/// # Panics
///
/// Where the engine does not start.
pub fn runtime() -> Runtime {
    let mut options = RuntimeOptions::new(Handle::current());
    options.pool = Some(8);
    options.describe_deadline = Duration::from_millis(150);
    Runtime::new(options).expect("a runtime")
}
