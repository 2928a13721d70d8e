//! Who is asked, and how.

use serde_json::{Value, json};

use super::client::{Client, answer, eventually, question, text};
use crate::support::Place;

const ALWAYS: [&str; 2] = ["--approve", "always-ask"];

#[test]
fn a_client_that_can_ask_is_asked_and_only_a_word_that_allows_allows() {
    let place = Place::new();
    let mut client = Client::able_to(&place, &ALWAYS, json!({"elicitation": {}}));
    let mut number = 0;
    let mut ask = |client: &mut Client, said: Value| {
        number += 1;
        let id = client.ask_call(
            "exec_command",
            json!({"cmd": format!("echo number {number}")}),
        );
        let asked = question(client);
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("| echo number {number}")),
            "{message}"
        );
        assert_eq!(
            asked["params"]["requestedSchema"]["properties"]["decision"]["default"],
            "deny"
        );
        answer(client, &asked, said);
        client.result(id)
    };
    let accept = |word: &str| json!({"action": "accept", "content": {"decision": word}});
    let result = ask(&mut client, accept("allow once"));
    assert_eq!(text(&result), "number 1\n");
    for refusal in [
        accept("deny"),
        json!({"action": "accept", "content": {}}),
        json!({"action": "accept"}),
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
    ] {
        let result = ask(&mut client, refusal.clone());
        assert_eq!(text(&result), "Tool call denied by user.", "{refusal}");
        assert_eq!(result["isError"], true);
    }
    let result = ask(&mut client, accept("allow for this connection"));
    assert_eq!(text(&result), "number 7\n");
    // The same call is not asked about again.
    let result = client.call("exec_command", json!({"cmd": "echo number 7"}));
    assert_eq!(text(&result), "number 7\n");
    client.close();
}

#[test]
fn a_client_that_answers_with_an_error_allows_nothing() {
    let place = Place::new();
    let mut client = Client::able_to(&place, &ALWAYS, json!({"elicitation": {"form": {}}}));
    let id = client.ask_call("exec_command", json!({"cmd": "touch made"}));
    let asked = question(&mut client);
    client.send(&json!({
        "jsonrpc": "2.0",
        "id": asked["id"],
        "error": {"code": -32603, "message": "no window"},
    }));
    let result = client.result(id);
    assert_eq!(text(&result), "Tool call denied by user.");
    assert!(!place.workspace().join("made").exists());
    client.close();
}

#[test]
fn a_question_is_taken_back_when_its_call_is_cancelled() {
    let place = Place::new();
    let mut client = Client::able_to(&place, &ALWAYS, json!({"elicitation": {}}));
    let id = client.ask_call("exec_command", json!({"cmd": "touch made"}));
    let asked = question(&mut client);
    client.send(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": id},
    }));
    let taken_back = client.wait_for("that it is taken back", |message| {
        message["method"] == "notifications/cancelled"
    });
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    answer(
        &mut client,
        &asked,
        json!({"action": "accept", "content": {"decision": "allow once"}}),
    );
    client.request("tools/list", json!({}));
    client.close();
    assert!(!place.workspace().join("made").exists());
}

#[test]
fn where_the_client_cannot_ask_the_call_is_denied_with_the_way_to_allow_it() {
    let place = Place::new();
    for capabilities in [json!({}), json!({"elicitation": {"url": {}}})] {
        let mut client = Client::able_to(&place, &ALWAYS, capabilities);
        let result = client.call("exec_command", json!({"cmd": "touch made"}));
        assert_eq!(result["isError"], true);
        assert_eq!(text(&result), "Tool call denied by user.");
        let remark = result["content"][1]["text"].as_str().unwrap();
        assert!(remark.contains("--approve allow-all"), "{remark}");
        client.close();
    }
    assert!(!place.workspace().join("made").exists());
    let outside = tempfile::tempdir().unwrap();
    let mut client = Client::start(&place, &[]);
    let widen = json!({"reason": "to read it", "read": [outside.path()]});
    let result = client.call("exec_command", json!({"cmd": "touch made", "widen": widen}));
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("--allow-read"), "{result}");
    assert_eq!(result["content"].as_array().unwrap().len(), 1, "{result}");
    client.close();
    assert!(!place.workspace().join("made").exists());
}

