//! What a person or a program is asked, and what it may answer. Nothing here renders: whoever shows a question escapes it.

use std::path::PathBuf;

use async_trait::async_trait;
use floe_protocol::{DecidedBy, DecisionKind, Mode, Permission};
use floe_sandbox::Widening;
use serde_json::Value;

use crate::gate::widening;
use crate::registry::Origin;

/// What a call would do, as exactly as it can be said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A native command.
    Command {
        /// The command, exactly.
        text: String,
        /// Where it runs, as the model gave it; `.` for the Workspace.
        working_directory: String,
    },
    /// Input for a command that runs already.
    Input {
        /// Which command.
        process_id: String,
        /// The input, exactly.
        text: String,
    },
    /// Any other tool: its arguments as indented JSON.
    Arguments(String),
}

impl Action {
    /// What a call with these arguments does, with everything in them that changes what happens. `runs_commands` says whether the tool reaches native commands.
    pub(crate) fn of(arguments: &Value, runs_commands: bool) -> Action {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        // What a short form leaves out would run unseen: it is for calls that have nothing else.
        let has_only = |shown: &[&str]| {
            arguments.as_object().is_some_and(|members| {
                members
                    .iter()
                    .all(|(name, value)| shown.contains(&name.as_str()) || value == false)
            })
        };
        if runs_commands {
            let command = ["cmd", "command"].into_iter().find(|name| {
                has_only(&[name, widening::ARGUMENT, "workdir", "yield_time_ms", "tty"])
            });
            if let Some(command) = command.and_then(text) {
                return Action::Command {
                    text: command.to_owned(),
                    working_directory: text("workdir").unwrap_or(".").to_owned(),
                };
            }
            if let Some(process_id) = text("process_id")
                && has_only(&["process_id", "chars", "yield_time_ms"])
            {
                return Action::Input {
                    process_id: process_id.to_owned(),
                    text: text("chars").unwrap_or_default().to_owned(),
                };
            }
        }
        Action::Arguments(format!("{arguments:#}"))
    }
}

/// What the sandbox of this Session lets a call reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The Workspace's canonical path.
    pub workspace: PathBuf,
    /// True where commands reach a network beyond their own loopback.
    pub network: bool,
    /// False where commands run without the sandbox.
    pub confined: bool,
}

impl Default for Reach {
    fn default() -> Self {
        Reach {
            workspace: PathBuf::new(),
            network: false,
            confined: true,
        }
    }
}

/// A call that waits for an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The Session.
    pub session_id: String,
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool: String,
    /// What it would do.
    pub action: Action,
    /// The permission that these arguments need.
    pub permission: Permission,
    /// The effective capabilities by name, sorted.
    pub capabilities: Vec<String>,
    /// What it may reach.
    pub reach: Reach,
    /// The mode of the Session.
    pub mode: Mode,
    /// What is asked about.
    pub kind: DecisionKind,
    /// Whose tool it is.
    pub origin: Origin,
    /// The child Session that asks, where one does.
    pub asked_by: Option<String>,
    /// The rule that wants the question, where one does.
    pub rule: Option<String>,
    /// What a question of kind [`DecisionKind::Widening`] is about.
    pub widening: Option<AskedWidening>,
}

/// What a call asks to reach beyond the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedWidening {
    /// Why: the model's claim, and nothing that anybody has checked.
    pub reason: String,
    /// What, as it would be granted.
    pub widening: Widening,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This call runs.
    Allow,
    /// This call runs, and the same tool with the same arguments is not asked about again in this Session; of a widening, the
    /// same or less is not.
    AllowForSession,
    /// This call does not run.
    Deny,
    /// Nobody could be asked: the call does not run.
    Unavailable(String),
}

/// Asks somebody.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Answers one question. Dropped when the call is interrupted or its time is up. A panic denies.
    async fn decide(&self, question: &Question) -> Answer;

    /// As whom it decides.
    fn decides_as(&self) -> DecidedBy {
        DecidedBy::Callback
    }
}

/// Leaves every question to [`Environment::answer`](crate::Environment::answer): for surfaces that show pending questions and
/// take answers later, in another request than the one that made the call.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerLater;

#[async_trait]
impl Approver for AnswerLater {
    async fn decide(&self, _question: &Question) -> Answer {
        std::future::pending().await
    }

    fn decides_as(&self) -> DecidedBy {
        DecidedBy::Person
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_question_about_a_command_holds_it_exactly_and_where_it_runs() {
        assert_eq!(
            Action::of(
                &json!({"cmd": "rm -rf \u{1b}[2K x", "workdir": "src"}),
                true
            ),
            Action::Command {
                text: "rm -rf \u{1b}[2K x".into(),
                working_directory: "src".into()
            }
        );
        assert_eq!(
            Action::of(&json!({"command": "ls"}), true),
            Action::Command {
                text: "ls".into(),
                working_directory: ".".into()
            }
        );
    }

    #[test]
    fn a_question_about_input_names_the_process() {
        assert_eq!(
            Action::of(&json!({"process_id": "proc-1", "chars": "yes\n"}), true),
            Action::Input {
                process_id: "proc-1".into(),
                text: "yes\n".into()
            }
        );
    }

    #[test]
    fn a_call_with_more_than_a_short_form_shows_is_shown_by_all_its_arguments() {
        for arguments in [
            json!({"process_id": "proc-1", "kill": true}),
            json!({"process_id": "proc-1", "chars": "", "eof": true}),
            json!({"cmd": "ls", "command": "rm -rf ."}),
            json!({"cmd": "ls", "stdin": "rm -rf ."}),
            json!({"command": "sh", "args": ["-c", "rm -rf ."]}),
            json!({"cmd": ["ls"], "workdir": "src"}),
        ] {
            let Action::Arguments(text) = Action::of(&arguments, true) else {
                panic!("{arguments} is cut short");
            };
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), arguments);
        }
    }

    #[test]
    fn what_changes_nothing_about_a_call_does_not_lengthen_its_question() {
        let command = json!({"cmd": "ls", "tty": true, "yield_time_ms": 250});
        assert!(matches!(Action::of(&command, true), Action::Command { .. }));
        let poll = json!({"process_id": "proc-1", "eof": false, "kill": false});
        assert!(matches!(Action::of(&poll, true), Action::Input { .. }));
    }

    #[test]
    fn a_tool_without_commands_is_shown_by_its_arguments() {
        let Action::Arguments(text) = Action::of(&json!({"cmd": "ls"}), false) else {
            panic!("no command");
        };
        assert_eq!(text, "{\n  \"cmd\": \"ls\"\n}");
    }
}
