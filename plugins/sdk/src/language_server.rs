//! Asks language servers.

use crate::Failure;
use crate::bindings::floe::tool::language_server as host;
pub use host::{Location, Position, Query, QueryAnswer, Target};

/// Asks one question. The server is started where it does not run.
///
/// # Errors
/// `unsupported` where no server is set up for the language, `timeout` where it does not answer in time, `io` where it is gone, the
/// failures of reading where the file cannot be read, `denied` where the tool was not granted it.
pub fn ask(query: &Query) -> Result<QueryAnswer, Failure> {
    host::ask(query)
}
