//! What a server does wrong, and what the one who asked is told.

mod support;

use std::time::{Duration, Instant};

use floe_language::{Kind, Query, QueryError};

use support::{LONG, Stage, at, names_the_host, query, shown};

fn definition() -> Query {
    at(Kind::Definition, "a.txt", 1, 1)
}

fn hover() -> Query {
    at(Kind::Hover, "a.txt", 1, 1)
}

/// The fault of a server in this mode when it is asked for a definition, with a limit for the answer.
async fn fault(mode: &str, answer: Duration) -> (Stage, QueryError) {
    let stage = Stage::with(mode, |options| options.waits.answer = answer);
    stage.write("a.txt", "one");
    let error = stage.ask(definition()).await.unwrap_err();
    assert!(!names_the_host(&error.to_string(), &stage), "{error}");
    assert!(error.is_retryable(), "{error}");
    (stage, error)
}

#[tokio::test]
async fn a_server_that_does_not_start_is_told_with_its_last_words() {
    let (_stage, error) = fault("crash-at-start", LONG).await;
    assert_eq!(
        error.to_string(),
        "The language server fixture is gone: it exited with code 7. It wrote:\nno such luck\\x1b[31m"
    );
    assert_eq!(error.code(), "io");
}

#[tokio::test]
async fn a_server_that_keeps_crashing_is_not_started_again_at_once() {
    let stage = Stage::with("crash-at-start", |options| {
        options.waits.start = Duration::from_secs(30);
        options.waits.pause = Duration::from_secs(600);
    });
    stage.write("a.txt", "one");
    stage.ask(definition()).await.unwrap_err();
    let asked = Instant::now();
    let error = stage.ask(definition()).await.unwrap_err().to_string();
    assert!(asked.elapsed() < Duration::from_secs(30));
    assert!(error.contains("exited with code 7"), "{error}");
    assert!(
        error.contains("After 1 failures it is started again in"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_crashes_while_it_is_asked_is_told_and_started_for_the_next_question() {
    let (stage, error) = fault("crash-once", LONG).await;
    assert_eq!(
        error.to_string(),
        "The language server fixture is gone: it exited with code 3."
    );
    let found = stage.ask(definition()).await.unwrap();
    assert_eq!(shown(&found), ["a.txt:1:1: one"]);
    let (_stage, error) = fault("crash-on-request", LONG).await;
    let error = error.to_string();
    assert!(
        error.contains("it was ended by SIGABRT. It wrote:\nout of order"),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up_and_told_to_cancel() {
    let (stage, error) = fault("silent", Duration::from_secs(2)).await;
    assert_eq!(
        error.to_string(),
        "The language server fixture did not answer in time."
    );
    assert_eq!(error.code(), "timeout");
    stage
        .until("it is told to cancel", |stage| {
            stage.says("$/cancelRequest")
        })
        .await;
}

#[tokio::test]
async fn a_question_that_is_dropped_is_cancelled() {
    let stage = Stage::new("silent");
    stage.write("a.txt", "one");
    {
        let query = definition();
        let asking = stage.servers.ask(&query);
        let asked = stage.until("it is asked", |stage| stage.says("textDocument/definition"));
        tokio::select! {
            _ = asking => panic!("nobody answers"),
            () = asked => {}
        }
    }
    stage
        .until("it is told to cancel", |stage| {
            stage.says("$/cancelRequest")
        })
        .await;
}

#[tokio::test]
async fn a_server_that_answers_late_and_ignores_a_cancel_disturbs_no_later_question() {
    let (stage, error) = fault("late", Duration::from_secs(1)).await;
    assert_eq!(error.code(), "timeout");
    // The late answer comes while this one is waited for.
    let limit = Instant::now() + LONG;
    let found = loop {
        match stage.ask(hover()).await {
            Ok(found) => break found,
            Err(error) => assert!(error.is_retryable() && Instant::now() < limit, "{error}"),
        }
    };
    assert_eq!(found.text.as_deref(), Some("the word `one`"));
}

#[tokio::test]
async fn a_server_that_reads_nothing_does_not_start() {
    let stage = Stage::with("deaf", |options| {
        options.waits.longest_start = Duration::from_secs(2);
    });
    stage.write("a.txt", "one");
    let error = stage.ask(hover()).await.unwrap_err();
    assert_eq!(error.code(), "timeout");
    assert_eq!(
        error.to_string(),
        "The language server fixture did not start in time."
    );
}

#[tokio::test]
async fn what_is_no_message_ends_the_server() {
    for mode in ["garbage", "not-json"] {
        let (_stage, error) = fault(mode, LONG).await;
        assert_eq!(
            error.to_string(),
            "The language server fixture is gone: it wrote something that is no message of the protocol.",
            "{mode}"
        );
    }
}

#[tokio::test]
async fn a_message_that_is_too_long_ends_the_server() {
    let (_stage, error) = fault("huge", LONG).await;
    assert_eq!(
        error.to_string(),
        "The language server fixture is gone: it wrote a message of 99999999999 bytes (limit 16777216)."
    );
}

#[tokio::test]
async fn a_refusal_is_told_in_the_words_of_the_server() {
    let (_stage, error) = fault("refuse", LONG).await;
    assert_eq!(
        error.to_string(),
        "The language server fixture refused to answer: not today (code -32603)."
    );
}

#[tokio::test]
async fn places_that_are_not_there_become_the_nearest_and_those_outside_their_name() {
    let stage = Stage::new("wrong-positions");
    stage.write("a.txt", "one\ntwo");
    let found = stage.ask(definition()).await.unwrap();
    assert_eq!(
        shown(&found),
        [
            "a.txt:1:4: one",
            "a.txt:2:4: two",
            "passwd (outside the Workspace):1:1: -"
        ]
    );
}

#[tokio::test]
async fn a_flood_of_diagnostics_is_bounded() {
    let stage = Stage::new("flood");
    stage.write("a.txt", "one");
    let found = stage
        .ask(query(Kind::Diagnostics, "a.txt", None))
        .await
        .unwrap();
    // All of them are one and the same.
    assert_eq!(found.locations.len(), 1);
    let found = stage.ask(hover()).await.unwrap();
    assert_eq!(found.text.as_deref(), Some("the word `one`"));
}

#[tokio::test]
async fn a_server_that_says_nothing_of_a_file_is_told_so() {
    let stage = Stage::with("no-diagnostics", |options| {
        options.waits.answer = Duration::from_secs(2);
    });
    stage.write("a.txt", "one");
    let asked = stage.ask(query(Kind::Diagnostics, "a.txt", None)).await;
    assert_eq!(
        asked.unwrap_err().to_string(),
        "The language server fixture did not examine the file in time."
    );
}

#[tokio::test]
async fn a_server_that_does_not_end_when_it_is_asked_to_is_ended() {
    for mode in ["late-exit", "shutdown-late"] {
        let stage = Stage::with(mode, |options| {
            options.waits.stop = Duration::from_millis(500);
        });
        stage.write("a.txt", "one");
        stage.ask(hover()).await.unwrap();
        tokio::time::timeout(LONG, stage.servers.close())
            .await
            .unwrap();
        assert!(stage.says("shutdown"));
    }
}
