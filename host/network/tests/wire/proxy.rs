//! How the proxy carries what it lets through, and what bounds a hostile client.

use std::io::ErrorKind;
use std::time::Duration;

use floe_network::{HostGrants, ProxyLimits};
use tokio::io::AsyncWriteExt;

use crate::support::{Client, House, LONG, echo, shouter, web};

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways_and_counts_them() {
    let house = House::new(&[format!("a.test={}", echo().await)]).await;
    let mut client = house.connect().await;
    // Bytes that come with the request are the tunnel's first.
    client
        .send("CONNECT a.test:443 HTTP/1.1\r\n\r\nhello")
        .await;
    let head = "HTTP/1.1 200 Connection Established\r\n\r\n";
    assert_eq!(
        client.exactly(head.len() + 5).await,
        format!("{head}hello").as_bytes()
    );
    let block = vec![7; 300_000];
    client.send(&block[..100_000]).await;
    assert_eq!(client.exactly(100_000).await, block[..100_000]);
    drop(client);
}

#[tokio::test]
async fn a_side_that_has_said_its_last_still_gets_the_answer() {
    let house = House::new(&[format!("a.test={}", shouter().await)]).await;
    let mut client = house.connect().await;
    client.tunnel("a.test:443").await;
    client.send("all of it").await;
    client.0.shutdown().await.unwrap();
    assert_eq!(client.rest().await, "ALL OF IT");
}

#[tokio::test]
async fn a_tunnel_of_socks_carries_bytes_too() {
    let house = House::new(&[format!("a.test={}", shouter().await)]).await;
    let mut client = house.connect().await;
    client.send([&[5, 2, 0, 2][..]].concat()).await;
    assert_eq!(
        client.exactly(2).await,
        [5, 2],
        "who can show a password is asked for it"
    );
    client.send([1, 0, 0]).await;
    assert_eq!(client.exactly(2).await, [1, 0], "and may have none");
    client
        .send([&[5, 1, 0, 3, 6][..], b"a.test", &[1, 187]].concat())
        .await;
    assert_eq!(client.exactly(10).await[..2], [5, 0]);
    client.send("all of it").await;
    client.0.shutdown().await.unwrap();
    assert_eq!(client.rest().await, "ALL OF IT");
}

