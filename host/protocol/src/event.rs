//! What happened around the conversation.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ApprovalDecision, AskedQuestion, BackgroundTask, QuestionAnswered, StopReason, SubagentState,
    Todo,
};

/// Tokens of one request, or of a Session so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCount {
    /// Input that the provider had cached.
    pub cache_read: u64,
    /// Input that it had not.
    pub cache_write: u64,
    /// Reasoning and answer.
    pub output: u64,
    /// The sum.
    pub total: u64,
}

impl std::ops::AddAssign for TokenCount {
    /// Stops at the largest number: counts come from services, which may claim anything.
    fn add_assign(&mut self, other: TokenCount) {
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
        self.total = self.total.saturating_add(other.total);
    }
}

/// The payload of an `event_msg`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventMsg {
    /// The one decision about a call.
    ApprovalDecision(ApprovalDecision),
    /// A call asks the person something, and waits.
    Question(AskedQuestion),
    /// The question of a call is no longer open.
    QuestionAnswered(QuestionAnswered),
    /// A plan waits for the person: a decision of kind `plan` follows, now or in a later run.
    PlanProposed {
        /// The call that handed it in.
        tool_call_id: String,
        /// The plan, as the model wrote it.
        plan: String,
    },
    /// The todo list of the Session was replaced.
    TodoList {
        /// The list as it is now.
        todos: Vec<Todo>,
    },
    /// The run was interrupted; the last message of it.
    Abort {
        /// Why.
        reason: Option<String>,
    },
    /// Tokens after a request.
    TokenUsage {
        /// The Session so far.
        session: TokenCount,
        /// This request.
        request: TokenCount,
    },
    /// A model request starts.
    RequestBegin {},
    /// A model request ended. `completed` means that its round is committed.
    RequestEnd {
        /// How.
        status: StopReason,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
        /// The attempt, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
        /// Milliseconds until the next attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_in_ms: Option<u64>,
    },
    /// The tools that the model is offered: `{name, description, parameters}` each.
    ToolListReady {
        /// The tools.
        tools: Vec<Value>,
    },
    /// A child Session was started, has come to the end of a task, or has ended.
    Subagent {
        /// The child.
        session_id: String,
        /// Its agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// What its task is, in a few words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// What it is doing from here on.
        #[serde(default)]
        state: SubagentState,
        /// The child's last Trace hash, where it is at rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
    },
    /// Work that a call left in the background has ended, and nobody had read that by then.
    BackgroundTaskDone(BackgroundTask),
    /// How much a call whose output no longer streams has produced. Streamed, never recorded.
    ToolProgress {
        /// The call.
        tool_call_id: String,
        /// Unicode scalar values so far.
        characters: u64,
    },
    /// Something that a person should know and that stops nothing.
    Warning {
        /// A stable word for programs, such as `unknown_tool` or `login_environment`.
        code: String,
        /// For the person.
        message: String,
    },
    /// A torn last line was ended before this record.
    TraceHealed {
        /// Bytes of the torn line.
        bytes: u64,
    },
    /// Records that could not be written while writing failed.
    TraceGap {
        /// How many.
        records: u64,
        /// Why.
        reason: String,
    },
}

impl EventMsg {
    /// True for an event that is streamed and never recorded.
    pub fn is_transient(&self) -> bool {
        matches!(self, EventMsg::ToolProgress { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_a_service_made_up_stop_at_the_largest_number() {
        let most = TokenCount {
            cache_read: u64::MAX,
            cache_write: 1,
            output: u64::MAX,
            total: u64::MAX,
        };
        let mut sum = most;
        sum += most;
        assert_eq!(
            sum,
            TokenCount {
                cache_write: 2,
                ..most
            }
        );
    }
}
