//! Keeps the streaming discipline for all drivers: start, delta*, stop, then the complete message at once, whose text is the
//! concatenation of the deltas. A driver cannot break it, because it has no other way to say something.

use floe_protocol::{Fidelity, ModelMsg, Phase, Role, StopReason};

use crate::object_text::ObjectText;

/// What a driver calls with every message.
pub(crate) type Emit<'a> = &'a mut (dyn FnMut(ModelMsg) + Send);

/// The two kinds of running speech; a change from one to the other ends the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    /// The answer.
    Text,
    /// Reasoning, with the field that it came in and must go back in.
    Thinking {
        /// `reasoning_content` or `reasoning`.
        field: &'static str,
    },
}

/// The key in a thinking's fidelity object that names the field it came in.
pub(crate) const THINKING_FIELD: &str = "field";

struct OpenSpeech {
    kind: Speech,
    text: String,
}

struct OpenCall {
    id: String,
    name: String,
    arguments: ObjectText,
}

/// An open or ended call of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallHandle(usize);

/// The segments of one answer.
pub(crate) struct Segments<'a> {
    emit: Emit<'a>,
    speech: Option<OpenSpeech>,
    calls: Vec<Option<OpenCall>>,
}

impl<'a> Segments<'a> {
    pub(crate) fn new(emit: Emit<'a>) -> Segments<'a> {
        Segments {
            emit,
            speech: None,
            calls: Vec::new(),
        }
    }

    /// Adds to the running speech, or begins one; empty deltas are not passed on.
    pub(crate) fn speak(&mut self, kind: Speech, delta: &str) {
        if delta.is_empty() {
            return;
        }
        if self.speech.as_ref().is_some_and(|open| open.kind != kind) {
            self.end_speech(StopReason::Completed);
        }
        if self.speech.is_none() {
            (self.emit)(speech_fragment(kind, Phase::Start, "", None));
            self.speech = Some(OpenSpeech {
                kind,
                text: String::new(),
            });
        }
        if let Some(open) = &mut self.speech {
            open.text.push_str(delta);
            (self.emit)(speech_fragment(kind, Phase::Delta, delta, None));
        }
    }

    /// Ends the running speech, if there is one.
    pub(crate) fn end_speech(&mut self, reason: StopReason) {
        let Some(OpenSpeech { kind, text }) = self.speech.take() else {
            return;
        };
        (self.emit)(speech_fragment(kind, Phase::Stop, "", Some(reason)));
        (self.emit)(match kind {
            Speech::Text => ModelMsg::Text {
                role: Role::Assistant,
                text,
                sender: None,
                stop_reason: Some(reason),
                fidelity: None,
            },
            Speech::Thinking { field } => {
                let mut fidelity = Fidelity::new();
                fidelity.insert(THINKING_FIELD.to_owned(), field.into());
                ModelMsg::Thinking {
                    thinking: text,
                    stop_reason: Some(reason),
                    fidelity: Some(fidelity),
                }
            }
        });
    }

    /// Begins a call; running speech ends first.
    pub(crate) fn begin_call(&mut self, id: String, name: String) -> CallHandle {
        self.end_speech(StopReason::Completed);
        (self.emit)(ModelMsg::PartialToolCall {
            event_type: Phase::Start,
            name: Some(name.clone()),
            arguments: String::new(),
            tool_call_id: id.clone(),
            stop_reason: None,
        });
        self.calls.push(Some(OpenCall {
            id,
            name,
            arguments: ObjectText::default(),
        }));
        CallHandle(self.calls.len() - 1)
    }

    /// Adds to the arguments of an open call.
    pub(crate) fn extend_call(&mut self, handle: CallHandle, delta: &str) {
        if delta.is_empty() {
            return;
        }
        if let Some(call) = &mut self.calls[handle.0] {
            call.arguments.push(delta);
            (self.emit)(ModelMsg::PartialToolCall {
                event_type: Phase::Delta,
                name: Some(String::new()),
                arguments: delta.to_owned(),
                tool_call_id: call.id.clone(),
                stop_reason: None,
            });
        }
    }

    /// True until a call has ended.
    pub(crate) fn is_open(&self, handle: CallHandle) -> bool {
        self.calls[handle.0].is_some()
    }

    /// True for a call that is open and whose arguments are one complete JSON object; nothing but white space could follow in them.
    pub(crate) fn is_whole(&self, handle: CallHandle) -> bool {
        let call = self.calls[handle.0].as_ref();
        call.is_some_and(|call| call.arguments.is_whole())
    }

    /// Ends a call, if it is open.
    pub(crate) fn end_call(&mut self, handle: CallHandle, reason: StopReason) {
        let Some(call) = self.calls[handle.0].take() else {
            return;
        };
        (self.emit)(ModelMsg::PartialToolCall {
            event_type: Phase::Stop,
            name: None,
            arguments: String::new(),
            tool_call_id: call.id.clone(),
            stop_reason: Some(reason),
        });
        (self.emit)(ModelMsg::ToolCall {
            name: call.name,
            arguments: call.arguments.into_string(),
            tool_call_id: call.id,
            stop_reason: reason,
            fidelity: None,
        });
    }

    /// Ends whatever is open, calls in the order in which they began.
    pub(crate) fn end_all(&mut self, reason: StopReason) {
        self.end_speech(reason);
        for index in 0..self.calls.len() {
            self.end_call(CallHandle(index), reason);
        }
    }
}

fn speech_fragment(
    kind: Speech,
    event_type: Phase,
    delta: &str,
    stop_reason: Option<StopReason>,
) -> ModelMsg {
    match kind {
        Speech::Text => ModelMsg::PartialText {
            role: Role::Assistant,
            event_type,
            text: delta.to_owned(),
            stop_reason,
        },
        Speech::Thinking { .. } => ModelMsg::PartialThinking {
            event_type,
            thinking: delta.to_owned(),
            stop_reason,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(work: impl FnOnce(&mut Segments<'_>)) -> Vec<ModelMsg> {
        let mut messages = Vec::new();
        let mut emit = |message| messages.push(message);
        work(&mut Segments::new(&mut emit));
        messages
    }

    #[test]
    fn a_segment_is_start_deltas_stop_and_the_complete_message() {
        let messages = record(|segments| {
            segments.speak(Speech::Text, "Hel");
            segments.speak(Speech::Text, "");
            segments.speak(Speech::Text, "lo");
            segments.end_all(StopReason::Completed);
        });
        assert_eq!(messages.len(), 5);
        assert!(matches!(
            &messages[4],
            ModelMsg::Text { text, stop_reason: Some(StopReason::Completed), .. } if text == "Hello"
        ));
    }

    #[test]
    fn thinking_then_text_then_a_call_are_three_segments() {
        let messages = record(|segments| {
            segments.speak(Speech::Thinking { field: "reasoning" }, "hm");
            segments.speak(Speech::Text, "so");
            let call = segments.begin_call("c".into(), "list".into());
            segments.extend_call(call, "{}");
            segments.end_all(StopReason::Completed);
            segments.end_all(StopReason::Failed);
        });
        let complete: Vec<_> = messages.iter().filter(|m| !m.is_partial()).collect();
        assert!(matches!(complete[0], ModelMsg::Thinking { .. }));
        assert!(matches!(complete[1], ModelMsg::Text { .. }));
        assert!(matches!(complete[2], ModelMsg::ToolCall { arguments, .. } if arguments == "{}"));
        assert_eq!(complete.len(), 3);
    }
}
