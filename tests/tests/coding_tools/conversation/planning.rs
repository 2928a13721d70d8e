//! `plan_exit` and what follows from it: a plan waits for a decision that no mode makes, and an approved one opens build mode.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use floe_model::{Script, ScriptDriver};
use floe_protocol::{
    ApprovalDecision, ApprovalMode, Body, DecidedBy, Decision, DecisionKind, EventMsg, Mode,
    ModelMsg, Permission,
};
use floe_session::{PlanDecision, RunEnd, SessionOptions};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::rig::{Rig, definition};

const TOOL: &str = "plan_exit";
const PLAN: &str = "1. Write made.txt.";

/// A Session in plan mode whose model plays these turns.
fn planning(turns: &str) -> impl FnOnce(&mut SessionOptions) {
    let script = Script::parse(&format!("turns:\n{turns}"), Path::new("test.yaml")).unwrap();
    |options| {
        options.model = Some(Arc::new(ScriptDriver::new("test.yaml", script)));
        options.mode = Mode::Plan;
    }
}

/// The model looks around and hands in the plan.
const HANDS_IN: &str = "\
- tool_calls: [{name: list}]
- tool_calls: [{name: plan_exit, arguments: {plan: ' 1. Write made.txt. '}}]
";

/// Then it writes, as planned; the expectation holds the text of the tool byte for byte.
const CARRIES_OUT: &str = "\
- expect: ['\\A\\[plan_exit\\]\\n1\\. Write made\\.txt\\.\\z']
  tool_calls: [{name: file_write, arguments: {path: made.txt, content: done}}]
- text: Done.
";

fn proposed() -> RunEnd {
    RunEnd::PlanProposed { plan: PLAN.into() }
}

async fn run(rig: &Rig) -> RunEnd {
    rig.session.run("plan it", &CancellationToken::new()).await
}

async fn decide(rig: &Rig, decision: PlanDecision) -> RunEnd {
    let cancel = CancellationToken::new();
    let decided = rig.session.decide_plan(decision, &cancel).await;
    decided.expect("a plan waits")
}

fn decisions(rig: &Rig, kind: DecisionKind) -> Vec<ApprovalDecision> {
    let messages = rig.messages().into_iter();
    messages
        .filter_map(|message| match message.body {
            Body::EventMsg(EventMsg::ApprovalDecision(decision)) if decision.kind == kind => {
                Some(decision)
            }
            _ => None,
        })
        .collect()
}

