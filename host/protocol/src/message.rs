//! The envelope: one JSON object a line.

use serde::{Deserialize, Serialize};

use crate::{EventMsg, ModelMsg};

/// The message that everything speaks: the loop, the surfaces and the Trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OmniMessage {
    /// ISO 8601 in UTC with milliseconds.
    pub timestamp: String,
    /// What it says.
    #[serde(flatten)]
    pub body: Body,
    /// The chain of child Sessions that it came through, outermost first; empty for the main Session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origin: Vec<String>,
}

/// The kind of a message and its payload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum Body {
    /// What a Session is; the first record of a Trace.
    SessionMeta(SessionMeta),
    /// Between the model and its tools.
    ModelMsg(ModelMsg),
    /// Around the conversation.
    EventMsg(EventMsg),
}

/// What started a Session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// One call from the command line.
    Call,
    /// A connection of a tool client.
    Mcp,
    /// A parent Session.
    Subagent,
}

/// The payload of `session_meta`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionMeta {
    /// The Session.
    pub session_id: String,
    /// The model's provider; null where there is no model.
    pub provider: Option<String>,
    /// The model; null where there is none.
    pub model_id: Option<String>,
    /// Tokens, or the word "unknown".
    pub model_context_window: serde_json::Value,
    /// The assembled system prompt.
    pub system_prompt: String,
    /// The agent's folder.
    pub agent_state: String,
    /// The Workspace's canonical path.
    pub workspace: String,
    /// What started it, where it was not a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// `plan` or `build`.
    pub mode: crate::Mode,
    /// The approval mode.
    pub approval_mode: crate::ApprovalMode,
}

/// The time now as a message carries it: ISO 8601, UTC, milliseconds.
pub fn now() -> String {
    let now = jiff::Timestamp::now();
    format!("{now:.3}")
}

impl OmniMessage {
    /// A message of this moment.
    pub fn new(body: Body) -> OmniMessage {
        OmniMessage {
            timestamp: now(),
            body,
            origin: Vec::new(),
        }
    }

    /// A message between the model and its tools.
    pub fn model(message: ModelMsg) -> OmniMessage {
        OmniMessage::new(Body::ModelMsg(message))
    }

    /// An event.
    pub fn event(event: EventMsg) -> OmniMessage {
        OmniMessage::new(Body::EventMsg(event))
    }

    /// The same message as it came through a child Session.
    pub fn with_origin(mut self, session_id: &str) -> OmniMessage {
        self.origin.insert(0, session_id.to_owned());
        self
    }

    /// True where a Trace keeps it: complete, of this Session, not a mere progress event.
    pub fn is_recordable(&self) -> bool {
        self.origin.is_empty()
            && match &self.body {
                Body::SessionMeta(_) => true,
                Body::ModelMsg(message) => !message.is_partial(),
                Body::EventMsg(event) => !event.is_transient(),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Phase, Role, StopReason};

    fn wire(body: Body) -> String {
        serde_json::to_string(&OmniMessage {
            timestamp: "2026-11-30T09:00:00.000Z".into(),
            body,
            origin: Vec::new(),
        })
        .unwrap()
    }

    #[test]
    fn a_tool_call_has_the_wire_form_of_the_contract() {
        assert_eq!(
            wire(Body::ModelMsg(ModelMsg::ToolCall {
                name: "exec_command".into(),
                arguments: "{\"cmd\":\"ls\"}".into(),
                tool_call_id: "c1".into(),
                stop_reason: StopReason::Completed,
                fidelity: None,
            })),
            r#"{"timestamp":"2026-11-30T09:00:00.000Z","type":"model_msg","payload":{"type":"tool_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","tool_call_id":"c1","stop_reason":"completed"}}"#
        );
    }

    #[test]
    fn a_start_fragment_has_the_wire_form_of_the_contract() {
        assert_eq!(
            wire(Body::ModelMsg(ModelMsg::PartialToolCallOutput {
                role: Role::User,
                event_type: Phase::Start,
                output: String::new(),
                images: None,
                tool_call_id: "c1".into(),
                stop_reason: None,
            })),
            r#"{"timestamp":"2026-11-30T09:00:00.000Z","type":"model_msg","payload":{"type":"partial_tool_call_output","role":"user","event_type":"start","output":"","tool_call_id":"c1"}}"#
        );
    }

    #[test]
    fn every_message_reads_back_from_its_line() {
        let message = OmniMessage::event(EventMsg::RequestBegin {}).with_origin("session-child");
        let line = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<OmniMessage>(&line).unwrap(), message);
    }

    #[test]
    fn fragments_and_messages_of_children_are_not_recorded() {
        assert!(OmniMessage::event(EventMsg::RequestBegin {}).is_recordable());
        assert!(
            !OmniMessage::event(EventMsg::RequestBegin {})
                .with_origin("s")
                .is_recordable()
        );
        assert!(
            !OmniMessage::model(ModelMsg::PartialText {
                role: Role::Assistant,
                event_type: Phase::Delta,
                text: "a".into(),
                stop_reason: None,
            })
            .is_recordable()
        );
    }

    #[test]
    fn the_timestamp_is_utc_with_milliseconds() {
        let stamp = now();
        assert_eq!(stamp.len(), "2026-11-30T09:00:00.000Z".len(), "{stamp}");
        assert!(stamp.ends_with('Z'));
    }
}
