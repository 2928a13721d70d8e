//! The tool `plan_exit`: a plan, for the person to decide on in plan mode. Outside plan mode it is told and nothing else happens.

use floe_tool::session_state;
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The plan, in Markdown: what is to be done, in which order, and how it is checked.
    plan: String,
}

struct PlanExit;

impl Tool for PlanExit {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            "plan_exit",
            "Hands in the plan at the end of planning. In plan mode the person decides whether it is carried out; until then nothing can be \
             changed.",
        )
        .permission(Permission::None)
        .timeout_ms(0)
        .max_output_length(16_000)
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        let plan = arguments.plan.trim();
        if plan.is_empty() {
            return Ok(Outcome::failed("`plan` must not be empty"));
        }
        if session_state::mode() != "plan" {
            return Ok(Outcome::text(told(plan)));
        }
        match session_state::propose_plan(plan) {
            Ok((decision, words)) => Ok(decided(plan, &decision, words.as_deref())),
            Err(failure) => Ok(Outcome::failed(failure.explanation())),
        }
    }
}

floe_tool::export!(PlanExit);

fn told(plan: &str) -> String {
    format!("[plan_exit]\n{plan}")
}

fn decided(plan: &str, decision: &str, words: Option<&str>) -> Outcome {
    let words = words.map_or_else(String::new, |words| format!(": {words}"));
    match decision {
        "approved" => Outcome::text(format!(
            "{}\n\nThe person has approved the plan{words}. Carry it out.",
            told(plan)
        )),
        "revise" => Outcome::text(format!(
            "The person wants the plan changed{words}. Hand in another one."
        )),
        _ => Outcome::text(format!(
            "The person has rejected the plan{words}. Plan mode goes on."
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_decision_is_told_with_the_persons_words() {
        let text = |decision, words| {
            decided("p", decision, words)
                .last_text()
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            text("approved", None),
            "[plan_exit]\np\n\nThe person has approved the plan. Carry it out."
        );
        assert_eq!(
            text("revise", Some("smaller")),
            "The person wants the plan changed: smaller. Hand in another one."
        );
        assert_eq!(
            text("rejected", None),
            "The person has rejected the plan. Plan mode goes on."
        );
    }
}
