//! Servers that send too much, too slowly, or what is no HTTP.

use std::io::Write;
use std::time::{Duration, Instant};

use floe_network::{Gate, GateError, GateLimits, GateRequest};

use crate::fixture::{Answer, PATIENCE, Server, URL, body, get, granted, ok, response, send};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

fn limits() -> GateLimits {
    GateLimits {
        connect: PATIENCE,
        total: PATIENCE,
        idle: PATIENCE,
        response_body: 1 << 20,
        ..GateLimits::default()
    }
}

/// What becomes of a request to a server that answers like this.
async fn outcome(answer: Answer, limits: GateLimits) -> Result<Vec<u8>, GateError> {
    let server = Server::start(move |_| answer.clone()).await;
    let mut options = granted(&[server.grant("fixture.test:80")]);
    options.limits = limits;
    let gate = Gate::new(options);
    let mut response = send(&gate, get(URL)).await?;
    body(&mut response).await
}

#[tokio::test]
async fn a_gzip_bomb_ends_at_the_cap_on_what_it_stands_for() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..512 {
        encoder.write_all(&[0; 1 << 20]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 1 << 20);
    let answer = response("200 OK", &[("content-encoding", "gzip")], &bomb);
    let error = outcome(answer, limits()).await.unwrap_err();
    assert_eq!(error.code(), "too-large");
    assert_eq!(
        error.to_string(),
        "the body of the response is over 1048576 bytes"
    );
}

#[tokio::test]
async fn what_is_no_gzip_or_is_cut_short_is_a_failure() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(b"some text, some text").unwrap();
    let whole = encoder.finish().unwrap();
    for bytes in [&b"plain"[..], &whole[..whole.len() - 4], &whole[..12]] {
        let answer = response("200 OK", &[("content-encoding", "gzip")], bytes);
        let error = outcome(answer, limits()).await.unwrap_err();
        assert_eq!(error.code(), "io");
    }
}

#[tokio::test]
async fn an_endless_body_ends_at_the_cap() {
    let chunk = [b"10000\r\n".to_vec(), vec![b'x'; 0x10000], b"\r\n".to_vec()].concat();
    let plain = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    for answer in [
        Answer::Endless(CHUNKED.to_vec(), chunk),
        Answer::Endless(plain, vec![b'x'; 4096]),
    ] {
        let error = outcome(answer, limits()).await.unwrap_err();
        assert_eq!(error.code(), "too-large");
    }
}

#[tokio::test]
async fn a_flood_of_header_fields_is_not_read_to_its_end() {
    let first = b"HTTP/1.1 200 OK\r\n".to_vec();
    let error = outcome(
        Answer::Endless(first.clone(), b"x-y: z\r\n".to_vec()),
        limits(),
    )
    .await
    .unwrap_err();
    assert_eq!(error.code(), "too-large", "{error}");
    let error = outcome(Answer::Endless(first, b"x".to_vec()), limits())
        .await
        .unwrap_err();
    assert_eq!(error.code(), "too-large", "{error}");
    let many: String = (0..129)
        .map(|number| format!("x-{number}: y\r\n"))
        .collect();
    let head = format!("HTTP/1.1 200 OK\r\n{many}\r\n");
    let error = outcome(Answer::Last(head.into_bytes()), limits())
        .await
        .unwrap_err();
    assert_eq!(error.code(), "too-large", "{error}");
}

#[tokio::test]
async fn an_endless_run_of_informational_heads_ends_with_the_time_of_the_request() {
    let answer = Answer::Endless(Vec::new(), b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec());
    let short = GateLimits {
        total: Duration::from_millis(200),
        ..limits()
    };
    assert_eq!(outcome(answer, short).await.unwrap_err().code(), "timeout");
}

#[tokio::test]
async fn a_server_that_goes_silent_ends_with_the_time_of_the_request_wherever_it_does() {
    for sent in [
        &b""[..],
        b"HTTP/1.1 200",
        HEAD,
        CHUNKED,
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc",
    ] {
        let short = GateLimits {
            total: Duration::from_millis(100),
            ..limits()
        };
        let error = outcome(Answer::Hang(sent.to_vec()), short)
            .await
            .unwrap_err();
        assert_eq!(error.code(), "timeout", "{error}");
        // A busy machine may not even be done with connecting.
        assert!(
            error.to_string().ends_with(" took longer than 0.1 s"),
            "{error}"
        );
        assert!(error.is_retryable());
    }
}

#[tokio::test]
async fn a_body_that_stops_coming_ends_before_the_time_of_the_request() {
    let short = GateLimits {
        idle: Duration::from_millis(100),
        ..limits()
    };
    let error = outcome(Answer::Hang(HEAD.to_vec()), short)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "a further byte from fixture.test took longer than 0.1 s"
    );
}

#[tokio::test]
async fn a_server_that_drips_for_ever_ends_with_the_time_that_the_request_says() {
    let server =
        Server::start(|_| Answer::Endless(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b'x'])).await;
    let mut options = granted(&[server.grant("fixture.test:80")]);
    options.limits.response_body = u64::MAX;
    let gate = Gate::new(options);
    let request = GateRequest {
        timeout: Some(Duration::from_millis(300)),
        ..get(URL)
    };
    let begun = Instant::now();
    let error = match send(&gate, request).await {
        Ok(mut response) => body(&mut response).await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.code(), "timeout");
    assert!(begun.elapsed() < PATIENCE);
}

#[tokio::test]
async fn what_is_no_http_or_breaks_off_is_a_failure() {
    for sent in [
        &b"SSH-2.0-OpenSSH_9.9\r\n"[..],
        b"<html>hello</html>\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nabc",
        b"",
    ] {
        let error = outcome(Answer::Last(sent.to_vec()), limits())
            .await
            .unwrap_err();
        let shown = String::from_utf8_lossy(sent);
        assert_eq!(error.code(), "io", "{shown:?}: {error}");
    }
}

#[tokio::test]
async fn nobody_at_the_address_is_a_failure_that_may_pass() {
    let server = Server::start(|_| ok("x")).await;
    let grant = server.grant("fixture.test:80");
    drop(server);
    // The task that accepts ends a moment later.
    let gate = Gate::new(granted(&[grant]));
    let error = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Err(error) = send(&gate, get(URL)).await {
                return error;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert_eq!(error.code(), "io");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn exchanges_at_once_are_bounded_and_one_more_waits_for_its_time() {
    let server = Server::start(|_| Answer::Hang(HEAD.to_vec())).await;
    let mut options = granted(&[server.grant("fixture.test:80")]);
    options.limits.at_once = 2;
    let gate = Gate::new(options);
    let first = send(&gate, get(URL)).await.unwrap();
    let _second = send(&gate, get(URL)).await.unwrap();
    let impatient = GateRequest {
        timeout: Some(Duration::from_millis(50)),
        ..get(URL)
    };
    let error = send(&gate, impatient).await.unwrap_err();
    assert_eq!(error.code(), "timeout");
    drop(first);
    send(&gate, get(URL)).await.unwrap();
}
