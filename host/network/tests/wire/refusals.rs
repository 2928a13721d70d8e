//! What the proxy refuses, whoever asks and however it is written (the row E23 of the matrix, at the wire).

use std::collections::HashMap;
use std::sync::Arc;

use crate::support::{House, Names, echo};

/// The reply of SOCKS5 to what is not allowed.
const NOT_ALLOWED: u8 = 2;

async fn house() -> House {
    let host = echo().await;
    House::new(&[
        format!("allowed.test:443={host}"),
        format!("allowed.test:80={host}"),
    ])
    .await
}

/// Asks for a tunnel and for a plain request, which must both be refused and told.
async fn refused(house: &House, authority: &str, told: &str) {
    for (request, kind) in [
        (format!("CONNECT {authority} HTTP/1.1\r\n\r\n"), "a tunnel"),
        (
            format!("GET http://{authority}/ HTTP/1.1\r\n\r\n"),
            "a request",
        ),
    ] {
        let before = house.refused.lines().len();
        let answer = house.answer(request).await;
        let status = &answer[..12.min(answer.len())];
        assert!(
            ["HTTP/1.1 403", "HTTP/1.1 400"].contains(&status),
            "{kind} to {authority}: {answer}"
        );
        let lines = house.refused.lines();
        assert_eq!(lines.len(), before + 1, "{kind} to {authority}");
        assert!(lines[before].starts_with(told), "{}", lines[before]);
        assert!(
            answer.contains(&lines[before]),
            "the client reads why: {answer}"
        );
    }
}

#[tokio::test]
async fn e23_a_plain_request_and_a_tunnel_to_an_unlisted_host_are_refused() {
    let house = house().await;
    refused(
        &house,
        "other.test:443",
        "other.test:443 refused: not among the allowed hosts",
    )
    .await;
    refused(
        &house,
        "sub.allowed.test:443",
        "sub.allowed.test:443 refused",
    )
    .await;
    refused(
        &house,
        "allowed.test.evil.test:443",
        "allowed.test.evil.test:443 refused",
    )
    .await;
    assert_eq!(house.socks(b"other.test", 443).await, NOT_ALLOWED);
    assert_eq!(house.refused.lines().len(), 7);
}

#[tokio::test]
async fn e23_an_address_in_any_spelling_is_refused() {
    let house = house().await;
    for spelling in [
        "127.0.0.1",
        "127.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "2130706433",
        "127.0.0.1.",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
    ] {
        refused(&house, &format!("{spelling}:443"), "127.0.0.1:443 refused").await;
    }
    refused(&house, "[::1]:443", "[::1]:443 refused").await;
    refused(&house, "0:443", "0.0.0.0:443 refused").await;
    refused(&house, "8.8.8.8:443", "8.8.8.8:443 refused").await;
    assert_eq!(house.socks(b"127.0.0.1", 443).await, NOT_ALLOWED);
    assert_eq!(house.socks(b"0x7f.1", 443).await, NOT_ALLOWED);
    // By the message's own kinds of address: IPv4, and an IPv4 one in IPv6's clothes.
    for address in [
        vec![1, 127, 0, 0, 1],
        vec![4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1],
    ] {
        let mut client = house.connect().await;
        client
            .send([&[5, 1, 0, 5, 1, 0][..], &address, &[1, 187]].concat())
            .await;
        assert_eq!(client.exactly(4).await, [5, 0, 5, NOT_ALLOWED]);
    }
}

