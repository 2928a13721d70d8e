//! Decisions come in call order and use what holds when they are made.

use super::*;

#[tokio::test]
async fn decisions_are_in_call_order_while_allowed_calls_run_at_once() {
    let mut house = House::new();
    let gate = Arc::clone(&house.gate);
    house.add_body(
        definition("slow", Permission::Write),
        &[],
        Ok(Permission::None),
        Some(gate),
        Box::new(echo),
    );
    let open = house.open(|options| {
        options.approval_mode = ApprovalMode::ReadOnly;
        options.approver = Some(Arc::new(AnswerLater));
    });
    let first = open.start("slow", "{}", "c1");
    let second = open.start("reader", "{}", "c2");
    let third = open.start("slow", "{}", "c3");
    assert_eq!(open.wait_for_question().await.question.tool_call_id, "c1");
    // The second needs no question, and still does not pass the first.
    assert_eq!(open.sink.decisions().len(), 0);
    open.environment.answer("c1", Answer::Allow);
    second.await.unwrap();
    assert_eq!(open.wait_for_question().await.question.tool_call_id, "c3");
    open.environment.answer("c3", Answer::Allow);
    while open.running.load(Ordering::SeqCst) < 3 {
        tokio::task::yield_now().await;
    }
    open.gate.notify_waiters();
    open.gate.notify_one();
    let ids: Vec<String> = open
        .sink
        .decisions()
        .into_iter()
        .map(|decision| decision.tool_call_id)
        .collect();
    assert_eq!(ids, ["c1", "c2", "c3"]);
    assert!(first.await.is_some());
    open.gate.notify_one();
    assert!(third.await.is_some());
}

#[tokio::test]
async fn a_call_cancelled_in_the_line_lets_the_next_one_pass_only_in_its_turn() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::new(AnswerLater));
    });
    let first = open.start("reader", "{}", "c1");
    let cancel = CancellationToken::new();
    let second = open
        .environment
        .execute(call("reader", "{}", "c2"), cancel.clone());
    let third = open.start("reader", "{}", "c3");
    open.wait_for_question().await;
    cancel.cancel();
    assert_eq!(second.await, None);
    assert_eq!(open.wait_for_question().await.question.tool_call_id, "c1");
    open.environment.answer("c1", Answer::Allow);
    assert!(first.await.is_some());
    open.wait_for_question().await;
    open.environment.answer("c3", Answer::Deny);
    assert_eq!(third.await.unwrap().end, CallOutcome::Denied);
}

#[tokio::test]
async fn a_mode_that_changed_during_the_wait_is_obeyed() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::new(AnswerLater));
    });
    let running = open.start("writer", "{}", "c1");
    open.wait_for_question().await;
    open.environment.set_mode(Mode::Plan);
    open.environment.answer("c1", Answer::Allow);
    let output = running.await.unwrap();
    assert_eq!(output.end, CallOutcome::Gate(Gate::Mode));
    let decisions = open.sink.decisions();
    assert_eq!(decisions.len(), 1);
    assert_eq!(
        (decisions[0].decision, decisions[0].by),
        (Decision::Deny, DecidedBy::Gate)
    );
}

#[tokio::test]
async fn deny_all_during_the_wait_denies_what_was_allowed() {
    let open = House::new().open(|options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::new(AnswerLater));
    });
    let running = open.start("writer", "{}", "c1");
    open.wait_for_question().await;
    open.environment.set_approval_mode(ApprovalMode::DenyAll);
    open.environment.answer("c1", Answer::Allow);
    assert_eq!(running.await.unwrap().end, CallOutcome::Denied);
    assert_eq!(open.sink.decisions()[0].by, DecidedBy::Mode);
}

#[tokio::test]
async fn the_next_decision_uses_the_mode_of_that_moment() {
    let open = House::new().open(|_| {});
    open.environment.set_approval_mode(ApprovalMode::DenyAll);
    assert_eq!(open.run("reader", "{}").await.end, CallOutcome::Denied);
    open.environment.set_approval_mode(ApprovalMode::AllowAll);
    assert_eq!(open.run("reader", "{}").await.end, CallOutcome::Ran);
}