#[tokio::test]
async fn a_plain_request_goes_to_the_host_that_was_checked_and_no_second_one_behind_it() {
    let house = House::new(&[format!("a.test:80={}", web().await)]).await;
    let answer = house
        .answer(concat!(
            "POST http://A.test/x HTTP/1.1\r\nHost: inside.test\r\nContent-Length: 2\r\n\r\nhi",
            "GET http://b.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n"
        ))
        .await;
    let seen = answer.split_once("\r\n\r\n").unwrap().1;
    assert_eq!(
        seen,
        "POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    );
}

#[tokio::test]
async fn a_request_in_chunks_is_sent_as_it_was_understood() {
    let house = House::new(&[format!("a.test:80={}", web().await)]).await;
    let head = "PUT http://a.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = house
        .answer(format!("{head}02\r\nhi\r\n0\r\n\r\nmore"))
        .await;
    assert!(answer.ends_with("\r\n\r\n2\r\nhi\r\n0\r\n\r\n"), "{answer}");
    let answer = house.answer(format!("{head}2;x\r\nhi\r\n0\r\n\r\n")).await;
    assert_eq!(answer, "", "what is no chunk ends the connection");
}

fn basic(house: &House, token: &floe_network::Token) -> String {
    use base64::Engine;
    let variables = house.proxy.environment(Some(token));
    let (_, url) = variables
        .iter()
        .find(|(name, _)| name == "https_proxy")
        .unwrap();
    let user = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('@')
        .unwrap()
        .0;
    base64::engine::general_purpose::STANDARD.encode(user)
}

#[tokio::test]
async fn a_token_gives_further_hosts_to_who_shows_it_for_as_long_as_it_lives() {
    let (one, two) = (echo().await, echo().await);
    let house = House::new(&[format!("one.test={one}")]).await;
    let token = house
        .proxy
        .admit(&HostGrants::parse(&[format!("two.test={two}")]).unwrap())
        .unwrap();
    let shown = basic(&house, &token);
    let request = |host: &str, shown: &str| {
        format!("CONNECT {host}:443 HTTP/1.1\r\nProxy-Authorization: Basic {shown}\r\n\r\n")
    };
    let connect = async |host: &str| -> Client {
        let mut client = house.connect().await;
        client.send(request(host, &shown)).await;
        assert_eq!(client.exactly(12).await, b"HTTP/1.1 200");
        client
    };
    connect("one.test").await;
    let mut open = connect("two.test").await;
    let without = house.answer("CONNECT two.test:443 HTTP/1.1\r\n\r\n").await;
    assert!(without.starts_with("HTTP/1.1 403"), "{without}");
    let guessed = house.answer(request("two.test", "ZmxvZTox")).await;
    assert!(guessed.starts_with("HTTP/1.1 407"), "{guessed}");

    drop(token);
    open.rest().await;
    for host in ["one.test", "two.test"] {
        let late = house.answer(request(host, &shown)).await;
        assert!(late.starts_with("HTTP/1.1 407"), "{late}");
    }
    // The same with a password of SOCKS5.
    let mut client = house.connect().await;
    client
        .send([&[5, 1, 2, 1, 4][..], b"floe", &[1], b"1"].concat())
        .await;
    assert_eq!(client.exactly(4).await, [5, 2, 1, 1]);
}

#[tokio::test]
async fn the_end_of_the_proxy_is_the_end_of_every_connection() {
    let house = House::new(&[format!("a.test={}", echo().await)]).await;
    let mut open = house.connect().await;
    open.tunnel("a.test:443").await;
    let mut begun = house.connect().await;
    begun.send("CONNECT").await;
    house.proxy.close();
    open.rest().await;
    begun.rest().await;
    assert!(!house.proxy.serves());
    let address = house.address;
    let closed = async || tokio::net::TcpStream::connect(address).await.is_err();
    let wait = async {
        while !closed().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(LONG, wait)
        .await
        .expect("nothing listens any more");
}

async fn impatient(grants: &[String], limits: ProxyLimits) -> House {
    House::with(grants, |options| options.limits = limits).await
}

#[tokio::test]
async fn a_client_that_never_says_what_it_wants_is_let_go() {
    let limits = ProxyLimits {
        request: Duration::from_millis(300),
        ..ProxyLimits::default()
    };
    let house = impatient(&[], limits).await;
    for begin in [
        &b""[..],
        b"C",
        b"GET http://a.test/ HTTP/1.1\r\nA: b\r\n",
        b"\x05",
        b"\x05\x01\x00\x05",
    ] {
        let mut client = house.connect().await;
        client.send(begin).await;
        client.rest().await;
    }
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let limits = ProxyLimits {
        idle: Duration::from_millis(300),
        ..ProxyLimits::default()
    };
    let host = echo().await;
    let house = impatient(
        &[format!("a.test={host}"), format!("a.test:80={host}")],
        limits,
    )
    .await;
    let mut client = house.connect().await;
    client.tunnel("a.test:443").await;
    assert_eq!(client.rest().await, "");
    // A body that never comes.
    let mut client = house.connect().await;
    client
        .send("PUT http://a.test/ HTTP/1.1\r\nContent-Length: 5\r\n\r\n")
        .await;
    client.rest().await;
}

#[tokio::test]
async fn so_many_connections_are_served_at_once_and_the_next_waits_in_line() {
    let limits = ProxyLimits {
        connections: 2,
        ..ProxyLimits::default()
    };
    let house = impatient(&[format!("a.test={}", echo().await)], limits).await;
    let mut first = house.connect().await;
    first.tunnel("a.test:443").await;
    let mut second = house.connect().await;
    second.tunnel("a.test:443").await;
    let mut third = house.connect().await;
    third.send("CONNECT a.test:443 HTTP/1.1\r\n\r\n").await;
    // What was served beside the two would have been answered by the time that one of them is.
    second.send("ping").await;
    assert_eq!(second.exactly(4).await, b"ping");
    let early = third.0.try_read(&mut [0; 1]);
    assert_eq!(early.unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(first);
    assert_eq!(third.exactly(12).await, b"HTTP/1.1 200");
}

#[tokio::test]
async fn a_head_without_an_end_is_cut_off_at_its_bound() {
    let house = House::new(&[]).await;
    let answer = house
        .answer(format!("GET http://a.test/{} ", "a".repeat(64 * 1024)))
        .await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn whatever_bytes_come_the_next_client_is_served() {
    let house = House::new(&[format!("a.test={}", echo().await)]).await;
    let mut seed = 0x9e37_79b9_u32;
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..200)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            })
            .collect();
        let start = [&b"\x05"[..], b"CONNECT ", b"GET http://", b""][seed as usize % 4];
        let mut client = house.connect().await;
        let _ = client.0.write_all(&[start, &bytes].concat()).await;
    }
    house.connect().await.tunnel("a.test:443").await;
}

#[tokio::test]
async fn a_host_that_is_not_there_is_told_apart_from_one_that_is_refused() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let house = House::new(&[format!("gone.test={free}"), "unknown.test".into()]).await;
    let answer = house.answer("CONNECT gone.test:443 HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway"), "{answer}");
    let answer = house
        .answer("CONNECT unknown.test:443 HTTP/1.1\r\n\r\n")
        .await;
    assert!(answer.starts_with("HTTP/1.1 502 Unknown Host"), "{answer}");
    assert_eq!(house.socks(b"gone.test", 443).await, 5);
    assert_eq!(house.socks(b"unknown.test", 443).await, 4);
    assert!(house.refused.lines().is_empty());
}
