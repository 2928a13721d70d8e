//! Who is asked, what an answer does, and what happens where none comes.

use super::*;

#[tokio::test]
async fn each_approval_mode_allows_asks_or_denies() {
    use ApprovalMode::{AllowAll, AlwaysAsk, DenyAll, ReadOnly};
    let cases = [
        (AllowAll, "runner", DecidedBy::Mode, true, 0),
        (DenyAll, "reader", DecidedBy::Mode, false, 0),
        (ReadOnly, "reader", DecidedBy::Mode, true, 0),
        (ReadOnly, "writer", DecidedBy::Callback, true, 1),
        (ReadOnly, "runner", DecidedBy::Callback, true, 1),
        (AlwaysAsk, "reader", DecidedBy::Callback, true, 1),
    ];
    for (mode, tool, by, runs, questions) in cases {
        let approver = Script::new(Answer::Allow);
        let open = House::new().open(|options| {
            options.approval_mode = mode;
            options.approver = Some(approver.clone());
        });
        let output = open.run(tool, "{}").await;
        let decision = open.sink.decisions().pop().unwrap();
        assert_eq!(decision.by, by, "{mode:?} {tool}");
        assert_eq!(decision.mode, mode);
        assert_eq!(
            open.running.load(Ordering::SeqCst) == 1,
            runs,
            "{mode:?} {tool}"
        );
        assert_eq!(
            approver.1.load(Ordering::SeqCst),
            questions,
            "{mode:?} {tool}"
        );
        assert_eq!(output.stop_reason == StopReason::Completed, runs);
    }
}

#[tokio::test]
async fn a_denied_call_is_a_complete_output_alone() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Script::new(Answer::Deny));
    });
    let output = open.run("reader", "{}").await;
    assert_eq!(output.output, "Tool call denied by user.");
    assert_eq!(output.stop_reason, StopReason::Aborted);
    assert_eq!(output.exit_status(), 3);
    assert_eq!(open.sink.shape(), ["decision Deny", "complete"]);
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_call_is_denied() {
    let unavailable = Script::new(Answer::Unavailable("there is no terminal".into()));
    for approver in [None, Some(unavailable as Arc<dyn Approver>)] {
        let open = House::new().open(|options| {
            options.approval_mode = ApprovalMode::AlwaysAsk;
            options.approver = approver;
        });
        let output = open.run("reader", "{}").await;
        assert_eq!(output.end, CallOutcome::Denied);
        assert_eq!(open.sink.decisions()[0].by, DecidedBy::Nobody);
    }
}

#[tokio::test]
async fn an_approver_that_breaks_off_denies() {
    let approvers: [Arc<dyn Approver>; 2] = [Arc::new(Panics), Arc::new(PanicsAtOnce)];
    for approver in approvers {
        let open = House::new().open(|options| {
            options.approval_mode = ApprovalMode::AlwaysAsk;
            options.approver = Some(approver);
        });
        let output = open.run("reader", "{}").await;
        assert_eq!(output.end, CallOutcome::Denied);
        assert_eq!(open.sink.decisions()[0].by, DecidedBy::Callback);
    }
}

#[tokio::test]
async fn a_question_that_nobody_answers_in_time_denies() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::new(AnswerLater));
        options.approval_timeout = Some(Duration::from_millis(10));
    });
    let output = open.run("reader", "{}").await;
    assert_eq!(output.end, CallOutcome::Denied);
    assert_eq!(open.sink.decisions()[0].by, DecidedBy::Timeout);
    assert!(open.environment.pending().is_empty());
}

#[tokio::test]
async fn an_interrupt_while_the_question_is_pending_leaves_no_decision_and_no_output() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::new(AnswerLater));
    });
    let cancel = CancellationToken::new();
    let running = open
        .environment
        .execute(call("reader", "{}", "c1"), cancel.clone());
    open.wait_for_question().await;
    cancel.cancel();
    assert_eq!(running.await, None);
    assert_eq!(open.sink.messages(), []);
    assert!(open.environment.pending().is_empty());
    assert!(!open.environment.answer("c1", Answer::Allow));
}

