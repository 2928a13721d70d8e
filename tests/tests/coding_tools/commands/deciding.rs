//! What keeps a command from running: rules, rate, caps, and the person who is asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use floe_environment::{Answer as Decision, Approver, Effect, Question, Rate, Rule, Rules};
use floe_protocol::{ApprovalDecision, ApprovalMode, Body, EventMsg, Permission};
use serde_json::json;

use super::shell;
use crate::rig::Rig;

/// The decisions of a Session so far.
fn decisions(rig: &Rig) -> Vec<ApprovalDecision> {
    let decided = |body| match body {
        Body::EventMsg(EventMsg::ApprovalDecision(decision)) => Some(decision),
        _ => None,
    };
    let messages = rig.messages().into_iter();
    messages
        .filter_map(|message| decided(message.body))
        .collect()
}

/// Answers every question alike and keeps it.
struct Person {
    allows: bool,
    asked: Mutex<Vec<Question>>,
}

#[async_trait]
impl Approver for Person {
    async fn decide(&self, question: &Question) -> Decision {
        self.asked.lock().unwrap().push(question.clone());
        match self.allows {
            true => Decision::Allow,
            false => Decision::Deny,
        }
    }
}

fn asked(allows: bool) -> (Rig, Arc<Person>) {
    let person = Arc::new(Person {
        allows,
        asked: Mutex::default(),
    });
    let rig = Rig::with(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::clone(&person) as _);
    });
    (rig, person)
}

#[tokio::test]
async fn a_command_that_a_rule_forbids_is_not_allowed() {
    let rig = Rig::with(|options| {
        options.rules = Rules(vec![Rule {
            id: "no-commands".into(),
            effect: Effect::Deny,
            tool: "shell".into(),
        }]);
    });
    let answer = shell(&rig, "touch made").await;
    let text = answer.aborted();
    assert!(text.contains("Tool call denied by policy."), "{text}");
    assert!(!text.contains("no-commands"), "{text}");
    assert!(!rig.path("made").exists());
}

#[tokio::test]
async fn commands_over_the_rate_do_not_run() {
    for (calls, run) in [(0, 0), (1, 1), (10_000, 3)] {
        let rig = Rig::with(|options| {
            options.rate = Some(Rate {
                calls,
                per: Duration::from_secs(3600),
            });
        });
        for number in 0..3 {
            let answer = shell(&rig, &format!("touch made{number}")).await;
            let is_over = number >= run;
            assert_eq!(
                answer.text.contains("Rate limit exceeded"),
                is_over,
                "{answer:?}"
            );
            assert_eq!(rig.path(format!("made{number}")).exists(), !is_over);
        }
    }
}

#[tokio::test]
async fn a_model_cannot_approve_its_own_command() {
    let (rig, person) = asked(false);
    for extra in [
        "approved",
        "category",
        "sandbox",
        "dangerously_disable_sandbox",
    ] {
        let mut arguments = json!({"command": "touch made"});
        arguments[extra] = json!(true);
        let answer = rig.call("shell", arguments).await;
        assert_eq!(
            answer.failed(),
            format!(
                "Unknown argument \"{extra}\" for shell; it takes command, workdir, timeout_ms, widen."
            )
        );
    }
    assert!(person.asked.lock().unwrap().is_empty());
    assert!(!rig.path("made").exists());
}

#[tokio::test]
async fn a_cap_of_read_only_refuses_every_command() {
    let rig = Rig::with(|options| options.max_permission = Some(Permission::ReadOnly));
    for command in ["ls", "touch made"] {
        let answer = shell(&rig, command).await;
        assert!(
            answer.aborted().contains("Tool call denied by policy."),
            "{answer:?}"
        );
    }
    assert!(!rig.path("made").exists());
    let decision = &decisions(&rig)[0];
    assert_eq!(decision.gate.as_deref(), Some("surface"));
}

#[tokio::test]
async fn every_command_is_asked_for_in_read_only_mode_whatever_it_is() {
    let person = Arc::new(Person {
        allows: false,
        asked: Mutex::default(),
    });
    let rig = Rig::with(|options| {
        options.approval_mode = ApprovalMode::ReadOnly;
        options.approver = Some(Arc::clone(&person) as _);
    });
    rig.write("a", "x");
    rig.call("file_read", json!({"path": "a"}))
        .await
        .completed();
    for command in ["ls", "cat a", "git status"] {
        assert_eq!(
            shell(&rig, command).await.aborted(),
            "Tool call denied by user."
        );
    }
    assert_eq!(person.asked.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_command_that_destroys_does_not_run_before_a_person_has_allowed_it() {
    let (rig, person) = asked(false);
    rig.write("a", "kept");
    let answer = shell(&rig, "rm -rf /").await;
    assert_eq!(answer.aborted(), "Tool call denied by user.");
    assert_eq!(rig.read("a"), b"kept");
    let asked = person.asked.lock().unwrap();
    assert_eq!((asked.len(), asked[0].permission), (1, Permission::Execute));
    assert!(format!("{:?}", asked[0].action).contains("rm -rf /"));
}

#[tokio::test]
async fn every_command_leaves_one_record_whether_it_ran_or_was_denied() {
    let (allowed, _) = asked(true);
    shell(&allowed, "echo one").await.completed();
    shell(&allowed, "exit 1").await.failed();
    let (denied, _) = asked(false);
    shell(&denied, "echo one").await.aborted();
    for (rig, decision, count) in [(&allowed, "allow", 2), (&denied, "deny", 1)] {
        let decided = decisions(rig);
        assert_eq!(decided.len(), count);
        for one in decided {
            let told = serde_json::to_value(&one).unwrap();
            assert_eq!(
                (&told["decision"], &told["tool"]),
                (&json!(decision), &json!("shell"))
            );
            assert_eq!(told["arguments_sha256"].as_str().unwrap().len(), 64);
        }
    }
}
