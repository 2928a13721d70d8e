//! What a tool asks the person, and what came of it. The text is that of a model or a tool: whoever shows it makes it visible.

use serde::{Deserialize, Serialize};

/// The event `question`: a call waits for the person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedQuestion {
    /// The call that asks.
    pub tool_call_id: String,
    /// Its tool.
    pub tool: String,
    /// A word or two above the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The question.
    pub text: String,
    /// The answers to choose from; their labels differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<QuestionChoice>,
    /// True where several may be chosen.
    pub multiple: bool,
    /// True where an answer may be written; always so where there is nothing to choose.
    pub free_text: bool,
    /// Index of the choice that the tool suggests. A suggestion is shown and never taken by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested: Option<usize>,
}

/// One answer to choose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionChoice {
    /// A few words.
    pub label: String,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Where an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerSource {
    /// The person.
    User,
    /// The time for an answer ran out: there is none.
    Timeout,
    /// The person could not be asked: there is none.
    Nobody,
}

impl AnswerSource {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            AnswerSource::User => "user",
            AnswerSource::Timeout => "timeout",
            AnswerSource::Nobody => "nobody",
        }
    }
}

/// The event `question_answered`: the call waits no longer. There is none for a call that was interrupted while it waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAnswered {
    /// The call that asked.
    pub tool_call_id: String,
    /// Where the answer came from.
    pub source: AnswerSource,
    /// What was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The labels of what was chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selected: Vec<String>,
    /// Milliseconds that the call waited.
    pub waited_ms: u64,
}

/// How far an item of a todo list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Under way.
    InProgress,
    /// Done.
    Completed,
}

/// One item of a todo list, as the event `todo_list` carries it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_source_are_those_on_the_wire() {
        for source in [
            AnswerSource::User,
            AnswerSource::Timeout,
            AnswerSource::Nobody,
        ] {
            assert_eq!(serde_json::json!(source), source.as_str());
        }
    }

    #[test]
    fn a_question_says_only_what_there_is() {
        let question = AskedQuestion {
            tool_call_id: "c1".into(),
            tool: "ask_clarification".into(),
            header: None,
            text: "Which?".into(),
            choices: vec![],
            multiple: false,
            free_text: true,
            suggested: None,
        };
        assert_eq!(
            serde_json::to_string(&question).unwrap(),
            r#"{"tool_call_id":"c1","tool":"ask_clarification","text":"Which?","multiple":false,"free_text":true}"#
        );
    }
}
