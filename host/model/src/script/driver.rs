//! Plays a script, request by request.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use floe_protocol::{ModelMsg, Role, StopReason, TokenCount};
use tokio_util::sync::CancellationToken;

use super::file::{Script, Turn};
use crate::segments::{Segments, Speech};
use crate::{ModelAnswer, ModelDriver, ModelError, ModelErrorKind, ModelOpenError, ModelRequest};

/// What the driver says when the turns are used up (decisions.md "Surfaces").
const SCRIPT_ENDED: &str = "[script ended]";

/// Characters of an output that a missed expectation shows.
const SHOWN: usize = 400;

/// Bytes of a script.
const LONGEST_SCRIPT: u64 = 16 * 1024 * 1024;

/// A model that plays a script.
pub struct ScriptDriver {
    name: String,
    script: Script,
    position: Mutex<Position>,
}

#[derive(Default)]
struct Position {
    turn: usize,
    calls: usize,
    children: usize,
}

impl ScriptDriver {
    /// Reads and checks the script in a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or does not parse.
    pub fn open(path: &Path) -> Result<ScriptDriver, ModelOpenError> {
        let text = read(path).map_err(|error| ModelOpenError::ScriptUnreadable {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        let script = Script::parse(&text, path)?;
        Ok(ScriptDriver::new(path.display().to_string(), script))
    }

    /// Plays a script that is already parsed; `name` is what it is called in messages.
    pub fn new(name: impl Into<String>, script: Script) -> ScriptDriver {
        ScriptDriver {
            name: name.into(),
            script,
            position: Mutex::default(),
        }
    }

    /// The model of the next child Session: the k-th script of `subagents` for the k-th child; one without turns when they are
    /// used up.
    fn next_child(&self) -> ScriptDriver {
        let mut position = self.position();
        let index = position.children;
        position.children += 1;
        let script = self.script.subagents.get(index).cloned();
        ScriptDriver::new(
            format!("{}#subagents[{index}]", self.name),
            script.unwrap_or_default(),
        )
    }

    fn position(&self) -> std::sync::MutexGuard<'_, Position> {
        self.position
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The next turn with its number from 1 and the number of the first call in it; none after the last.
    fn advance(&self) -> Option<(usize, &Turn, usize)> {
        let mut position = self.position();
        let turn = self.script.turns.get(position.turn)?;
        position.turn += 1;
        let first_call = position.calls + 1;
        position.calls += turn.tool_calls.len();
        Some((position.turn, turn, first_call))
    }

    fn check(&self, number: usize, turn: &Turn, outputs: &[&str]) -> Result<(), ModelError> {
        for (position, pattern) in turn.expect.iter().enumerate() {
            let Some(pattern) = pattern else { continue };
            let met = outputs.get(position);
            if met.is_some_and(|output| pattern.0.is_match(output)) {
                continue;
            }
            let found = match met {
                Some(output) => format!("it starts with {:?}", beginning(output)),
                None => format!("the turn before has {} output(s)", outputs.len()),
            };
            return Err(ModelError::new(
                ModelErrorKind::Expectation,
                format!(
                    "{}: turn {number} expects output {} of the turn before to match `{}`, but {found}",
                    self.name,
                    position + 1,
                    pattern.0
                ),
            )
            .permanent());
        }
        Ok(())
    }
}

/// The text of a script. It may come through a pipe, and must not be one that never ends.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?
        .take(LONGEST_SCRIPT + 1)
        .read_to_string(&mut text)?;
    if read as u64 > LONGEST_SCRIPT {
        let reason = format!("it is longer than {LONGEST_SCRIPT} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(text)
}

fn beginning(output: &str) -> String {
    let mut characters = output.chars();
    let mut beginning: String = characters.by_ref().take(SHOWN).collect();
    if characters.next().is_some() {
        beginning.push('…');
    }
    beginning
}

/// The outputs after the model's last message, in call order.
fn last_outputs(history: &[ModelMsg]) -> Vec<&str> {
    let spoken_by_model = |message: &ModelMsg| {
        matches!(
            message,
            ModelMsg::ToolCall { .. }
                | ModelMsg::Thinking { .. }
                | ModelMsg::Text {
                    role: Role::Assistant,
                    ..
                }
        )
    };
    let start = history
        .iter()
        .rposition(spoken_by_model)
        .map_or(0, |last| last + 1);
    history[start..]
        .iter()
        .filter_map(|message| match message {
            ModelMsg::ToolCallOutput { output, .. } => Some(output.as_str()),
            _ => None,
        })
        .collect()
}

#[async_trait]
impl ModelDriver for ScriptDriver {
    fn model_id(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> &str {
        "script"
    }

    fn context_window(&self) -> Option<u64> {
        None
    }

    fn vision(&self) -> bool {
        true
    }

    fn for_child(&self) -> Option<Arc<dyn ModelDriver>> {
        Some(Arc::new(self.next_child()))
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        emit: &mut (dyn FnMut(ModelMsg) + Send),
        cancel: &CancellationToken,
    ) -> Result<ModelAnswer, ModelError> {
        if cancel.is_cancelled() {
            return Err(ModelError::aborted());
        }
        let mut segments = Segments::new(emit);
        match self.advance() {
            None => segments.speak(Speech::Text, SCRIPT_ENDED),
            Some((number, turn, first_call)) => {
                self.check(number, turn, &last_outputs(&request.history))?;
                segments.speak(Speech::Text, turn.text.as_deref().unwrap_or_default());
                for (offset, call) in turn.tool_calls.iter().enumerate() {
                    let handle = segments
                        .begin_call(format!("call_{}", first_call + offset), call.name.clone());
                    segments.extend_call(handle, &call.arguments.0);
                    segments.end_call(handle, StopReason::Completed);
                }
            }
        }
        segments.end_all(StopReason::Completed);
        Ok(ModelAnswer {
            usage: Some(TokenCount::default()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(text: &str) -> ScriptDriver {
        ScriptDriver::new(
            "demo.yaml",
            Script::parse(text, Path::new("demo.yaml")).unwrap(),
        )
    }

    async fn ask(
        driver: &ScriptDriver,
        history: Vec<ModelMsg>,
    ) -> Result<Vec<ModelMsg>, ModelError> {
        let request = ModelRequest {
            history,
            ..ModelRequest::default()
        };
        let mut messages = Vec::new();
        let mut emit = |message: ModelMsg| {
            if !message.is_partial() {
                messages.push(message);
            }
        };
        driver
            .stream(&request, &mut emit, &CancellationToken::new())
            .await?;
        Ok(messages)
    }

    fn output(id: &str, text: &str) -> ModelMsg {
        ModelMsg::ToolCallOutput {
            role: Role::User,
            output: text.into(),
            images: None,
            tool_call_id: id.into(),
            stop_reason: StopReason::Completed,
            facts: None,
        }
    }

    #[tokio::test]
    async fn each_request_gets_the_next_turn_and_then_the_script_has_ended() {
        let driver = driver("turns:\n- text: one\n- tool_calls: [{name: list}, {name: list}]\n");
        assert!(
            matches!(&ask(&driver, vec![]).await.unwrap()[..], [ModelMsg::Text { text, .. }] if text == "one")
        );
        let calls = ask(&driver, vec![]).await.unwrap();
        assert!(matches!(&calls[..], [
            ModelMsg::ToolCall { tool_call_id: first, .. },
            ModelMsg::ToolCall { tool_call_id: second, .. },
        ] if first == "call_1" && second == "call_2"));
        for _ in 0..2 {
            assert!(
                matches!(&ask(&driver, vec![]).await.unwrap()[..], [ModelMsg::Text { text, .. }] if text == "[script ended]")
            );
        }
    }

    #[tokio::test]
    async fn an_expectation_that_is_met_lets_the_run_go_on() {
        let driver = driver("turns:\n- expect: [null, '(?m)^two$']\n  text: good\n");
        let history = vec![output("a", "one"), output("b", "1\ntwo\n3")];
        assert!(ask(&driver, history).await.is_ok());
    }

    #[tokio::test]
    async fn a_missed_expectation_names_turn_position_pattern_and_the_start_of_the_output() {
        let driver = driver("turns:\n- text: hi\n- expect: [null, 'two']\n");
        ask(&driver, vec![]).await.unwrap();
        let long = "x".repeat(1000);
        let error = ask(&driver, vec![output("a", "one"), output("b", &long)])
            .await
            .unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Expectation);
        assert!(!error.is_retryable());
        for part in ["demo.yaml", "turn 2", "output 2", "`two`", "xxx", "…"] {
            assert!(error.message.contains(part), "{part}: {}", error.message);
        }
        assert!(error.message.len() < 700);
    }

    #[tokio::test]
    async fn an_expectation_without_an_output_is_missed() {
        let driver = driver("turns:\n- expect: ['']\n");
        let error = ask(&driver, vec![]).await.unwrap_err();
        assert!(error.message.contains("0 output(s)"), "{}", error.message);
    }

    #[tokio::test]
    async fn only_the_outputs_after_the_last_message_of_the_model_count() {
        let driver = driver("turns:\n- expect: ['^new$']\n  text: ok\n");
        let call = ModelMsg::ToolCall {
            name: "list".into(),
            arguments: "{}".into(),
            tool_call_id: "b".into(),
            stop_reason: StopReason::Completed,
            fidelity: None,
        };
        assert!(
            ask(&driver, vec![output("a", "old"), call, output("b", "new")])
                .await
                .is_ok()
        );
    }

    #[test]
    fn a_script_that_never_ends_is_refused_by_its_length() {
        let error = ScriptDriver::open(Path::new("/dev/zero")).map(|_| ());
        let message = error.unwrap_err().to_string();
        assert!(message.contains("longer than 16777216 bytes"), "{message}");
    }

    #[test]
    fn the_kth_child_gets_the_kth_script() {
        let driver = driver("turns: []\nsubagents:\n- turns: [{text: a}]\n- turns: []\n");
        let first = driver.next_child();
        assert_eq!(first.name, "demo.yaml#subagents[0]");
        assert_eq!(first.script.turns.len(), 1);
        for _ in 0..2 {
            assert_eq!(driver.next_child().script.turns.len(), 0);
        }
    }
}
