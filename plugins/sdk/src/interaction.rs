//! Asks the person.

use crate::Failure;
use crate::bindings::floe::tool::interaction as host;
pub use host::{Answer, Choice, Question};

/// Asks, and waits until the person answers.
///
/// # Errors
/// `unsupported` where nobody can be asked, `timeout` where nobody answered, `denied` where the tool was not granted it.
pub fn ask(question: &Question) -> Result<Answer, Failure> {
    host::ask(question)
}
