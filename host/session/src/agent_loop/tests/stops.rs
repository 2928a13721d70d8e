//! Where the loop stops by itself: the limit of turns, refusals that repeat, an answer without calls.

use super::stage::{Act, Stage, Step, briefs};
use crate::RunEnd;

fn calls(count: usize) -> Vec<Vec<Step>> {
    (0..count)
        .map(|_| vec![Step::Call("a", "list", "{}")])
        .collect()
}

#[tokio::test]
async fn the_limit_of_turns_ends_the_run_with_a_note_and_carries_the_outputs_over() {
    let mut answers = calls(2);
    answers.push(vec![Step::Say("Done.")]);
    let mut stage = Stage::new(answers, [("list", Act::Answer("src"))]);
    stage.agent_loop.max_turns = 2;
    let end = stage.run("go").await;
    assert_eq!(
        end,
        RunEnd::Failed {
            reason: "reached max turns (2)".into()
        }
    );
    assert_eq!(end.exit_status(), 1);
    assert_eq!(
        briefs(&stage.stream()).last().unwrap(),
        "model: [reached max turns (2); stopping]"
    );
    stage.run("on").await;
    assert_eq!(
        stage.request(2),
        [
            "user: go",
            "call a",
            "output a: src",
            "call a#2",
            "output a#2: src",
            "user: on"
        ],
        "every call is answered, and the note is not part of the conversation"
    );
}

#[tokio::test]
async fn a_limit_of_minus_one_or_zero_is_none() {
    for limit in [-1, 0] {
        let mut answers = calls(150);
        answers.push(vec![Step::Say("Done.")]);
        let mut stage = Stage::new(answers, [("list", Act::Answer("src"))]);
        stage.agent_loop.max_turns = limit;
        assert!(matches!(stage.run("go").await, RunEnd::Ended { .. }));
    }
}

#[tokio::test]
async fn a_hundred_turns_are_the_default() {
    let stage = Stage::new(calls(100), [("list", Act::Answer("src"))]);
    assert_eq!(stage.agent_loop.max_turns, crate::DEFAULT_MAX_TURNS);
    assert_eq!(
        stage.run("go").await,
        RunEnd::Failed {
            reason: "reached max turns (100)".into()
        }
    );
}

#[tokio::test]
async fn the_third_refusal_of_the_same_call_stops_the_run() {
    let stage = Stage::new(calls(3), [("list", Act::Deny)]);
    let end = stage.run("go").await;
    assert_eq!(
        end,
        RunEnd::StoppedByRefusals {
            tool: "list".into()
        }
    );
    assert_eq!(end.exit_status(), 3);
    assert_eq!(
        briefs(&stage.trace()).last().unwrap(),
        "abort: stopped by repeated refusals"
    );
}

#[tokio::test]
async fn refusals_of_different_calls_do_not_stop_the_run() {
    let mut answers: Vec<Vec<Step>> = ["{\"a\":1}", "{\"a\":2}", "{\"a\":3}", "{\"a\":4}"]
        .into_iter()
        .map(|arguments| vec![Step::Call("a", "list", arguments)])
        .collect();
    answers.push(vec![Step::Say("Then not.")]);
    let stage = Stage::new(answers, [("list", Act::Deny)]);
    let end = stage.run("go").await;
    assert_eq!(end.exit_status(), 0, "the conversation ended: {end:?}");
}

#[tokio::test]
async fn an_answer_without_text_and_calls_ends_the_run() {
    let stage = Stage::new(vec![vec![]], []);
    assert_eq!(
        stage.run("go").await,
        RunEnd::Ended {
            text: String::new()
        }
    );
}
