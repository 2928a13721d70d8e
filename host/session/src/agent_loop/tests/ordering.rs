//! The ordering guarantees of spec/environment.md 1.14.

use std::sync::Arc;

use floe_model::ModelErrorKind;
use floe_protocol::{Body, EventMsg, ModelMsg, Phase, StopReason};
use tokio::sync::Notify;

use super::stage::{Act, Stage, Step, brief, briefs};
use crate::RunEnd;

fn two_rounds() -> Vec<Vec<Step>> {
    vec![
        vec![
            Step::Say("Looking."),
            Step::Call("a", "list", "{}"),
            Step::Call("b", "list", "{}"),
        ],
        vec![Step::Say("Done.")],
    ]
}

#[tokio::test]
async fn a_run_is_recorded_in_the_order_of_the_contract() {
    let stage = Stage::new(
        vec![
            vec![Step::Say("Looking."), Step::Call("a", "list", "{}")],
            vec![Step::Say("Done.")],
        ],
        [("list", Act::Answer("src"))],
    );
    assert_eq!(
        stage.run("go").await,
        RunEnd::Ended {
            text: "Done.".into()
        }
    );
    assert_eq!(
        briefs(&stage.trace()),
        [
            "meta",
            "user: go",
            "tools",
            "begin",
            "model: Looking.",
            "call a",
            "tokens",
            "end completed",
            "decision a",
            "output a: src",
            "begin",
            "model: Done.",
            "tokens",
            "end completed",
        ]
    );
}

#[tokio::test]
async fn the_stream_is_the_trace_with_fragments_and_without_meta_and_prompt() {
    let stage = Stage::new(two_rounds(), [("list", Act::Answer("src"))]);
    stage.run("go").await;
    let trace = briefs(&stage.trace());
    assert_eq!(trace[..2], ["meta", "user: go"]);
    let stream = stage.stream();
    assert_eq!(briefs(&stream), trace[2..]);
    assert!(stream.iter().any(|message| brief(message) == "~"));
    assert!(
        !stream
            .iter()
            .any(|message| matches!(message.body, Body::SessionMeta(_)))
    );
}

#[tokio::test]
async fn every_segment_is_start_deltas_stop_and_then_its_complete_message() {
    let stage = Stage::new(two_rounds(), [("list", Act::Answer("src"))]);
    stage.run("go").await;
    let texts: Vec<_> = stage
        .stream()
        .into_iter()
        .filter_map(|message| match message.body {
            Body::ModelMsg(ModelMsg::PartialText { event_type, .. }) => Some(Some(event_type)),
            Body::ModelMsg(ModelMsg::Text { .. }) => Some(None),
            _ => None,
        })
        .collect();
    let segment = [
        Some(Phase::Start),
        Some(Phase::Delta),
        Some(Phase::Stop),
        None,
    ];
    assert_eq!(texts, [segment, segment].concat());
}

#[tokio::test]
async fn a_decision_follows_its_call_and_precedes_its_output() {
    let stage = Stage::new(two_rounds(), [("list", Act::Answer("src"))]);
    stage.run("go").await;
    let trace = briefs(&stage.trace());
    let place = |what: &str| {
        trace
            .iter()
            .position(|line| line.starts_with(what))
            .unwrap()
    };
    for id in ["a", "b"] {
        assert!(place(&format!("call {id}")) < place(&format!("decision {id}")));
        assert!(place(&format!("decision {id}")) < place(&format!("output {id}")));
    }
}

#[tokio::test]
async fn a_call_runs_while_the_model_still_streams() {
    let more = Arc::new(Notify::new());
    let stage = Arc::new(Stage::new(
        vec![
            vec![
                Step::Call("a", "list", "{}"),
                Step::Until(Arc::clone(&more)),
                Step::Say("And more."),
            ],
            vec![Step::Say("Done.")],
        ],
        [("list", Act::Answer("src"))],
    ));
    let running = tokio::spawn({
        let stage = Arc::clone(&stage);
        async move { stage.run("go").await }
    });
    stage.settle().await;
    assert_eq!(
        briefs(&stage.stream()),
        ["tools", "begin", "call a", "decision a", "output a: src"]
    );
    more.notify_one();
    running.await.unwrap();
}

