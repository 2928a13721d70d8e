//! The todo list, the plan and the mode of the Session.

use crate::Failure;
use crate::bindings::floe::tool::session_state as host;
pub use host::{TodoItem, TodoStatus};

/// The todo list as it stands. The call ends with a failure where the tool was not granted it.
pub fn todos() -> Vec<TodoItem> {
    host::todos()
}

/// Replaces the todo list.
///
/// # Errors
/// `denied` where the tool was not granted it.
pub fn set_todos(items: &[TodoItem]) -> Result<(), Failure> {
    host::set_todos(items)
}

/// Proposes a plan and waits: `approved`, `rejected` or `revise`, with the person's words.
///
/// # Errors
/// `denied` where the tool was not granted it, `unsupported` where nobody can decide.
pub fn propose_plan(plan: &str) -> Result<(String, Option<String>), Failure> {
    host::propose_plan(plan)
}

/// `plan` or `build`. The call ends with a failure where the tool was not granted it.
pub fn mode() -> String {
    host::mode()
}
