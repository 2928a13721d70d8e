//! A conversation as text: what the model says on standard output, as it streams; what its tools ran on standard error, a
//! few lines each.

use std::collections::HashMap;

use floe_protocol::{Body, EventMsg, ModelMsg, OmniMessage, Phase, Role, StopReason};
use serde_json::Value;

use super::call::note_event;
use super::children::child_message;
use crate::terminal::{Keep, Paint, Screen, Style, visible};

/// Characters of a line that are shown.
const WIDTH: usize = 160;
/// Lines of an output that are shown at its start and at its end.
const FIRST_LINES: usize = 3;
const LAST_LINES: usize = 5;

/// Prints one run.
#[derive(Debug, Default)]
pub(crate) struct RunPrinter {
    /// True while the text of the model was already streamed.
    streamed: bool,
    /// True where something was printed that the next block needs a blank line after.
    block_open: bool,
    /// What the calls that still run were asked to do, by id.
    running: HashMap<String, (String, String)>,
    /// Model requests that were committed.
    turns: u64,
    /// Calls that have their output.
    calls: u64,
}

impl RunPrinter {
    /// Model requests that were committed so far.
    pub(crate) fn turns(&self) -> u64 {
        self.turns
    }

    /// Calls that have their output so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    /// Counts what a message brings, and prints nothing.
    pub(crate) fn count(&mut self, message: &OmniMessage) {
        if !message.origin.is_empty() {
            return;
        }
        match &message.body {
            Body::ModelMsg(ModelMsg::ToolCallOutput { .. }) => self.calls += 1,
            Body::EventMsg(EventMsg::RequestEnd {
                status: StopReason::Completed,
                ..
            }) => self.turns += 1,
            _ => {}
        }
    }

    /// Prints what a message brings.
    pub(crate) fn message(&mut self, message: &OmniMessage, screen: &Screen) {
        if !message.origin.is_empty() {
            return child_message(message, screen);
        }
        self.count(message);
        match &message.body {
            Body::ModelMsg(message) => self.model(message, screen),
            Body::EventMsg(event) => self.event(event, screen),
            Body::SessionMeta(_) => {}
        }
    }

    fn model(&mut self, message: &ModelMsg, screen: &Screen) {
        match message {
            ModelMsg::PartialText {
                role: Role::Assistant,
                event_type,
                text,
                ..
            } => match event_type {
                Phase::Start => self.streamed = false,
                Phase::Delta => self.say(text, screen),
                Phase::Stop => {}
            },
            ModelMsg::Text {
                role: Role::Assistant,
                text,
                ..
            } => {
                if !std::mem::take(&mut self.streamed) {
                    self.say(text, screen);
                    self.streamed = false;
                }
                screen.end_result_line();
            }
            ModelMsg::ToolCall {
                name,
                arguments,
                tool_call_id,
                stop_reason: StopReason::Completed,
                ..
            } => {
                let asked = (name.clone(), asked_for(arguments));
                screen.progress(&visible(&format!("{} {}", asked.0, asked.1), Keep::Nothing));
                self.running.insert(tool_call_id.clone(), asked);
            }
            ModelMsg::ToolCallOutput {
                output,
                images,
                tool_call_id,
                stop_reason,
                ..
            } => {
                let (name, asked) = self.running.remove(tool_call_id).unwrap_or_default();
                let images = images.as_ref().map_or(0, Vec::len);
                let block = call_block(
                    &name,
                    &asked,
                    output,
                    images,
                    *stop_reason,
                    screen.aside_paint(),
                );
                self.block(&block, screen);
            }
            _ => {}
        }
    }

    fn event(&mut self, event: &EventMsg, screen: &Screen) {
        match event {
            EventMsg::RequestBegin {} => screen.progress("waiting for the model"),
            EventMsg::RequestEnd {
                status: StopReason::Completed,
                ..
            } => {}
            EventMsg::RequestEnd {
                status,
                error_message,
                retry_in_ms,
                ..
            } => {
                let reason = error_message.as_deref().unwrap_or(status.as_str());
                let next = match retry_in_ms {
                    Some(milliseconds) => {
                        format!("; next try in {} s", milliseconds.div_ceil(1000))
                    }
                    None => String::new(),
                };
                // A reason that is a sentence goes on.
                let reason = match next.is_empty() {
                    true => reason,
                    false => reason.trim_end_matches('.'),
                };
                let label = screen
                    .aside_paint()
                    .paint(Style::Bad, "model request failed:");
                screen.aside(&format!(
                    "{label} {}{next}",
                    visible(reason, Keep::LinesAndTabs)
                ));
            }
            EventMsg::ToolProgress {
                tool_call_id,
                characters,
            } => {
                if let Some((name, _)) = self.running.get(tool_call_id) {
                    let name = visible(name, Keep::Nothing);
                    screen.progress(&format!("{name}: {characters} characters so far"));
                }
            }
            other => note_event(other, screen),
        }
    }

    /// Text of the model.
    fn say(&mut self, text: &str, screen: &Screen) {
        if text.is_empty() {
            return;
        }
        if !self.streamed && std::mem::replace(&mut self.block_open, true) {
            screen.aside("\n");
        }
        self.streamed = true;
        screen.untrusted_result(text);
    }

    /// A block of lines beside the text.
    fn block(&mut self, lines: &str, screen: &Screen) {
        if std::mem::replace(&mut self.block_open, true) {
            screen.aside("\n");
        }
        screen.aside(lines);
    }
}

/// What a call ran: the command or the only text argument as it is, anything else as JSON.
fn asked_for(arguments: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(arguments).ok();
    let members = parsed.as_ref().and_then(Value::as_object);
    let text = members.and_then(|members| match members.get("cmd") {
        Some(command) => command.as_str(),
        None if members.len() == 1 => members.values().next()?.as_str(),
        None => None,
    });
    text.unwrap_or(arguments).trim_end().to_owned()
}