/// What a request of the revision without a handshake carries.
fn stateless(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

#[test]
fn a_client_of_the_newest_revision_is_answered_that_input_is_required_and_calls_again() {
    let place = Place::new();
    let mut client = Client::spawn(&place, &ALWAYS);
    let meta = stateless(json!({"elicitation": {"form": {}}}));
    let call =
        |cmd: &str| json!({"name": "exec_command", "arguments": {"cmd": cmd}, "_meta": meta});
    let again = |cmd: &str, waiting: &Value, said: Value| {
        let mut call = call(cmd);
        call["requestState"] = waiting["requestState"].clone();
        call["inputResponses"] = json!({"approval": said});
        call
    };
    let mut request = |params: Value| {
        let id = client.ask("tools/call", params);
        client.result(id)
    };
    let waiting = request(call("echo one"));
    assert_eq!(waiting["resultType"], "input_required", "{waiting}");
    let asked = &waiting["inputRequests"]["approval"];
    assert_eq!(asked["method"], "elicitation/create");
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains("| echo one"), "{message}");
    let allow = json!({"action": "accept", "content": {"decision": "allow once"}});
    // Another call cannot use the answer.
    let other = request(again("touch made", &waiting, allow.clone()));
    assert_eq!(other["isError"], true, "{other}");
    // A client that says nothing is asked again.
    let mut silent = again("echo one", &waiting, json!({}));
    silent["inputResponses"] = json!({});
    assert_eq!(request(silent)["resultType"], "input_required");
    let result = request(again("echo one", &waiting, allow.clone()));
    assert_eq!(text(&result), "one\n");
    // The answer was for once.
    let gone = request(again("echo one", &waiting, allow));
    assert_eq!(gone["isError"], true, "{gone}");
    let waiting = request(call("touch made"));
    let result = request(again("touch made", &waiting, json!({"action": "decline"})));
    assert_eq!(text(&result), "Tool call denied by user.");
    assert!(!place.workspace().join("made").exists());
    client.close();
    let trace = place.trace();
    place
        .floe(&["trace", "verify", trace.to_str().unwrap()])
        .expect(0);
}

#[test]
fn a_call_that_waits_for_the_person_ends_with_the_connection() {
    let place = Place::new();
    let mut client = Client::able_to(&place, &ALWAYS, json!({"elicitation": {}}));
    client.ask_call("exec_command", json!({"cmd": "touch made"}));
    question(&mut client);
    assert_eq!(client.close().status, 0);
    let mut client = Client::spawn(&place, &ALWAYS);
    let meta = stateless(json!({"elicitation": {}}));
    let params = json!({"name": "exec_command", "arguments": {"cmd": "touch made"}, "_meta": meta});
    let id = client.ask("tools/call", params);
    assert_eq!(client.result(id)["resultType"], "input_required");
    assert_eq!(client.close().status, 0);
    assert!(!place.workspace().join("made").exists());
}

#[test]
fn reaching_beyond_the_sandbox_is_a_question_of_its_own() {
    let place = Place::new();
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("file.txt");
    std::fs::write(&file, "outside").unwrap();
    let mut client = Client::able_to(&place, &[], json!({"elicitation": {}}));
    let script = format!("cat {}; touch ran", file.display());
    let arguments = json!({
        "cmd": script,
        "widen": {"reason": "to read it", "read": [outside.path()]},
    });
    let id = client.ask_call("exec_command", arguments);
    let asked = question(&mut client);
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(
        message.contains("asks to reach beyond the sandbox"),
        "{message}"
    );
    answer(
        &mut client,
        &asked,
        json!({"action": "accept", "content": {"decision": "allow once"}}),
    );
    let result = client.result(id);
    assert!(text(&result).starts_with("outside"), "{result}");
    eventually("it ran", || place.workspace().join("ran").exists());
    client.close();
}
