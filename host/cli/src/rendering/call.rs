//! The output of one call as text: the deltas as they come, on standard output; notes beside them on standard error.

use floe_protocol::{Body, DecidedBy, DecisionKind, EventMsg, ModelMsg, OmniMessage, Phase};

use super::children::child_message;
use crate::terminal::{Keep, Screen, Style, visible};

/// Prints the one call of a Session.
#[derive(Debug, Default)]
pub(crate) struct CallPrinter {
    /// True once the output was framed, so that the complete message brings nothing new.
    framed: bool,
    /// What a person can do about a call that a gate refused; the model needs no such word.
    hint: Option<&'static str>,
}

impl CallPrinter {
    /// Prints what a message brings.
    pub(crate) fn message(&mut self, message: &OmniMessage, screen: &Screen) {
        if !message.origin.is_empty() {
            return child_message(message, screen);
        }
        match &message.body {
            Body::ModelMsg(ModelMsg::PartialToolCallOutput {
                event_type,
                output,
                images,
                ..
            }) => {
                self.framed = true;
                screen.untrusted_result(output);
                note_images(images.as_deref().unwrap_or_default(), screen);
                if *event_type == Phase::Stop {
                    screen.end_result_line();
                }
            }
            Body::ModelMsg(ModelMsg::ToolCallOutput { output, images, .. }) => {
                if !self.framed {
                    screen.untrusted_result(output);
                    note_images(images.as_deref().unwrap_or_default(), screen);
                    screen.end_result_line();
                }
                if let Some(hint) = self.hint.take() {
                    screen.aside(hint);
                }
            }
            Body::EventMsg(event) => {
                if let EventMsg::ApprovalDecision(decision) = event {
                    self.hint = hint(decision.gate.as_deref());
                }
                note_event(event, screen);
            }
            _ => {}
        }
    }
}

/// What to type instead, where the gate that refused the call says what was wrong with the line.
fn hint(gate: Option<&str>) -> Option<&'static str> {
    match gate {
        Some("name") => Some("`floe tools --toolset all` lists the tools that there are."),
        Some("json") => Some(
            "In a shell, put single quotes around the JSON: floe call list '{\"path\":\"src\"}'",
        ),
        _ => None,
    }
}

/// Says on standard error what a person should know beside the output.
pub(crate) fn note_event(event: &EventMsg, screen: &Screen) {
    match event {
        EventMsg::Warning { message, .. } => {
            let label = screen.aside_paint().paint(Style::Warning, "warning:");
            screen.aside(&format!("{label} {}", visible(message, Keep::LinesAndTabs)));
        }
        EventMsg::BackgroundTaskDone(task) => {
            let (label, detail) = (
                visible(&task.label, Keep::Nothing),
                visible(&task.detail, Keep::Nothing),
            );
            screen.aside(&format!("`{label}` ({}) has ended: {detail}", task.id));
        }
        // The model reads that it was denied; only the person can change why.
        EventMsg::ApprovalDecision(decision) if decision.by == DecidedBy::Nobody => {
            let label = screen.aside_paint().paint(Style::Warning, "warning:");
            let tool = visible(&decision.tool, Keep::Nothing);
            let else_ = match decision.kind {
                // No approval mode decides about what is beyond the sandbox.
                DecisionKind::Widening => {
                    "give what it needs with --allow-host, --allow-read or --allow-write".to_owned()
                }
                _ => format!("choose another --approve (now {})", decision.mode.as_str()),
            };
            screen.aside(&format!(
                "{label} nobody could be asked about `{tool}`, so it was denied. Run floe in a terminal to be asked, or {else_}."
            ));
        }
        EventMsg::Subagent {
            session_id,
            description,
            state,
            ..
        } => super::children::subagent(session_id, description.as_deref(), *state, screen),
        EventMsg::ToolProgress { characters, .. } => {
            screen.progress(&format!("{characters} characters so far"))
        }
        _ => {}
    }
}

