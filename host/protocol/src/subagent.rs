//! What a child Session is doing, as its parent's Trace says.

use serde::{Deserialize, Serialize};

/// Characters of a Session's id that the short id of a child ends with.
const SHORT: usize = 8;

/// What a child is called where its whole id is too long: `subagent-` and the last characters of it (spec/environment.md 1.8).
pub fn subagent_name(session_id: &str) -> String {
    let start = session_id.len().saturating_sub(SHORT);
    format!("subagent-{}", session_id.get(start..).unwrap_or(session_id))
}

/// What a child Session is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentState {
    /// It works on a task.
    #[default]
    Running,
    /// It has answered and takes another task.
    Idle,
    /// Its task failed; it takes another.
    Failed,
    /// Its task was broken off; it takes another, where it is still there.
    Aborted,
    /// It is over.
    Finished,
}

impl SubagentState {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            SubagentState::Running => "running",
            SubagentState::Idle => "idle",
            SubagentState::Failed => "failed",
            SubagentState::Aborted => "aborted",
            SubagentState::Finished => "finished",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_called_by_the_end_of_its_id() {
        let id = "session-2026-11-30-09-00-00-0a1b2c3d";
        assert_eq!(subagent_name(id), "subagent-0a1b2c3d");
        assert_eq!(subagent_name("x"), "subagent-x");
        // Where that would part a character the whole id is taken.
        assert_eq!(subagent_name("ä2345678"), "subagent-ä2345678");
    }

    #[test]
    fn the_words_in_texts_are_those_on_the_wire() {
        for state in [
            SubagentState::Running,
            SubagentState::Idle,
            SubagentState::Failed,
            SubagentState::Aborted,
            SubagentState::Finished,
        ] {
            assert_eq!(serde_json::json!(state), state.as_str());
        }
    }
}