#[tokio::test]
async fn e23_a_name_that_ends_at_a_nul_byte_for_some_is_no_name() {
    let house = house().await;
    assert_eq!(
        house.socks(b"other.test\0.allowed.test", 443).await,
        NOT_ALLOWED
    );
    assert_eq!(house.socks(b"allowed.test\0", 443).await, NOT_ALLOWED);
    assert_eq!(
        house.socks(b"allowed.test\0.other.test", 443).await,
        NOT_ALLOWED
    );
    assert_eq!(house.socks(b"", 443).await, NOT_ALLOWED);
    assert_eq!(house.socks(b"\xff\xfe", 443).await, NOT_ALLOWED);
    let told = &house.refused.lines()[0];
    assert_eq!(
        told,
        "\"other.test\\u{0}.allowed.test\" refused: no host name and no address"
    );
    let answer = house
        .answer(b"CONNECT other.test\0.allowed.test:443 HTTP/1.1\r\n\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
}

#[tokio::test]
async fn e23_a_dot_at_the_end_and_capital_letters_make_no_other_host() {
    let house = house().await;
    refused(&house, "OTHER.test.:443", "other.test:443 refused").await;
    refused(&house, "other.TEST:443", "other.test:443 refused").await;
    for spelling in [
        "allowed.test.",
        "ALLOWED.test",
        "Allowed.Test.",
        "allowed\u{3002}test",
    ] {
        let mut client = house.connect().await;
        // Bytes beyond ASCII have no place in an address of HTTP, but in a name of SOCKS.
        if spelling.is_ascii() {
            client.tunnel(&format!("{spelling}:443")).await;
        }
        assert_eq!(house.socks(spelling.as_bytes(), 443).await, 0, "{spelling}");
    }
}

#[tokio::test]
async fn e23_another_port_of_an_allowed_host_is_refused() {
    let house = house().await;
    refused(&house, "allowed.test:22", "allowed.test:22 refused").await;
    refused(&house, "allowed.test:8443", "allowed.test:8443 refused").await;
    assert_eq!(house.socks(b"allowed.test", 22).await, NOT_ALLOWED);
    assert_eq!(house.socks(b"allowed.test", 0).await, NOT_ALLOWED);
}

#[tokio::test]
async fn e23_what_stands_before_an_at_sign_is_no_host() {
    let house = house().await;
    for authority in [
        "allowed.test@other.test:443",
        "allowed.test:443@other.test:443",
    ] {
        refused(&house, authority, "\"allowed.test").await;
    }
    for uri in [
        "http://allowed.test\\@other.test/",
        "http://allowed.test:80#@other.test/",
    ] {
        let answer = house.answer(format!("GET {uri} HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{uri}: {answer}");
    }
}

#[tokio::test]
async fn e23_the_metadata_service_is_refused_by_address_and_by_name() {
    let house = House::with(
        &["metadata.test".into(), "linklocal.test".into()],
        |options| {
            options.resolver = Arc::new(Names(HashMap::from([
                ("metadata.test", "169.254.169.254"),
                ("linklocal.test", "fe80::1"),
            ])));
        },
    )
    .await;
    refused(&house, "169.254.169.254:80", "169.254.169.254:80 refused").await;
    refused(&house, "[fe80::1]:80", "[fe80::1]:80 refused").await;
    refused(
        &house,
        "metadata.test:443",
        "metadata.test:443 refused: it leads to 169.254.169.254, which is not a public address",
    )
    .await;
    refused(
        &house,
        "linklocal.test:443",
        "linklocal.test:443 refused: it leads to fe80::1",
    )
    .await;
}

#[tokio::test]
async fn e23_an_allowed_name_that_leads_to_this_machine_is_refused() {
    let host = echo().await;
    let port = host.port();
    let grants = ["rebound.test", "six.test", "private.test"].map(|name| format!("{name}:{port}"));
    let house = House::with(&grants, |options| {
        options.resolver = Arc::new(Names(HashMap::from([
            ("rebound.test", "127.0.0.1"),
            ("six.test", "::ffff:127.0.0.1"),
            ("private.test", "192.168.0.1"),
        ])));
    })
    .await;
    for name in ["rebound.test", "six.test", "private.test"] {
        let told = format!("{name}:{port} refused: it leads to ");
        refused(&house, &format!("{name}:{port}"), &told).await;
        assert_eq!(house.socks(name.as_bytes(), port).await, NOT_ALLOWED);
    }
}

#[tokio::test]
async fn e23_the_proxy_leads_neither_to_itself_nor_to_the_loopback() {
    let house = house().await;
    let port = house.address.port();
    for host in ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "localhost."] {
        refused(&house, &format!("{host}:{port}"), "").await;
    }
    assert_eq!(house.socks(b"localhost", port).await, NOT_ALLOWED);
}

#[tokio::test]
async fn e23_an_empty_list_allows_nothing() {
    let house = House::new(&[]).await;
    refused(&house, "allowed.test:443", "allowed.test:443 refused").await;
    assert_eq!(house.socks(b"allowed.test", 443).await, NOT_ALLOWED);
}

#[tokio::test]
async fn what_else_the_protocols_have_is_refused() {
    let house = house().await;
    let target = b"\x03\x0callowed.test\x01\xbb";
    // BIND and UDP ASSOCIATE.
    for command in [2, 3, 9] {
        let mut client = house.connect().await;
        client
            .send([&[5, 1, 0, 5, command, 0][..], target].concat())
            .await;
        assert_eq!(client.exactly(4).await, [5, 0, 5, 7]);
    }
    // No way to say who one is that both know.
    let mut client = house.connect().await;
    client.send([5, 1, 1]).await;
    assert_eq!(client.exactly(2).await, [5, 0xff]);
    // The version before.
    let answer = house
        .answer(b"\x04\x01\x01\xbb\x00\x00\x00\x01\x00allowed.test\x00")
        .await;
    assert!(!answer.contains("\0Z"), "{answer}");
    for request in [
        "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET https://allowed.test/ HTTP/1.1\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let answer = house.answer(request).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{request}: {answer}");
    }
}
