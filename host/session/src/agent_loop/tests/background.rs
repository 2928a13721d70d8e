//! When the model is told what has ended in the background.

use std::sync::Arc;

use tokio::sync::Notify;

use super::stage::{Act, Stage, Step, briefs};
use crate::RunEnd;

#[tokio::test]
async fn what_ended_during_a_turn_is_told_with_the_next_request_behind_the_outputs() {
    let go_on = Arc::new(Notify::new());
    let stage = Stage::new(
        vec![
            vec![
                Step::Call("a", "list", "{}"),
                Step::Until(Arc::clone(&go_on)),
            ],
            vec![Step::Say("Seen.")],
        ],
        [("list", Act::Answer("src"))],
    );
    let meanwhile = async {
        stage.settle().await;
        stage.background.end("proc-1");
        stage.background.end("proc-2");
        go_on.notify_one();
    };
    let (end, ()) = tokio::join!(stage.run("go"), meanwhile);
    assert_eq!(
        end,
        RunEnd::Ended {
            text: "Seen.".into()
        }
    );
    assert_eq!(
        stage.request(1),
        [
            "user: go",
            "call a",
            "output a: src",
            "done: proc-1",
            "done: proc-2"
        ]
    );
    let trace = briefs(&stage.trace());
    let position = |wanted: &str| trace.iter().position(|line| line == wanted).unwrap();
    assert!(position("output a: src") < position("done: proc-1"));
    assert!(position("done: proc-1") < position("done: proc-2"));
    assert!(
        briefs(&stage.stream()).contains(&"done: proc-1".into()),
        "who follows the stream sees what the model reads"
    );
}

#[tokio::test]
async fn what_ended_during_the_last_answer_makes_the_run_go_on() {
    let go_on = Arc::new(Notify::new());
    let stage = Stage::new(
        vec![
            vec![Step::Say("Built?"), Step::Until(Arc::clone(&go_on))],
            vec![Step::Say("Built.")],
        ],
        [],
    );
    let meanwhile = async {
        stage.settle().await;
        stage.background.end("proc-1");
        go_on.notify_one();
    };
    let (end, ()) = tokio::join!(stage.run("go"), meanwhile);
    assert_eq!(
        end,
        RunEnd::Ended {
            text: "Built.".into()
        }
    );
    assert_eq!(
        stage.request(1),
        ["user: go", "model: Built?", "done: proc-1"]
    );
}

#[tokio::test]
async fn what_ended_between_runs_is_told_before_the_next_input() {
    let stage = Stage::new(vec![vec![Step::Say("One.")], vec![Step::Say("Two.")]], []);
    stage.run("first").await;
    stage.background.end("proc-1");
    stage.run("second").await;
    assert_eq!(
        stage.request(1),
        ["user: first", "model: One.", "done: proc-1", "user: second"]
    );
    let trace = briefs(&stage.trace());
    let position = |wanted: &str| trace.iter().position(|line| line == wanted).unwrap();
    assert!(position("done: proc-1") < position("user: second"));
}

#[tokio::test]
async fn an_idle_session_works_on_what_has_ended_and_only_on_that() {
    let stage = Stage::new(vec![vec![Step::Say("One.")], vec![Step::Say("Two.")]], []);
    stage.run("first").await;
    assert_eq!(stage.run_on().await, None);
    stage.background.end("proc-1");
    assert_eq!(
        stage.run_on().await,
        Some(RunEnd::Ended {
            text: "Two.".into()
        })
    );
    assert_eq!(
        stage.request(1),
        ["user: first", "model: One.", "done: proc-1"]
    );
}

#[tokio::test]
async fn a_report_that_an_interrupt_kept_from_the_model_goes_with_the_next_run() {
    let stage = Stage::new(vec![vec![Step::Say("Two.")]], []);
    stage.background.end("proc-1");
    stage.cancel.cancel();
    assert_eq!(stage.run("first").await, RunEnd::Interrupted);
    let mut stage = stage;
    stage.cancel = tokio_util::sync::CancellationToken::new();
    stage.run("second").await;
    assert_eq!(
        stage.request(0),
        ["done: proc-1", "user: first", "user: second"]
    );
}
