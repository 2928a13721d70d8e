//! Child Sessions: other agents that work on a task of their own in the same Workspace. A child that a call starts ends with the call,
//! unless it is kept.

use crate::Failure;
use crate::bindings::floe::tool::subagents as host;
pub use host::{SubagentRequest, SubagentState, SubagentStatus};
use std::time::Duration;

/// The longest that one look waits.
const LOOK: Duration = Duration::from_secs(600);

/// A child Session.
#[derive(Debug)]
pub struct Subagent(host::Subagent);

/// How a task of a child ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// What the child does now: it is at rest.
    pub state: SubagentState,
    /// What it answered.
    pub text: String,
    /// Why there is no answer.
    pub failure: Option<Failure>,
}

impl Subagent {
    /// Starts a child, which begins to work.
    ///
    /// # Errors
    /// `not-found` for an agent that there is not, `invalid-args` for a model, `too-many`, `denied` where the Session may have no
    /// children or the tool was not granted them.
    pub fn start(request: &SubagentRequest) -> Result<Subagent, Failure> {
        host::Subagent::start(request).map(Subagent)
    }

    /// Finds a child that an earlier call kept.
    ///
    /// # Errors
    /// `not-found` where there is none, `denied` where the tool was not granted them.
    pub fn attach(subagent_id: &str) -> Result<Subagent, Failure> {
        host::Subagent::attach(subagent_id).map(Subagent)
    }

    /// The id of its Session, by which a later call can attach.
    pub fn session_id(&self) -> String {
        self.0.subagent_id()
    }

    /// The short form of [`Subagent::session_id`], for a model to repeat; attaching takes it too.
    pub fn short_id(&self) -> String {
        short(&self.session_id())
    }

    /// Gives it another task, which it begins to work on.
    ///
    /// # Errors
    /// `conflict` where it works on one.
    pub fn send_prompt(&self, prompt: &str) -> Result<(), Failure> {
        self.0.send_prompt(prompt)
    }

    /// Waits until its task has ended, however long that takes.
    ///
    /// # Errors
    /// The host's.
    pub fn answered(&self) -> Result<Answered, Failure> {
        let wait_ms = u32::try_from(LOOK.as_millis()).unwrap_or(u32::MAX);
        loop {
            let status = self.0.wait(wait_ms)?;
            let is_working = matches!(
                status.state,
                SubagentState::Running | SubagentState::WaitingForApproval
            );
            if !is_working {
                return Ok(Answered {
                    state: status.state,
                    text: status.text,
                    failure: status.failure,
                });
            }
        }
    }

    /// Leaves it for later calls, which find it by its id.
    ///
    /// # Errors
    /// The host's.
    pub fn keep(&self) -> Result<(), Failure> {
        self.0.keep()
    }
}

/// `subagent-` and the last eight characters of a Session's id.
fn short(session_id: &str) -> String {
    let start = session_id.len().saturating_sub(8);
    format!("subagent-{}", session_id.get(start..).unwrap_or(session_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_id_ends_as_the_id_of_the_session_does() {
        assert_eq!(
            short("session-2026-11-30-09-00-00-0a1b2c3d"),
            "subagent-0a1b2c3d"
        );
        assert_eq!(short("x"), "subagent-x");
    }
}