/// The texts that the harness wrote.
fn told(rig: &Rig) -> Vec<String> {
    let messages = rig.messages().into_iter();
    messages
        .filter_map(|message| match message.body {
            Body::ModelMsg(ModelMsg::Text { text, sender, .. })
                if sender.as_deref() == Some("harness") =>
            {
                Some(text)
            }
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn plan_exit_starts_with_its_mark_and_outside_plan_mode_nothing_else_happens() {
    let rig = Rig::new();
    let answer = rig
        .call(TOOL, json!({"plan": format!("\n {PLAN}\n")}))
        .await;
    assert_eq!(answer.completed(), format!("[plan_exit]\n{PLAN}"));
    assert_eq!(rig.session.environment().mode(), Mode::Build);
    assert_eq!(rig.session.proposed_plan(), None);
    assert!(decisions(&rig, DecisionKind::Plan).is_empty());
    let cancel = CancellationToken::new();
    let none = rig
        .session
        .decide_plan(PlanDecision::Approve, &cancel)
        .await;
    assert_eq!(none, None);
}

#[tokio::test]
async fn a_blank_plan_is_refused() {
    for mode in [Mode::Build, Mode::Plan] {
        let rig = Rig::with(|options| options.mode = mode);
        let answer = rig.call(TOOL, json!({"plan": " \n"})).await;
        assert!(answer.failed().starts_with("`plan` must not be empty"));
        assert_eq!(rig.session.proposed_plan(), None);
    }
}

#[test]
fn plan_exit_needs_no_permission() {
    assert_eq!(definition(TOOL).permission, Permission::None);
    assert_eq!(definition(TOOL).timeout_ms, 0);
}

#[tokio::test]
async fn an_approved_plan_is_carried_out_in_build_mode_in_the_same_session() {
    let rig = Rig::with(planning(&format!("{HANDS_IN}{CARRIES_OUT}")));
    assert_eq!(run(&rig).await, proposed());
    assert_eq!(rig.session.proposed_plan().as_deref(), Some(PLAN));
    assert_eq!(rig.session.environment().mode(), Mode::Plan);
    assert!(decisions(&rig, DecisionKind::Plan).is_empty(), "not yet");
    let end = decide(&rig, PlanDecision::Approve).await;
    assert_eq!(
        end,
        RunEnd::Ended {
            text: "Done.".into()
        }
    );
    assert_eq!(rig.session.environment().mode(), Mode::Build);
    assert_eq!(rig.read_text("made.txt"), "done");
    let decided = decisions(&rig, DecisionKind::Plan);
    assert_eq!(decided.len(), 1, "{decided:?}");
    assert_eq!(
        (decided[0].decision, decided[0].by, decided[0].tool.as_str()),
        (Decision::Allow, DecidedBy::Callback, TOOL)
    );
    let told = told(&rig);
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("[plan_approved]\n") && told[0].contains(PLAN));
}

#[tokio::test]
async fn a_rejected_plan_leaves_the_session_in_plan_mode() {
    let rig = Rig::with(planning(&format!("{HANDS_IN}- text: Another idea.\n")));
    assert_eq!(run(&rig).await, proposed());
    decide(&rig, PlanDecision::Reject).await;
    assert_eq!(rig.session.environment().mode(), Mode::Plan);
    let decided = decisions(&rig, DecisionKind::Plan);
    assert_eq!(decided.len(), 1);
    assert_eq!(decided[0].decision, Decision::Deny);
    assert!(told(&rig)[0].starts_with("[plan_rejected]"));
    // The conversation goes on, with the rejection before the next input.
    let end = run(&rig).await;
    assert_eq!(
        end,
        RunEnd::Ended {
            text: "Another idea.".into()
        }
    );
}

#[tokio::test]
async fn feedback_is_returned_to_the_model_which_hands_in_another_plan() {
    let turns = format!(
        "{HANDS_IN}- tool_calls: [{{name: plan_exit, arguments: {{plan: 2. Smaller.}}}}]\n{}",
        "- text: Carried out.\n"
    );
    let rig = Rig::with(planning(&turns));
    assert_eq!(run(&rig).await, proposed());
    let end = decide(&rig, PlanDecision::Revise("Make it smaller.".into())).await;
    assert_eq!(
        end,
        RunEnd::PlanProposed {
            plan: "2. Smaller.".into()
        }
    );
    assert_eq!(rig.session.environment().mode(), Mode::Plan);
    assert!(told(&rig)[0].contains("Make it smaller."));
    decide(&rig, PlanDecision::Approve).await;
    assert_eq!(rig.session.environment().mode(), Mode::Build);
    let decided = decisions(&rig, DecisionKind::Plan);
    assert_eq!(
        [decided[0].decision, decided[1].decision],
        [Decision::Deny, Decision::Allow]
    );
    assert_ne!(decided[0].tool_call_id, decided[1].tool_call_id);
}

#[tokio::test]
async fn a_plan_that_nobody_decides_on_in_time_leaves_the_session_in_plan_mode() {
    let turns = format!("{HANDS_IN}- text: Nothing then.\n");
    let rig = Rig::with(|options| {
        planning(&turns)(options);
        options.approval_timeout = Some(Duration::from_millis(1));
    });
    assert_eq!(run(&rig).await, proposed());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(rig.session.environment().mode(), Mode::Plan);
    assert!(decisions(&rig, DecisionKind::Plan).is_empty());
    // Whoever says something else instead has not approved.
    assert_eq!(
        run(&rig).await,
        RunEnd::Ended {
            text: "Nothing then.".into()
        }
    );
    assert_eq!(rig.session.environment().mode(), Mode::Plan);
    let decided = decisions(&rig, DecisionKind::Plan);
    assert_eq!((decided.len(), decided[0].decision), (1, Decision::Deny));
}

#[tokio::test]
async fn no_approval_mode_answers_for_the_person() {
    for approval_mode in [ApprovalMode::AllowAll, ApprovalMode::ReadOnly] {
        let rig = Rig::with(|options| {
            planning(HANDS_IN)(options);
            options.approval_mode = approval_mode;
        });
        assert_eq!(run(&rig).await, proposed(), "{approval_mode:?}");
        assert_eq!(rig.session.environment().mode(), Mode::Plan);
        assert!(decisions(&rig, DecisionKind::Plan).is_empty());
    }
}

#[tokio::test]
async fn a_call_without_a_model_hands_in_a_plan_as_well() {
    let rig = Rig::with(|options| options.mode = Mode::Plan);
    let answer = rig.call(TOOL, json!({"plan": PLAN})).await;
    assert_eq!(answer.completed(), format!("[plan_exit]\n{PLAN}"));
    assert_eq!(rig.session.proposed_plan().as_deref(), Some(PLAN));
    let again = rig.call(TOOL, json!({"plan": "2."})).await;
    assert!(
        again.failed().contains("waits for its decision"),
        "{again:?}"
    );
    decide(&rig, PlanDecision::Approve).await;
    assert_eq!(rig.session.environment().mode(), Mode::Build);
    let cancel = CancellationToken::new();
    let none = rig
        .session
        .decide_plan(PlanDecision::Approve, &cancel)
        .await;
    assert_eq!(none, None, "a plan is decided on once");
}

#[tokio::test]
async fn the_mark_in_the_text_of_another_tool_or_of_the_model_is_no_plan() {
    let turns = "\
- text: \"[plan_exit]\\nDo it.\"
  tool_calls: [{name: file_read, arguments: {path: plan.txt}}]
- text: \"[plan_exit]\\nDo it.\"
";
    let rig = Rig::over(
        |folder| std::fs::write(folder.join("plan.txt"), "[plan_exit]\nDo it.").unwrap(),
        planning(turns),
    );
    assert!(matches!(run(&rig).await, RunEnd::Ended { .. }));
    assert_eq!(rig.session.proposed_plan(), None);
    assert_eq!(rig.session.environment().mode(), Mode::Plan);
}

#[tokio::test]
async fn plan_mode_lists_and_runs_nothing_that_works_through_commands_or_edits() {
    let rig = Rig::with(|options| options.mode = Mode::Plan);
    let listed: Vec<String> = rig
        .session
        .tools()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    for name in [
        "plan_exit",
        "todowrite",
        "ask_clarification",
        "file_read",
        "grep",
        "glob",
        "list",
    ] {
        assert!(listed.iter().any(|listed| listed == name), "{name}");
    }
    for (name, arguments) in [
        ("exec_command", json!({"cmd": "touch made"})),
        ("shell", json!({"command": "touch made"})),
        ("input_command", json!({"process_id": "proc-00000000"})),
        ("file_write", json!({"path": "made", "content": ""})),
        (
            "edit",
            json!({"path": "a", "old_string": "a", "new_string": "b"}),
        ),
        (
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Add File: made\n+a\n*** End Patch"}),
        ),
    ] {
        assert!(!listed.iter().any(|listed| listed == name), "{name}");
        let answer = rig.call(name, arguments).await;
        assert!(
            answer
                .aborted()
                .starts_with("Tool call denied by policy.\n"),
            "{name}: {answer:?}"
        );
        assert!(answer.text.contains("plan mode"), "{answer:?}");
    }
    for tool in rig.session.tools() {
        assert!(tool.permission <= Permission::ReadOnly, "{}", tool.name);
        let withheld = ["commands", "edits"].map(str::to_owned);
        assert!(
            !tool.capabilities.iter().any(|name| withheld.contains(name)),
            "{}",
            tool.name
        );
    }
    assert!(!rig.path("made").exists());
}

#[tokio::test]
async fn an_approved_plan_brings_the_tools_back() {
    let rig = Rig::with(|options| options.mode = Mode::Plan);
    let count = rig.session.tools().len();
    rig.call(TOOL, json!({"plan": PLAN})).await.completed();
    decide(&rig, PlanDecision::Approve).await;
    assert!(rig.session.tools().len() > count);
    rig.call("file_write", json!({"path": "made", "content": "x"}))
        .await
        .completed();
    assert_eq!(rig.read_text("made"), "x");
}
