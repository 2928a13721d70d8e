//! A Trace holds what the model was told: read back, it is the conversation that the loop had, wherever that ended.

use std::sync::Arc;

use floe_model::ModelErrorKind;
use floe_protocol::StopReason;
use tokio::sync::Notify;

use super::stage::{Act, Stage, Step};
use crate::RunEnd;

/// The same for the loop and for its Trace, with at least so many messages.
async fn agree(stage: &Stage, least: usize) {
    let (known, replayed) = stage.known_and_replayed().await;
    assert_eq!(replayed, known);
    assert!(known.len() >= least, "{known:?}");
}

#[tokio::test]
async fn rounds_come_back_with_their_outputs_in_call_order() {
    let gate = Arc::new(Notify::new());
    let stage = Stage::new(
        vec![
            vec![
                Step::Say("Let me look."),
                Step::Call("a", "slow", "{}"),
                Step::Call("b", "list", "{}"),
                Step::CutCall("c", StopReason::Malformed),
            ],
            vec![Step::Call("d", "list", "{}")],
            vec![Step::Say("Done.")],
            vec![Step::Say("Again.")],
        ],
        [
            ("slow", Act::AnswerAfter(Arc::clone(&gate), "late")),
            ("list", Act::Answer("src")),
        ],
    );
    let running = async {
        stage.settle().await;
        gate.notify_one();
    };
    let (end, ()) = tokio::join!(stage.run("go"), running);
    assert!(matches!(end, RunEnd::Ended { .. }));
    stage.background.end("proc-1");
    stage.run("on").await;
    agree(&stage, 10).await;
}

#[tokio::test]
async fn what_was_interrupted_comes_back_as_interrupted() {
    for answer in [
        vec![
            Step::Call("a", "list", "{}"),
            Step::Call("b", "slow", "{}"),
            Step::Call("c", "ask", "{}"),
        ],
        vec![
            Step::Say("I was saying"),
            Step::Call("a", "list", "{}"),
            Step::Until(Arc::new(Notify::new())),
        ],
    ] {
        let stage = Stage::new(
            vec![answer],
            [
                ("list", Act::Answer("src")),
                ("slow", Act::AnswerAfter(Arc::new(Notify::new()), "never")),
                ("ask", Act::Ask),
            ],
        );
        let interrupting = async {
            stage.settle().await;
            stage.cancel.cancel();
        };
        let (end, ()) = tokio::join!(stage.run("go"), interrupting);
        assert_eq!(end, RunEnd::Interrupted);
        agree(&stage, 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_that_broke_off_come_back_as_the_model_was_told_of_them() {
    let broken = || {
        vec![
            Step::Say("First"),
            Step::Call("a", "list", "{}"),
            Step::Fail(ModelErrorKind::Timeout),
        ]
    };
    let mended = Stage::new(
        vec![broken(), broken(), vec![Step::Say("Done.")]],
        [("list", Act::Answer("src"))],
    );
    assert!(matches!(mended.run("go").await, RunEnd::Ended { .. }));
    agree(&mended, 3).await;
    let given_up = Stage::new(
        (0..6).map(|_| broken()).collect(),
        [("list", Act::Answer("src"))],
    );
    assert!(matches!(given_up.run("go").await, RunEnd::Failed { .. }));
    agree(&given_up, 2).await;
}
