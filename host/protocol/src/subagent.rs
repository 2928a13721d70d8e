//! What a child Session is doing, as its parent's Trace says.

use serde::{Deserialize, Serialize};

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
