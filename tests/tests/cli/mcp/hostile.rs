//! Lines that no client should write.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, text};
use crate::support::Place;

/// The next answer without an id.
fn complaint(client: &mut Client) -> Value {
    client.wait_for("an answer to nobody", |message| {
        message.get("error").is_some() && message["id"].is_null()
    })
}

fn still_serves(client: &mut Client) {
    let result = client.call("list", json!({"path": "."}));
    assert_eq!(result["isError"], false, "{result}");
}

#[test]
fn noise_is_answered_as_such_and_the_connection_goes_on() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    for noise in [
        &b"hello\n"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":\n",
        b"\xff\xfe\x00\x01\n",
        b"[]\n",
        b"\"text\"\n",
        b"nul\x00l\n",
    ] {
        client.write(noise);
        let answer = complaint(&mut client);
        let code = answer["error"]["code"].as_i64().unwrap();
        assert!([-32700, -32600].contains(&code), "{answer}");
    }
    client.write(b"\n \r\n\t\n");
    client.write(
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard-of\",\"params\":{\"a\":[]}}\n",
    );
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":77777,\"result\":{}}\n");
    client.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":4242}}\n");
    still_serves(&mut client);
    assert!(client.passed.is_empty(), "{:?}", client.passed);
    let ended = client.close();
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
}

#[test]
fn a_line_of_twenty_megabytes_is_passed_over_without_being_kept() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    still_serves(&mut client);
    let peak = |client: &Client| {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", client.child.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmHWM:"))
            .unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let before = peak(&client);
    let line = vec![b'x'; 20 << 20];
    for _ in 0..5 {
        client.write(&line);
    }
    client.write(b"\n");
    let answer = complaint(&mut client);
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    still_serves(&mut client);
    // 100 MiB went by; a buffer of 16 MiB that grew by doubling, and what a call needs, is what may stay.
    let grown = peak(&client) - before;
    assert!(grown < 64 << 10, "{grown} KiB more");
    client.close();
}

#[test]
fn a_request_that_nests_too_deep_is_answered_by_its_id() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    for depth in [200, 100_000] {
        let deep = format!(
            "{}{}",
            "{\"a\":".repeat(depth),
            "1".to_owned() + &"}".repeat(depth)
        );
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/call\",\"params\":{{\"name\":\"list\",\"arguments\":{deep}}}}}\n",
            9000 + depth
        );
        client.write(line.as_bytes());
        let response = client.response(9000 + depth as u64);
        assert_eq!(response["error"]["code"], -32600, "{response}");
    }
    // Less deep, it is the gate's matter.
    let deep = "[".repeat(100) + &"]".repeat(100);
    let deep: Value = serde_json::from_str(&deep).unwrap();
    let result = client.call("list", json!({"path": deep}));
    assert_eq!(result["isError"], true, "{result}");
    assert!(text(&result).contains("list"), "{result}");
    client.close();
}

#[test]
fn the_end_in_the_middle_of_a_line_is_an_orderly_end() {
    for beginning in [
        &b""[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth",
        b"noise without end",
    ] {
        let place = Place::new();
        let mut client = Client::spawn(&place, &[]);
        client.write(beginning);
        let ended = client.close();
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
        let mut client = Client::start(&place, &[]);
        still_serves(&mut client);
        client.write(beginning);
        let ended = client.close();
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    }
}

#[test]
fn a_client_that_does_not_begin_as_one_is_told_on_standard_error() {
    let place = Place::new();
    let mut client = Client::spawn(&place, &[]);
    // A request before the handshake gets its answer.
    let response = client.request("tools/list", json!({}));
    assert!(response.get("error").is_some(), "{response}");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let ended = client.ended();
    assert_eq!(ended.status, 1);
    assert!(
        ended.stderr.contains("did not begin with `initialize`"),
        "{}",
        ended.stderr
    );
}

#[test]
fn more_calls_at_once_than_there_is_room_for_are_refused_and_none_is_lost() {
    let place = Place::new();
    let can_ask = json!({"elicitation": {}});
    let mut client = Client::able_to(&place, &["--approve", "always-ask"], can_ask);
    // The first waits for the person, and the rest behind it.
    let ids: Vec<u64> = (0..300)
        .map(|_| client.ask_call("list", json!({"path": "."})))
        .collect();
    let question = client.wait_for("a question", |message| {
        message["method"] == "elicitation/create"
    });
    let refused = |message: &Value| message.to_string().contains("Too many calls at once");
    for _ in 256..300 {
        let refusal = client.wait_for("a refusal", |message| {
            refused(message) && ids.iter().any(|id| message["id"] == *id)
        });
        assert_eq!(refusal["result"]["isError"], true);
    }
    // A no holds for the same calls behind it.
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
    for _ in 0..256 {
        let denial = client.wait_for("a denial", |message| message.get("result").is_some());
        assert_eq!(text(&denial["result"]), "Tool call denied by user.");
    }
    assert!(client.passed.is_empty(), "{:?}", client.passed);
    client.close();
}

#[test]
fn a_client_that_does_not_read_does_not_keep_it() {
    let place = Place::new();
    for number in 0..20 {
        place.workspace_file(&format!("{number:0>200}"), "");
    }
    let mut command = place.command(&["mcp"]);
    let mut child = place.spawn(command.stdin(std::process::Stdio::piped()));
    let mut stdin = child.stdin.take().unwrap();
    let hello = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    });
    writeln!(stdin, "{hello}").unwrap();
    writeln!(
        stdin,
        "{}",
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    )
    .unwrap();
    for id in 1..=100 {
        let list = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
        writeln!(stdin, "{list}").unwrap();
    }
    drop(stdin);
    let until = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until, "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
}
