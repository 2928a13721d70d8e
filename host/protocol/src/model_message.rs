//! What passes between the model and its tools: complete messages and the fragments they stream in.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Facts, StopReason};

/// An opaque object of the provider (signatures, encrypted reasoning) that must come back untouched.
pub type Fidelity = serde_json::Map<String, Value>;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or a tool that answers.
    User,
    /// The model.
    Assistant,
}

/// A fragment's place in its segment: start, delta*, stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Opens the segment.
    Start,
    /// Carries text.
    Delta,
    /// Ends the segment; the complete message follows at once.
    Stop,
}

fn user() -> Role {
    Role::User
}

/// The payload of a `model_msg`. The concatenated deltas of a segment equal its complete message byte for byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModelMsg {
    /// A whole text.
    Text {
        /// Who speaks.
        role: Role,
        /// What is said.
        text: String,
        /// Who wrote a user text: `user` (where absent), `parent_agent`, `harness` or `server`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sender: Option<String>,
        /// Why it ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_reason: Option<StopReason>,
        /// The provider's own object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fidelity: Option<Fidelity>,
    },
    /// An image by address.
    ImageUrl {
        /// Who speaks.
        #[serde(default = "user")]
        role: Role,
        /// A `data:` or `http(s):` URL.
        image_url: String,
    },
    /// Data inline.
    InlineData {
        /// Who speaks.
        role: Role,
        /// Base64.
        data: String,
        /// The media type.
        mime_type: String,
        /// The provider's own object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fidelity: Option<Fidelity>,
    },
    /// Reasoning that may be shown.
    Thinking {
        /// The reasoning.
        thinking: String,
        /// Why it ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_reason: Option<StopReason>,
        /// The provider's own object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fidelity: Option<Fidelity>,
    },
    /// A whole tool call. One whose stop reason is not `completed` was cut off: it is never run and never answered.
    ToolCall {
        /// The tool.
        name: String,
        /// A JSON object as text, exactly as the model wrote it.
        arguments: String,
        /// Unique within the Session.
        tool_call_id: String,
        /// Why it ended.
        stop_reason: StopReason,
        /// The provider's own object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fidelity: Option<Fidelity>,
    },
    /// A whole output; exactly one for every call that was run or refused.
    ToolCallOutput {
        /// Always `user`.
        #[serde(default = "user")]
        role: Role,
        /// What the model reads.
        output: String,
        /// `data:` URLs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        images: Option<Vec<String>>,
        /// The call.
        tool_call_id: String,
        /// Why it ended.
        stop_reason: StopReason,
        /// What the host knows about the call apart from its text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        facts: Option<Facts>,
    },
    /// A fragment of a text.
    PartialText {
        /// Who speaks.
        role: Role,
        /// Its place in the segment.
        event_type: Phase,
        /// The text of a delta; empty otherwise.
        text: String,
        /// On stop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_reason: Option<StopReason>,
    },
    /// A fragment of reasoning.
    PartialThinking {
        /// Its place in the segment.
        event_type: Phase,
        /// The text of a delta; empty otherwise.
        thinking: String,
        /// On stop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_reason: Option<StopReason>,
    },
    /// A fragment of a tool call.
    PartialToolCall {
        /// Its place in the segment.
        event_type: Phase,
        /// The tool in the start, empty in a delta, absent on stop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// A piece of the arguments.
        arguments: String,
        /// The call.
        tool_call_id: String,
        /// On stop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_reason: Option<StopReason>,
    },
    /// A fragment of a tool's output.
    PartialToolCallOutput {
        /// Always `user`.
        #[serde(default = "user")]
        role: Role,
        /// Its place in the segment.
        event_type: Phase,
        /// The text of a delta; empty otherwise.
        output: String,
        /// All images in one delta, never chunked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        images: Option<Vec<String>>,
        /// The call.
        tool_call_id: String,
        /// On stop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_reason: Option<StopReason>,
    },
}

impl ModelMsg {
    /// True for a fragment, which is streamed and never recorded.
    pub fn is_partial(&self) -> bool {
        matches!(
            self,
            ModelMsg::PartialText { .. }
                | ModelMsg::PartialThinking { .. }
                | ModelMsg::PartialToolCall { .. }
                | ModelMsg::PartialToolCallOutput { .. }
        )
    }

    /// A plain text of the person.
    pub fn user_text(text: impl Into<String>) -> ModelMsg {
        ModelMsg::Text {
            role: Role::User,
            text: text.into(),
            sender: None,
            stop_reason: None,
            fidelity: None,
        }
    }
}
