//! Responses that are kept for whoever says that an older one will do.

use std::time::Duration;

use floe_network::{Gate, GateRequest, Reach, Why};

use crate::fixture::{Server, URL, body, field, get, granted, ok, response, send, served, text};

fn aged(url: &str, seconds: u64) -> GateRequest {
    GateRequest {
        headers: vec![(
            "Cache-Control".into(),
            format!("max-age={seconds}").into_bytes(),
        )],
        ..get(url)
    }
}

#[tokio::test]
async fn a_page_is_asked_for_once_by_whoever_says_that_an_older_one_will_do() {
    let (server, gate) = served(|_| response("200 OK", &[("x-kind", "page")], b"page")).await;
    for _ in 0..3 {
        let mut response = send(&gate, aged(URL, 600)).await.unwrap();
        assert_eq!(field(&response, "x-kind"), Some("page"));
        assert_eq!(response.final_url, URL);
        assert_eq!(body(&mut response).await.unwrap(), b"page");
    }
    assert_eq!(server.received().len(), 1);
    assert_eq!(text(&gate, get(URL)).await, "page");
    assert_eq!(text(&gate, aged(URL, 0)).await, "page");
    assert_eq!(server.received().len(), 3);
}

#[tokio::test]
async fn only_the_same_request_is_answered_and_only_after_a_whole_success() {
    let (server, gate) = served(|received| match received.path() {
        "/missing" => response("404 Not Found", &[], b"no"),
        _ => ok("page"),
    })
    .await;
    for path in ["missing", "missing"] {
        text(&gate, aged(&format!("{URL}{path}"), 600)).await;
    }
    drop(send(&gate, aged(URL, 600)).await.unwrap());
    text(&gate, aged(URL, 600)).await;
    let mut other = aged(URL, 600);
    other.headers.push(("Accept".into(), b"text/html".to_vec()));
    text(&gate, other).await;
    let head = GateRequest {
        method: "HEAD".into(),
        ..aged(URL, 600)
    };
    text(&gate, head).await;
    assert_eq!(server.received().len(), 6);
}

#[tokio::test]
async fn the_memory_of_a_session_is_bounded() {
    let (server, gate) = served(|_| ok(&"x".repeat(3 << 20))).await;
    for number in 0..8 {
        text(&gate, aged(&format!("{URL}{number}"), 600)).await;
    }
    // The newest is there, the oldest made room.
    text(&gate, aged(&format!("{URL}7"), 600)).await;
    assert_eq!(server.received().len(), 8);
    text(&gate, aged(&format!("{URL}0"), 600)).await;
    assert_eq!(server.received().len(), 9);
    // One that is too large for it is not kept at all.
    let (server, gate) = served(|_| ok(&"x".repeat(5 << 20))).await;
    for _ in 0..2 {
        text(&gate, aged(URL, 600)).await;
    }
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn a_call_gets_nothing_from_memory_that_it_could_not_ask_for() {
    let server = Server::start(|_| ok("page")).await;
    let mut options = granted(&[]);
    options.grants = floe_network::HostGrants::parse(&[server.grant("fixture.test:80")]).unwrap();
    let gate = Gate::new(options);
    let reads = Reach {
        reads_only: true,
        ..Reach::default()
    };
    gate.send(aged(URL, 600), &Reach::default()).await.unwrap();
    assert!(gate.send(aged(URL, 600), &reads).await.is_ok());
    let with_body = GateRequest {
        body: Some(b"x".to_vec()),
        ..aged(URL, 600)
    };
    let error = gate.send(with_body, &reads).await.unwrap_err();
    assert_eq!(error.denial().unwrap().why, Why::ReadOnlyCall);
}

#[tokio::test]
async fn a_kept_response_grows_old() {
    let (server, gate) = served(|_| ok("page")).await;
    text(&gate, aged(URL, 600)).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(500)).await;
    let response = send(&gate, aged(URL, 600)).await.unwrap();
    assert_eq!(field(&response, "age"), Some("500"));
    tokio::time::advance(Duration::from_secs(500)).await;
    tokio::time::resume();
    text(&gate, aged(URL, 100_000)).await;
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn what_is_kept_beside_bodies_counts_too() {
    let field = "x".repeat(40_000);
    let (server, gate) = served(move |_| response("200 OK", &[("x-long", &field)], b"x")).await;
    for number in 0..500 {
        text(&gate, aged(&format!("{URL}{number}"), 600)).await;
    }
    // Less than 500 of more than 40 kB each are in 16 MiB.
    text(&gate, aged(&format!("{URL}0"), 600)).await;
    assert_eq!(server.received().len(), 501);
}

#[tokio::test]
async fn remembered_bodies_that_nobody_reads_are_bounded_like_those_under_way() {
    let server = Server::start(|_| ok("page")).await;
    let mut options = granted(&[server.grant("fixture.test:80")]);
    options.limits.at_once = 2;
    let gate = Gate::new(options);
    text(&gate, aged(URL, 600)).await;
    let first = send(&gate, aged(URL, 600)).await.unwrap();
    let _second = send(&gate, aged(URL, 600)).await.unwrap();
    let impatient = || GateRequest {
        timeout: Some(Duration::from_millis(50)),
        ..aged(URL, 600)
    };
    let error = send(&gate, impatient()).await.unwrap_err();
    assert_eq!(error.code(), "timeout");
    drop(first);
    assert_eq!(text(&gate, aged(URL, 600)).await, "page");
    assert_eq!(server.received().len(), 1);
}
