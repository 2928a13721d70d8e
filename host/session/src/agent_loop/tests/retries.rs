//! Requests that are made again (decisions.md "The loop"). The clock is the test's: nothing waits for real.

use std::time::Duration;

use floe_model::ModelErrorKind;
use floe_protocol::{Body, EventMsg};
use tokio::time::Instant;

use super::stage::{Act, Stage, Step, briefs};
use crate::RunEnd;

fn failing(kind: ModelErrorKind, times: usize) -> Vec<Vec<Step>> {
    (0..times).map(|_| vec![Step::Fail(kind)]).collect()
}

/// The announced waits, in milliseconds.
fn waits(stage: &Stage) -> Vec<Option<u64>> {
    stage
        .stream()
        .iter()
        .filter_map(|message| match &message.body {
            Body::EventMsg(EventMsg::RequestEnd { retry_in_ms, .. }) => Some(*retry_in_ms),
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_request_is_made_again_five_times_with_growing_waits_that_are_announced() {
    for (kind, reason) in [
        (ModelErrorKind::Timeout, "reconnect failed after 5 retries"),
        (
            ModelErrorKind::Malformed,
            "malformed response failed after 5 retries",
        ),
        (
            ModelErrorKind::Failed,
            "llm request failed after 5 retries: it broke",
        ),
    ] {
        let stage = Stage::new(failing(kind, 6), []);
        let start = Instant::now();
        let end = stage.run("go").await;
        assert_eq!(
            end,
            RunEnd::Failed {
                reason: reason.into()
            }
        );
        assert_eq!(
            waits(&stage),
            [
                Some(2000),
                Some(4000),
                Some(8000),
                Some(16_000),
                Some(30_000),
                None
            ]
        );
        assert_eq!(start.elapsed().as_secs(), 60);
        assert_eq!(
            briefs(&stage.trace()).last().unwrap(),
            &format!("abort: {reason}")
        );
        assert_eq!(end.exit_status(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_passes_costs_the_run_nothing() {
    let mut answers = failing(ModelErrorKind::Timeout, 2);
    answers.push(vec![Step::Say("Here I am.")]);
    let stage = Stage::new(answers, []);
    assert_eq!(
        stage.run("go").await,
        RunEnd::Ended {
            text: "Here I am.".into()
        }
    );
    assert_eq!(stage.request(2), ["user: go"], "nothing was left to tell");
    let ends: Vec<_> = stage
        .stream()
        .into_iter()
        .filter_map(|message| match message.body {
            Body::EventMsg(EventMsg::RequestEnd {
                attempt,
                error_message,
                ..
            }) => Some((attempt, error_message)),
            _ => None,
        })
        .collect();
    assert_eq!(
        ends,
        [
            (Some(1), Some("it broke".into())),
            (Some(2), Some("it broke".into())),
            (Some(3), None),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn authentication_errors_and_missed_expectations_stop_the_run_at_once() {
    for kind in [ModelErrorKind::Auth, ModelErrorKind::Expectation] {
        let stage = Stage::new(failing(kind, 1), []);
        let start = Instant::now();
        assert_eq!(
            stage.run("go").await,
            RunEnd::Failed {
                reason: "llm request error: it broke".into()
            }
        );
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(
            briefs(&stage.trace()).last().unwrap(),
            "abort: llm request error: it broke"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ran_before_the_fault_is_told_to_the_model_and_not_run_again() {
    let stage = Stage::new(
        vec![
            vec![
                Step::Say("Look: "),
                Step::Call("a", "list", "{}"),
                Step::Fail(ModelErrorKind::Malformed),
            ],
            vec![Step::Say("Done.")],
        ],
        [("list", Act::Answer("src"))],
    );
    stage.run("go").await;
    assert_eq!(stage.executed.lock().unwrap().len(), 1);
    let request = stage.request(1);
    assert_eq!(request.len(), 2);
    assert!(
        request[1].starts_with("user: [turn_retried]\n"),
        "{request:?}"
    );
    for part in ["Look: ", "list with {}", "src", "[/turn_retried]"] {
        assert!(request[1].contains(part), "{part} in {request:?}");
    }
    let trace = briefs(&stage.trace());
    assert!(trace.contains(&"output a: src".to_owned()));
    assert!(
        !trace.iter().any(|line| line.contains("turn_retried")),
        "for the model only"
    );
}

#[tokio::test(start_paused = true)]
async fn the_block_of_a_retry_stays_in_the_conversation_once_it_was_answered() {
    let stage = Stage::new(
        vec![
            vec![
                Step::Call("a", "list", "{}"),
                Step::Fail(ModelErrorKind::Timeout),
            ],
            vec![Step::Say("Done.")],
            vec![Step::Say("Again.")],
        ],
        [("list", Act::Answer("src"))],
    );
    stage.run("go").await;
    stage.run("on").await;
    let request = stage.request(2);
    assert!(request[1].contains("[turn_retried]"));
    assert_eq!(request[2..], ["model: Done.", "user: on"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_run_that_failed_the_next_one_delivers_its_input() {
    let stage = Stage::new(
        vec![
            vec![Step::Say("I was"), Step::Fail(ModelErrorKind::Auth)],
            vec![Step::Say("Done.")],
        ],
        [],
    );
    stage.run("go").await;
    stage.run("on").await;
    let request = stage.request(1);
    assert_eq!(request[0], "user: go");
    assert!(request[1].starts_with("user: [turn_aborted]\n") && request[1].contains("I was"));
    assert_eq!(request[2], "user: on");
}