/// Images are for models; a person is told that there is one.
fn note_images(images: &[String], screen: &Screen) {
    for image in images {
        screen.aside(&describe_image(image));
    }
}

/// `data:image/png;base64,…` as a few words.
fn describe_image(image: &str) -> String {
    let described = image
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    match described {
        Some((kind, data)) => {
            let bytes = data.trim_end_matches('=').len() * 3 / 4;
            format!(
                "[image: {}, {bytes} bytes; --output json prints it]",
                visible(kind, Keep::Nothing)
            )
        }
        None => format!("[image: {}]", visible(image, Keep::Nothing)),
    }
}

#[cfg(test)]
mod tests {
    use floe_protocol::{Role, StopReason};

    use super::*;
    use crate::terminal::screen_for_tests;

    fn partial(event_type: Phase, output: &str, images: Option<Vec<String>>) -> OmniMessage {
        OmniMessage::model(ModelMsg::PartialToolCallOutput {
            role: Role::User,
            event_type,
            output: output.into(),
            images,
            tool_call_id: "c1".into(),
            stop_reason: None,
        })
    }

    fn complete(output: &str) -> OmniMessage {
        OmniMessage::model(ModelMsg::ToolCallOutput {
            role: Role::User,
            output: output.into(),
            images: None,
            tool_call_id: "c1".into(),
            stop_reason: StopReason::Completed,
            facts: None,
        })
    }

    fn printed(messages: &[OmniMessage]) -> (String, String) {
        let (screen, result, aside) = screen_for_tests();
        let mut printer = CallPrinter::default();
        for message in messages {
            printer.message(message, &screen);
        }
        (result.text(), aside.text())
    }

    #[test]
    fn a_framed_output_is_printed_once_with_a_final_line_feed() {
        let messages = [
            partial(Phase::Start, "", None),
            partial(Phase::Delta, "a\nb\n", None),
            partial(Phase::Delta, "\n[exit code: 3]", None),
            partial(Phase::Stop, "", None),
            complete("a\nb\n\n[exit code: 3]"),
        ];
        assert_eq!(
            printed(&messages),
            ("a\nb\n\n[exit code: 3]\n".into(), String::new())
        );
    }

    #[test]
    fn an_output_that_was_never_framed_is_printed_from_the_complete_message() {
        assert_eq!(
            printed(&[complete("Tool call denied by user.")]).0,
            "Tool call denied by user.\n"
        );
    }

    #[test]
    fn an_image_is_named_and_not_printed() {
        let image = "data:image/png;base64,aGVsbG8=".to_owned();
        let (result, aside) = printed(&[partial(Phase::Delta, "", Some(vec![image]))]);
        assert_eq!(result, "");
        assert_eq!(
            aside,
            "[image: image/png, 5 bytes; --output json prints it]\n"
        );
    }

    #[test]
    fn a_denial_without_a_person_names_what_would_have_allowed_it() {
        let denied = |kind| {
            let (screen, _, aside) = screen_for_tests();
            let decision = serde_json::json!({
                "decision": "deny", "tool_call_id": "c1", "tool": "curl", "kind": kind, "mode": "allow-all", "by": "nobody",
                "scope": "once", "arguments_sha256": "", "capabilities": [], "waited_ms": 0
            });
            let decision = serde_json::from_value(decision).unwrap();
            note_event(&EventMsg::ApprovalDecision(decision), &screen);
            aside.text()
        };
        assert!(denied("call").contains("choose another --approve (now allow-all)"));
        let widening = denied("widening");
        assert!(widening.contains("--allow-host"), "{widening}");
        assert!(
            !widening.contains("--approve"),
            "no mode decides about that: {widening}"
        );
    }

    #[test]
    fn messages_of_children_are_not_mixed_in() {
        assert_eq!(
            printed(&[complete("child").with_origin("session-child")]).0,
            ""
        );
    }
}
