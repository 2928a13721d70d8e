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
        // In plan mode the host ends the turn after this call, and the person decides: what came of it is the host's to say.
        match session_state::propose_plan(plan) {
            Ok(_) => Ok(Outcome::text(told(plan))),
            Err(failure) => Ok(Outcome::failed(failure.explanation())),
        }
    }
}

floe_tool::export!(PlanExit);

fn told(plan: &str) -> String {
    format!("[plan_exit]\n{plan}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_told_behind_its_mark() {
        assert_eq!(told("1. Look.\n2. Act."), "[plan_exit]\n1. Look.\n2. Act.");
    }
}
