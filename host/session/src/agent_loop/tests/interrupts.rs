//! What an interrupt leaves behind (spec/environment.md 1.10): structured outputs where the round was committed, a text where it was not.

use std::sync::Arc;

use floe_model::ModelErrorKind;
use tokio::sync::Notify;

use super::stage::{Act, Stage, Step, brief, briefs};
use crate::RunEnd;

/// Runs until nothing more happens by itself, interrupts, and waits for the end.
async fn interrupt(stage: &Arc<Stage>) -> RunEnd {
    let running = tokio::spawn({
        let stage = Arc::clone(stage);
        async move { stage.run("go").await }
    });
    stage.settle().await;
    stage.cancel.cancel();
    running.await.unwrap()
}

/// The same conversation with a new token, as a surface makes for its next run.
async fn next_run(stage: Arc<Stage>) -> Stage {
    let mut stage = Arc::into_inner(stage).unwrap();
    stage.cancel = tokio_util::sync::CancellationToken::new();
    stage.run("on").await;
    stage
}

#[tokio::test]
async fn an_interrupt_while_tools_run_keeps_results_and_answers_every_call() {
    let stage = Arc::new(Stage::new(
        vec![
            vec![
                Step::Call("a", "slow", "{}"),
                Step::Call("b", "list", "{}"),
                Step::Call("c", "ask", "{}"),
            ],
            vec![Step::Say("Done.")],
        ],
        [
            ("slow", Act::AnswerAfter(Arc::new(Notify::new()), "never")),
            ("list", Act::Answer("src")),
            ("ask", Act::Ask),
        ],
    ));
    let end = interrupt(&stage).await;
    assert_eq!(end, RunEnd::Interrupted);
    assert_eq!(end.exit_status(), 130);
    assert_eq!(
        stage.stream().iter().map(brief).next_back().unwrap(),
        "abort: aborted by user",
        "the abort is the last message"
    );
    let trace = briefs(&stage.trace());
    assert!(trace.contains(&"output a: [interrupted: tool aborted by user]".to_owned()));
    assert!(
        !trace
            .iter()
            .any(|line| line.starts_with("decision c") || line.starts_with("output c")),
        "a call that was not decided has no record: {trace:?}"
    );
    let stage = next_run(stage).await;
    assert_eq!(
        stage.request(1),
        [
            "user: go",
            "call a",
            "call b",
            "call c",
            "output a: [interrupted: tool aborted by user]",
            "output b: src",
            "output c: [interrupted: tool aborted by user]",
            "user: on",
        ]
    );
    assert!(
        !briefs(&stage.trace())
            .iter()
            .any(|line| line.starts_with("output c")),
        "what is carried over is never recorded"
    );
}

#[tokio::test]
async fn an_interrupt_while_the_model_streams_leaves_a_text() {
    let stage = Arc::new(Stage::new(
        vec![
            vec![
                Step::Say("I will"),
                Step::Call("a", "list", "{}"),
                Step::Until(Arc::new(Notify::new())),
            ],
            vec![Step::Say("Done.")],
        ],
        [("list", Act::Answer("src"))],
    ));
    assert_eq!(interrupt(&stage).await, RunEnd::Interrupted);
    let trace = briefs(&stage.trace());
    assert_eq!(
        trace[trace.len() - 2..],
        ["end aborted", "abort: aborted by user"]
    );
    let stage = next_run(stage).await;
    let request = stage.request(1);
    assert_eq!(request[0], "user: go");
    assert!(
        request[1].starts_with("user: [turn_aborted]\n"),
        "{request:?}"
    );
    for part in ["I will", "list with {}", "src"] {
        assert!(request[1].contains(part));
    }
    assert_eq!(request[2], "user: on");
    assert!(
        !briefs(&stage.trace())
            .iter()
            .any(|line| line.contains("turn_aborted"))
    );
}

#[tokio::test]
async fn an_interrupt_before_the_first_request_keeps_the_input_as_it_is() {
    let stage = Stage::new(vec![vec![Step::Say("Done.")]], []);
    stage.cancel.cancel();
    assert_eq!(stage.run("go").await, RunEnd::Interrupted);
    assert_eq!(
        briefs(&stage.trace()),
        ["meta", "user: go", "abort: aborted by user"]
    );
    let stage = next_run(Arc::new(stage)).await;
    assert_eq!(stage.request(0), ["user: go", "user: on"]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_while_waiting_to_reconnect_ends_the_wait() {
    let stage = Arc::new(Stage::new(
        vec![vec![Step::Fail(ModelErrorKind::Timeout)]],
        [],
    ));
    let running = tokio::spawn({
        let stage = Arc::clone(&stage);
        async move { stage.run("go").await }
    });
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    stage.cancel.cancel();
    assert_eq!(running.await.unwrap(), RunEnd::Interrupted);
    assert_eq!(
        briefs(&stage.trace()).last().unwrap(),
        "abort: aborted during reconnect backoff"
    );
}
