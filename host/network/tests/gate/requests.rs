//! What goes out and what comes back where nothing is wrong.

use std::io::Write;

use floe_network::{Gate, GateRequest};

use crate::fixture::{
    Answer, Server, URL, body, field, get, granted, ok, response, send, served, text,
};

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_granted_host_is_asked_with_the_name_it_was_asked_for() {
    let (server, gate) = served(|_| response("200 OK", &[("X-Kind", "plain")], b"hello")).await;
    let mut response = send(&gate, get("http://fixture.test/a%20b?c=d#e"))
        .await
        .unwrap();
    assert_eq!(response.status, 200);
    assert_eq!(field(&response, "x-kind"), Some("plain"));
    assert_eq!(response.final_url, "http://fixture.test/a%20b?c=d");
    assert_eq!(body(&mut response).await.unwrap(), b"hello");
    let received = &server.received()[0];
    assert_eq!(received.line, "GET /a%20b?c=d HTTP/1.1");
    assert_eq!(received.field("host"), Some("fixture.test"));
    assert!(received.field("user-agent").unwrap().starts_with("floe/"));
    assert_eq!(received.field("accept-encoding"), Some("gzip"));
}

#[tokio::test]
async fn a_port_of_its_own_stands_in_the_host_field_and_not_that_of_the_address() {
    let server = Server::start(|_| ok("x")).await;
    let gate = Gate::new(granted(&[server.grant("fixture.test:8080")]));
    assert_eq!(text(&gate, get("http://fixture.test:8080/")).await, "x");
    let host = server.received()[0].field("host").unwrap().to_owned();
    assert_eq!(host, "fixture.test:8080");
}

#[tokio::test]
async fn method_header_fields_and_body_arrive_as_they_were_given() {
    let (server, gate) = served(|_| ok("made")).await;
    let request = GateRequest {
        method: "POST".into(),
        headers: vec![
            ("X-One".into(), b"1".to_vec()),
            ("x-one".into(), b"2".to_vec()),
            ("Accept-Encoding".into(), b"br".to_vec()),
            ("User-Agent".into(), b"me".to_vec()),
        ],
        body: Some(b"{}".to_vec()),
        ..get(URL)
    };
    assert_eq!(text(&gate, request).await, "made");
    let received = &server.received()[0];
    assert_eq!(received.line, "POST / HTTP/1.1");
    assert_eq!(received.body, b"{}");
    let ones = received.fields.iter().filter(|(name, _)| name == "x-one");
    assert_eq!(
        ones.map(|(_, value)| &**value).collect::<Vec<_>>(),
        ["1", "2"]
    );
    assert_eq!(received.field("accept-encoding"), Some("gzip"));
    assert_eq!(received.field("user-agent"), Some("me"));
}

#[tokio::test]
async fn a_compressed_body_is_read_as_what_it_stands_for() {
    let long: String = (0..40_000).map(|number| format!("{number},")).collect();
    let packed = gzipped(long.as_bytes());
    let (_server, gate) =
        served(move |_| response("200 OK", &[("content-encoding", "gzip")], &packed)).await;
    let mut response = send(&gate, get(URL)).await.unwrap();
    assert_eq!(field(&response, "content-encoding"), None);
    assert_eq!(field(&response, "content-length"), None);
    assert_eq!(body(&mut response).await.unwrap(), long.as_bytes());
}

#[tokio::test]
async fn what_only_names_a_compression_has_an_empty_body() {
    let (_server, gate) = served(|received| match received.line.starts_with("HEAD") {
        true => response("200 OK", &[("content-encoding", "gzip")], b""),
        false => {
            Answer::Bytes(b"HTTP/1.1 304 Not Modified\r\ncontent-encoding: gzip\r\n\r\n".to_vec())
        }
    })
    .await;
    for method in ["HEAD", "GET"] {
        let request = GateRequest {
            method: method.into(),
            ..get(URL)
        };
        let mut response = send(&gate, request).await.unwrap();
        assert_eq!(body(&mut response).await.unwrap(), b"", "{method}");
    }
}

#[tokio::test]
async fn a_failure_of_the_other_side_is_a_response_like_any_other() {
    let (_server, gate) = served(|_| response("404 Not Found", &[], b"no such page")).await;
    let mut response = send(&gate, get(URL)).await.unwrap();
    assert_eq!(response.status, 404);
    assert_eq!(body(&mut response).await.unwrap(), b"no such page");
}

#[tokio::test]
async fn a_body_is_read_in_portions_that_are_never_longer_than_asked_for() {
    let (_server, gate) = served(|_| ok("abcdefg")).await;
    let mut response = send(&gate, get(URL)).await.unwrap();
    let mut parts = Vec::new();
    while let Some(part) = response.body.read(3).await.unwrap() {
        assert!((1..=3).contains(&part.len()));
        parts.extend_from_slice(&part);
    }
    assert_eq!(parts, b"abcdefg");
    assert_eq!(response.body.read(3).await.unwrap(), None);
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_whole_body_and_for_the_same_target_only() {
    let server = Server::start(|_| ok("x")).await;
    let gate = Gate::new(granted(&[
        server.grant("fixture.test:80"),
        server.grant("other.test:80"),
    ]));
    for url in [URL, URL, "http://other.test/"] {
        assert_eq!(text(&gate, get(url)).await, "x");
    }
    let connections: Vec<usize> = server.received().iter().map(|one| one.connection).collect();
    assert_eq!(connections, [0, 0, 1]);
    // A body that nobody reads ends its connection.
    drop(send(&gate, get(URL)).await.unwrap());
    assert_eq!(text(&gate, get(URL)).await, "x");
    assert_eq!(server.received().last().unwrap().connection, 2);
}

#[tokio::test]
async fn a_connection_that_was_closed_while_it_waited_is_replaced() {
    let (server, gate) =
        served(|_| Answer::Last(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx".to_vec())).await;
    for _ in 0..5 {
        assert_eq!(text(&gate, get(URL)).await, "x");
    }
    assert_eq!(server.received().len(), 5);
}