#[tokio::test]
async fn a_question_holds_what_a_terminal_needs() {
    let mut house = House::new();
    let mut exec = definition("exec", Permission::Execute);
    exec.parameters =
        json!({"properties": {"cmd": {"type": "string"}, "workdir": {"type": "string"}}});
    house.add(exec, &[Capability::Commands]);
    let open = house.open(|options| {
        options.approval_mode = ApprovalMode::ReadOnly;
        options.approver = Some(Arc::new(AnswerLater));
        options.asked_by = Some("session-child".into());
        options.reach.workspace = "/home/x/project".into();
    });
    let running = open.start("exec", r#"{"cmd":"make\n","workdir":"src"}"#, "c1");
    let question = open.wait_for_question().await.question;
    assert_eq!(
        *question,
        Question {
            session_id: "session-test".into(),
            tool_call_id: "c1".into(),
            tool: "exec".into(),
            action: Action::Command {
                text: "make\n".into(),
                working_directory: "src".into()
            },
            permission: Permission::Execute,
            capabilities: vec!["commands".into()],
            reach: Reach {
                workspace: "/home/x/project".into(),
                network: false,
                confined: true
            },
            mode: Mode::Build,
            kind: floe_protocol::DecisionKind::Call,
            origin: Origin::Plugin("test".into()),
            asked_by: Some("session-child".into()),
            rule: None,
            widening: None,
        }
    );
    assert!(open.environment.answer("c1", Answer::Allow));
    assert_eq!(running.await.unwrap().end, CallOutcome::Ran);
}

#[tokio::test]
async fn a_parked_call_outlives_the_request_that_made_it() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::new(AnswerLater));
    });
    drop(open.start("reader", r#"{"text":"later"}"#, "c7"));
    let pending = open.wait_for_question().await;
    assert_eq!(pending.question.tool_call_id, "c7");
    let resumed = open.environment.resume("c7").expect("the call is kept");
    assert!(open.environment.answer("c7", Answer::Allow));
    assert_eq!(resumed.await.unwrap().output, "later");
    assert!(open.environment.resume("c7").is_none());
    let decision = open.sink.decisions().pop().unwrap();
    assert_eq!(decision.by, DecidedBy::Person);
}

#[tokio::test]
async fn results_that_nobody_takes_do_not_pile_up() {
    let open = House::new().open(|_| {});
    for number in 0..200 {
        drop(open.start("reader", "{}", &format!("c{number}")));
    }
    open.run("reader", "{}").await;
    while open.running.load(Ordering::SeqCst) < 201 {
        tokio::task::yield_now().await;
    }
    drop(open.start("reader", "{}", "last"));
    let kept = (0..200)
        .filter(|number| open.environment.resume(&format!("c{number}")).is_some())
        .count();
    assert!(kept <= 65, "{kept}");
}

fn rule(effect: Effect) -> Rules {
    Rules(vec![Rule {
        id: "r1".into(),
        effect,
        tool: "*".into(),
    }])
}

#[tokio::test]
async fn a_rule_may_ask_where_the_mode_allows_and_allow_where_it_asks() {
    let approver = Script::new(Answer::Allow);
    let open = House::new().open(|options| {
        options.rules = rule(Effect::Ask);
        options.approver = Some(approver.clone());
    });
    open.run("reader", "{}").await;
    assert_eq!(approver.1.load(Ordering::SeqCst), 1);
    assert_eq!(open.sink.decisions()[0].rule.as_deref(), Some("r1"));

    let open = House::new().open(|options| {
        options.rules = rule(Effect::Allow);
        options.approval_mode = ApprovalMode::AlwaysAsk;
    });
    open.run("runner", "{}").await;
    let decision = open.sink.decisions().pop().unwrap();
    assert_eq!(
        (decision.decision, decision.by),
        (Decision::Allow, DecidedBy::Rule)
    );
}

#[tokio::test]
async fn no_rule_lifts_deny_all() {
    let open = House::new().open(|options| {
        options.rules = rule(Effect::Allow);
        options.approval_mode = ApprovalMode::DenyAll;
    });
    assert_eq!(open.run("reader", "{}").await.end, CallOutcome::Denied);
}

#[tokio::test]
async fn what_was_allowed_for_the_session_is_asked_once_for_the_same_arguments() {
    let approver = Script::new(Answer::AllowForSession);
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(approver.clone());
    });
    for arguments in [r#"{"text":"a"}"#, r#"{"text":"a"}"#, r#"{"text":"b"}"#] {
        open.run("reader", arguments).await;
    }
    assert_eq!(approver.1.load(Ordering::SeqCst), 2);
    let scopes: Vec<Scope> = open.sink.decisions().iter().map(|one| one.scope).collect();
    assert_eq!(scopes, [Scope::Session; 3]);
}
