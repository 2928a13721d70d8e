//! Searches the web with the engine that the operator set up; `unsupported` where there is none.

use crate::Failure;
use crate::bindings::floe::tool::web_search as host;
pub use host::{Hit, Hits};

/// At most `max_results` hits, best first.
///
/// # Errors
/// `unsupported` where no engine is set up, else why the engine did not answer.
pub fn search(query: &str, max_results: u32) -> Result<Hits, Failure> {
    host::search(query, max_results)
}
