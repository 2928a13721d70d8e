//! The tool `spawn_subagent`: gives a task to a child Session, waits until it has answered, and returns the answer. What a child may
//! do is decided by the host, never here.

use floe_tool::subagents::{Answered, Subagent, SubagentRequest, SubagentState};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};

const NAME: &str = "spawn_subagent";

#[derive(Debug, Default, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The task, with everything the subagent has to know: it sees nothing of this conversation.
    #[schemars(length(min = 1))]
    prompt: String,
    /// The task in a few words, for the person who watches.
    description: Option<String>,
    /// Which agent does it. Default: one like this one.
    agent_id: Option<String>,
    /// Which model it has, such as openai:NAME. Default: this one's.
    model_id: Option<String>,
    /// The task_id of a subagent that has answered before: it goes on from there, with the prompt as its next task.
    task_id: Option<String>,
}

#[derive(Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
struct Structured {
    /// With it another call goes on with the same subagent.
    task_id: String,
    /// Its Session, whose Trace says what it did.
    session_id: String,
    /// How the task ended: `completed`, `failed` or `aborted`.
    status: &'static str,
}

struct SpawnSubagent;

impl Tool for SpawnSubagent {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            NAME,
            "Gives a task to a subagent, waits until it is done, and returns what it answers. A subagent works in the same Workspace with the same \
             tools and limits as you, in a conversation of its own, and cannot start subagents. For a task that can be told in a few sentences and \
             whose steps you need not see, such as a search through many files. Several calls at once work side by side; give them different \
             files to change. The result names a task_id, with which another call goes on with the same subagent.",
        )
        .alias("task")
        // The host computes what it needs: as much as the subagent may do.
        .permission(Permission::None)
        .timeout_ms(0)
        .max_output_length(16_000)
        .structured_output::<Structured>()
    }

    fn run(arguments: Arguments, context: &Context) -> Result<Outcome, Failure> {
        if arguments.prompt.trim().is_empty() {
            return Ok(Outcome::missing_argument("prompt", NAME));
        }
        let subagent = match begin(arguments) {
            Ok(subagent) => subagent,
            Err(refused) => return Ok(Outcome::failed(refused)),
        };
        let answered = subagent.answered()?;
        // Where no call comes after this one, nobody could go on with it.
        let there = answered.state != SubagentState::Finished && !is_one_shot(context);
        if there {
            subagent.keep()?;
        }
        let structured = Structured {
            task_id: subagent.short_id(),
            session_id: subagent.session_id(),
            status: status(answered.state),
        };
        Ok(told(&answered, &structured, there))
    }
}

floe_tool::export!(SpawnSubagent);

/// What the host says where a call is the only one of its Session.
fn is_one_shot(context: &Context) -> bool {
    let mut said = context.metadata.iter();
    said.any(|(name, value)| name == "one-shot" && value == "true")
}

/// The subagent, at work.
fn begin(arguments: Arguments) -> Result<Subagent, String> {
    let named = |name: Option<String>| name.filter(|name| !name.trim().is_empty());
    let refused = |failure: Failure| format!("{NAME} failed: {}", failure.explanation());
    if let Some(task_id) = named(arguments.task_id) {
        let other = [
            ("agent_id", named(arguments.agent_id)),
            ("model_id", named(arguments.model_id)),
        ];
        if let Some((name, _)) = other.iter().find(|(_, given)| given.is_some()) {
            return Err(format!(
                "{NAME} failed: a subagent keeps its agent and its model; leave {name} or task_id out."
            ));
        }
        let subagent = Subagent::attach(task_id.trim()).map_err(refused)?;
        subagent.send_prompt(&arguments.prompt).map_err(refused)?;
        return Ok(subagent);
    }
    Subagent::start(&SubagentRequest {
        prompt: arguments.prompt,
        agent_id: named(arguments.agent_id),
        model: named(arguments.model_id),
        description: named(arguments.description),
    })
    .map_err(refused)
}

fn status(state: SubagentState) -> &'static str {
    match state {
        SubagentState::Idle | SubagentState::Running | SubagentState::WaitingForApproval => {
            "completed"
        }
        SubagentState::Failed => "failed",
        SubagentState::Aborted | SubagentState::Finished => "aborted",
    }
}

fn told(answered: &Answered, structured: &Structured, there: bool) -> Outcome {
    let reason = |default: &str| {
        let failure = answered.failure.as_ref();
        failure.map_or_else(|| default.to_owned(), Failure::explanation)
    };
    let outcome = match structured.status {
        "completed" if answered.text.trim().is_empty() => {
            Outcome::text("[subagent finished without a text answer]")
        }
        "completed" => Outcome::text(&answered.text),
        "failed" => Outcome::failed(format!("[subagent error: {}]", reason("it failed"))),
        _ => Outcome::failed(format!("[subagent aborted: {}]", reason("it was stopped"))),
    };
    let outcome = outcome.with_structured(structured);
    match there {
        true => outcome.with_note(format!(
            "[task_id: {}; use it to give this subagent a further task]",
            structured.task_id
        )),
        false => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(state: SubagentState, text: &str, failure: Option<&str>) -> Answered {
        Answered {
            state,
            text: text.into(),
            failure: failure.map(|message| Failure::new("io", message)),
        }
    }

    fn outcome(state: SubagentState, text: &str, failure: Option<&str>) -> Outcome {
        let structured = Structured {
            task_id: "subagent-1".into(),
            session_id: "session-1".into(),
            status: status(state),
        };
        told(
            &answered(state, text, failure),
            &structured,
            state != SubagentState::Finished,
        )
    }

    #[test]
    fn the_answer_is_the_output_and_the_note_says_how_to_go_on() {
        let outcome = outcome(SubagentState::Idle, "Three files.", None);
        assert!(outcome.is_completed());
        assert_eq!(outcome.last_text(), Some("Three files."));
        assert_eq!(
            outcome.note(),
            Some("[task_id: subagent-1; use it to give this subagent a further task]")
        );
    }

    #[test]
    fn an_end_without_an_answer_says_what_it_is() {
        let text = |state, text: &str, failure| {
            let outcome = outcome(state, text, failure);
            (
                outcome.is_completed(),
                outcome.last_text().unwrap().to_owned(),
            )
        };
        assert_eq!(
            text(SubagentState::Idle, " \n", None),
            (true, "[subagent finished without a text answer]".to_owned())
        );
        assert_eq!(
            text(SubagentState::Failed, "", Some("no model answers")),
            (false, "[subagent error: no model answers]".to_owned())
        );
        assert_eq!(
            text(SubagentState::Aborted, "", Some("interrupted")),
            (false, "[subagent aborted: interrupted]".to_owned())
        );
    }

    #[test]
    fn one_that_is_over_is_not_offered_for_another_task() {
        assert_eq!(outcome(SubagentState::Finished, "", None).note(), None);
    }
}