#[tokio::test]
async fn outputs_reach_the_next_request_in_call_order_whatever_order_they_ended_in() {
    let late = Arc::new(Notify::new());
    let stage = Arc::new(Stage::new(
        vec![
            vec![Step::Call("a", "slow", "{}"), Step::Call("b", "list", "{}")],
            vec![Step::Say("Done.")],
        ],
        [
            ("slow", Act::AnswerAfter(Arc::clone(&late), "slow")),
            ("list", Act::Answer("fast")),
        ],
    ));
    let running = tokio::spawn({
        let stage = Arc::clone(&stage);
        async move { stage.run("go").await }
    });
    stage.settle().await;
    let stream = briefs(&stage.stream());
    assert_eq!(stream.last().unwrap(), "output b: fast");
    assert_eq!(
        stage.model.requests.lock().unwrap().len(),
        1,
        "it waits for all"
    );
    late.notify_one();
    running.await.unwrap();
    assert_eq!(
        stage.request(1),
        [
            "user: go",
            "call a",
            "call b",
            "output a: slow",
            "output b: fast"
        ]
    );
}

#[tokio::test]
async fn the_token_count_is_followed_by_the_end_of_its_request_at_once() {
    let stage = Stage::new(two_rounds(), [("list", Act::Answer("src"))]);
    stage.run("go").await;
    let stream: Vec<String> = stage.stream().iter().map(brief).collect();
    let counts: Vec<usize> = (0..stream.len())
        .filter(|index| stream[*index] == "tokens")
        .collect();
    assert_eq!(counts.len(), 2);
    for index in counts {
        assert_eq!(stream[index + 1], "end completed");
    }
    let totals: Vec<u64> = stage
        .stream()
        .iter()
        .filter_map(|message| match &message.body {
            Body::EventMsg(EventMsg::TokenUsage { session, .. }) => Some(session.total),
            _ => None,
        })
        .collect();
    assert_eq!(totals, [1, 2], "counted over the Session");
}

#[tokio::test(start_paused = true)]
async fn a_round_is_in_the_history_exactly_where_its_request_ended_completed() {
    let stage = Stage::new(
        vec![
            vec![Step::Say("Lost."), Step::Fail(ModelErrorKind::Timeout)],
            vec![Step::Say("Kept.")],
            vec![Step::Say("Done.")],
        ],
        [],
    );
    stage.run("go").await;
    stage.run("on").await;
    let last = stage.request(2);
    assert!(last.contains(&"model: Kept.".to_owned()));
    assert!(!last.contains(&"model: Lost.".to_owned()));
    let ends: Vec<String> = briefs(&stage.trace())
        .into_iter()
        .filter(|line| line.starts_with("end "))
        .collect();
    assert_eq!(ends, ["end timeout", "end completed", "end completed"]);
}

#[tokio::test]
async fn every_committed_call_has_exactly_one_output_also_one_that_the_host_lost() {
    let stage = Stage::new(
        vec![
            vec![Step::Call("a", "gone", "{}"), Step::Call("b", "list", "{}")],
            vec![Step::Say("Done.")],
        ],
        [("gone", Act::Vanish), ("list", Act::Answer("src"))],
    );
    stage.run("go").await;
    let trace = briefs(&stage.trace());
    for id in ["a", "b"] {
        let outputs = trace
            .iter()
            .filter(|line| line.starts_with(&format!("output {id}")))
            .count();
        assert_eq!(outputs, 1, "{id}");
    }
    assert!(stage.request(1)[3].starts_with("output a: [tool error]"));
}

#[tokio::test]
async fn ids_that_a_model_uses_again_are_made_unique_within_the_session() {
    let stage = Stage::new(
        vec![
            vec![
                Step::Call("list", "list", "{}"),
                Step::Call("list", "list", "{}"),
            ],
            vec![Step::Call("list", "list", "{}")],
            vec![Step::Say("Done.")],
        ],
        [("list", Act::Answer("src"))],
    );
    stage.run("go").await;
    let executed: Vec<String> = stage
        .executed
        .lock()
        .unwrap()
        .iter()
        .map(|call| call.tool_call_id.clone())
        .collect();
    assert_eq!(executed, ["list", "list#2", "list#3"]);
    let fragments: Vec<String> = stage
        .stream()
        .into_iter()
        .filter_map(|message| match message.body {
            Body::ModelMsg(ModelMsg::PartialToolCall { tool_call_id, .. }) => Some(tool_call_id),
            _ => None,
        })
        .collect();
    assert_eq!(fragments[3..6], ["list#2", "list#2", "list#2"]);
    assert_eq!(stage.request(2)[3], "output list: src");
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_neither_run_nor_answered() {
    let stage = Stage::new(
        vec![
            vec![
                Step::CutCall("cut", StopReason::Malformed),
                Step::Call("a", "list", "{}"),
            ],
            vec![Step::Say("Done.")],
        ],
        [("list", Act::Answer("src"))],
    );
    stage.run("go").await;
    assert_eq!(stage.executed.lock().unwrap().len(), 1);
    assert_eq!(stage.request(1), ["user: go", "call a", "output a: src"]);
}