fn call_block(
    name: &str,
    asked: &str,
    output: &str,
    images: usize,
    stop_reason: StopReason,
    paint: Paint,
) -> String {
    let name = paint.paint(Style::Name, visible(name, Keep::Nothing));
    let mut block = match asked.contains('\n') {
        false => format!("→ {name} {}\n", shortened(&visible(asked, Keep::Nothing))),
        // More than a line is set apart from the output by a sign of its own.
        true => format!("→ {name}\n{}", excerpt(asked, "  $ ", paint)),
    };
    block.push_str(&excerpt(output.trim_end_matches('\n'), "  ", paint));
    if images > 0 {
        block.push_str(&format!("  [{images} image(s)]\n"));
    }
    if stop_reason != StopReason::Completed {
        let how = paint.paint(Style::Bad, format!("({stop_reason})"));
        block.push_str(&format!("  {how}\n"));
    }
    block
}

/// The lines of a text that are shown, each behind `margin`: all of a short one, the first and the last of a long one.
fn excerpt(text: &str, margin: &str, paint: Paint) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let hidden = match lines.len().saturating_sub(FIRST_LINES + LAST_LINES) {
        // A line that says that one line is hidden is no shorter than that line.
        1 => 0,
        hidden => hidden,
    };
    let mut shown = String::new();
    for (index, line) in lines.iter().enumerate() {
        if hidden > 0 && index == FIRST_LINES {
            let words = paint.paint(Style::Quiet, format!("… {hidden} lines …"));
            shown.push_str(&format!("{margin}{words}\n"));
        }
        if hidden == 0 || index < FIRST_LINES || index >= FIRST_LINES + hidden {
            let line = format!("{margin}{}", shortened(&visible(line, Keep::LinesAndTabs)));
            shown.push_str(line.trim_end());
            shown.push('\n');
        }
    }
    shown
}

fn shortened(line: &str) -> String {
    let mut characters = line.chars();
    let mut shown: String = characters.by_ref().take(WIDTH).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::terminal::shared_screen_for_tests;

    fn text(event_type: Phase, text: &str) -> OmniMessage {
        OmniMessage::model(ModelMsg::PartialText {
            role: Role::Assistant,
            event_type,
            text: text.into(),
            stop_reason: None,
        })
    }

    fn whole(text: &str) -> OmniMessage {
        OmniMessage::model(ModelMsg::Text {
            role: Role::Assistant,
            text: text.into(),
            sender: None,
            stop_reason: Some(StopReason::Completed),
            fidelity: None,
        })
    }

    fn call(id: &str, name: &str, arguments: &str) -> OmniMessage {
        OmniMessage::model(ModelMsg::ToolCall {
            name: name.into(),
            arguments: arguments.into(),
            tool_call_id: id.into(),
            stop_reason: StopReason::Completed,
            fidelity: None,
        })
    }

    fn output(id: &str, output: &str, stop_reason: StopReason) -> OmniMessage {
        OmniMessage::model(ModelMsg::ToolCallOutput {
            role: Role::User,
            output: output.into(),
            images: None,
            tool_call_id: id.into(),
            stop_reason,
            facts: None,
        })
    }

    #[test]
    fn a_run_reads_as_text_and_calls_in_the_order_in_which_they_ended() {
        let (screen, pane) = shared_screen_for_tests();
        let mut printer = RunPrinter::default();
        let numbers: String = (1..=40).map(|number| format!("{number}\n")).collect();
        for message in [
            text(Phase::Start, ""),
            text(Phase::Delta, "I look "),
            text(Phase::Delta, "around."),
            text(Phase::Stop, ""),
            whole("I look around."),
            call("c1", "list", r#"{"path":"."}"#),
            call("c2", "exec_command", r#"{"cmd":"make check\u001b[2J"}"#),
            output("c2", "broken\n\n[exit code: 1]", StopReason::Failed),
            output("c1", "a\nb\n", StopReason::Completed),
            OmniMessage::event(EventMsg::RequestEnd {
                status: StopReason::Completed,
                error_message: None,
                attempt: None,
                retry_in_ms: None,
            }),
            call("c3", "file_read", r#"{"path":"long","offset":1}"#),
            call("c4", "exec_command", r#"{"cmd":"make &&\nmake check\n"}"#),
            output("c4", "built\n", StopReason::Completed),
            output("c3", &numbers, StopReason::Completed),
            whole("Done."),
        ] {
            printer.message(&message, &screen);
        }
        assert_eq!((printer.turns(), printer.calls()), (1, 4));
        expect![[r#"
            I look around.

            → exec_command make check\x1b[2J
              broken

              [exit code: 1]
              (failed)

            → list .
              a
              b

            → exec_command
              $ make &&
              $ make check
              built

            → file_read {"path":"long","offset":1}
              1
              2
              3
              … 32 lines …
              36
              37
              38
              39
              40

            Done.
        "#]]
        .assert_eq(&pane.text());
    }

    #[test]
    fn a_failed_request_says_when_it_is_tried_again() {
        let (screen, pane) = shared_screen_for_tests();
        RunPrinter::default().message(
            &OmniMessage::event(EventMsg::RequestEnd {
                status: StopReason::Failed,
                error_message: Some("The connection was refused.".into()),
                attempt: Some(1),
                retry_in_ms: Some(2000),
            }),
            &screen,
        );
        expect![[r#"
            model request failed: The connection was refused; next try in 2 s
        "#]]
        .assert_eq(&pane.text());
    }
}
