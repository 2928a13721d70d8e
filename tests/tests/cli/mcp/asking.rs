//! A tool asks the person behind a client.

use serde_json::{Value, json};

use super::client::{Client, answer, question, text};
use crate::support::Place;

const TOOL: &str = "ask_clarification";

fn which() -> Value {
    json!({
        "header": "Database",
        "question": "Which\u{202e} database?",
        "options": [{"label": "sqlite", "description": "in memory"}, {"label": "postgres"}],
        "default": "sqlite",
    })
}

fn able(place: &Place) -> Client {
    Client::able_to(place, &[], json!({"elicitation": {}}))
}

#[test]
fn the_client_shows_a_form_and_the_call_returns_what_the_person_said() {
    let place = Place::new();
    let mut client = able(&place);
    let id = client.ask_call(TOOL, which());
    let asked = question(&mut client);
    assert_eq!(
        asked["params"]["message"],
        "ask_clarification asks you about: Database\n\n| Which\\u{202e} database?\n\n- sqlite (suggested): in memory\n- postgres"
    );
    let schema = &asked["params"]["requestedSchema"];
    assert_eq!(
        schema["properties"]["choice"]["enum"],
        json!(["sqlite", "postgres"])
    );
    assert_eq!(schema["properties"]["answer"]["type"], "string");
    assert!(!schema.to_string().contains("default"), "{schema}");
    // Other calls go on meanwhile.
    client.call("list", json!({}));
    let content = json!({"choice": "postgres", "answer": "version 17"});
    answer(
        &mut client,
        &asked,
        json!({"action": "accept", "content": content}),
    );
    let result = client.result(id);
    assert_eq!(
        text(&result),
        "The person chose: postgres\nThe person answered: version 17"
    );
    assert_eq!(
        result["structuredContent"],
        json!({"answer": "version 17", "selected": ["postgres"], "source": "user"})
    );
    client.close();
}

#[test]
fn several_can_be_chosen_where_the_question_says_so() {
    let place = Place::new();
    let mut client = able(&place);
    let mut several = which();
    several["multi_select"] = json!(true);
    several["allow_free_text"] = json!(false);
    let id = client.ask_call(TOOL, several);
    let asked = question(&mut client);
    let schema = &asked["params"]["requestedSchema"];
    assert_eq!(schema["properties"]["choice"]["type"], "array");
    assert_eq!(schema["required"], json!(["choice"]));
    assert!(schema["properties"]["answer"].is_null());
    let content = json!({"choice": ["postgres", "sqlite"]});
    answer(
        &mut client,
        &asked,
        json!({"action": "accept", "content": content}),
    );
    assert_eq!(
        text(&client.result(id)),
        "The person chose: sqlite, postgres"
    );
    client.close();
}

#[test]
fn what_is_no_answer_chooses_nothing() {
    let place = Place::new();
    let mut client = able(&place);
    for said in [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {}}),
        json!({"action": "accept", "content": {"choice": "mysql"}}),
        json!({"action": "accept", "content": {"choice": ["sqlite", "postgres"]}}),
    ] {
        let id = client.ask_call(TOOL, which());
        let asked = question(&mut client);
        answer(&mut client, &asked, said.clone());
        let result = client.result(id);
        assert_eq!(result["isError"], true, "{said}: {result}");
        assert!(
            text(&result).contains("Make a reasonable assumption"),
            "{result}"
        );
        assert!(!text(&result).contains("chose"), "{said}: {result}");
    }
    client.close();
}

#[test]
fn where_the_client_cannot_ask_the_model_is_told_to_state_an_assumption() {
    let place = Place::new();
    for capabilities in [json!({}), json!({"elicitation": {"url": {}}})] {
        let mut client = Client::able_to(&place, &[], capabilities);
        let result = client.call(TOOL, which());
        assert_eq!(result["isError"], true);
        for words in [
            "[CLARIFICATION NEEDED]",
            "does not support elicitation",
            "Make a reasonable assumption",
        ] {
            assert!(text(&result).contains(words), "{result}");
        }
        client.close();
    }
}

#[test]
fn a_question_is_taken_back_when_its_call_is_cancelled() {
    let place = Place::new();
    let mut client = able(&place);
    let id = client.ask_call(TOOL, which());
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
    client.close();
}

#[test]
fn a_client_of_the_newest_revision_is_answered_that_input_is_required_and_calls_again() {
    let place = Place::new();
    let mut client = Client::spawn(&place, &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let call = json!({"name": TOOL, "arguments": which(), "_meta": meta});
    let mut request = |params: &Value| {
        let id = client.ask("tools/call", params.clone());
        client.result(id)
    };
    let waiting = request(&call);
    assert_eq!(waiting["resultType"], "input_required", "{waiting}");
    let asked = &waiting["inputRequests"]["clarification"];
    assert_eq!(asked["method"], "elicitation/create", "{waiting}");
    let mut again = call.clone();
    again["requestState"] = waiting["requestState"].clone();
    // An answer to another question is none to this one.
    let accept = |content: Value| json!({"action": "accept", "content": content});
    again["inputResponses"] = json!({"approval": accept(json!({"decision": "allow once"}))});
    assert_eq!(request(&again)["resultType"], "input_required");
    again["inputResponses"] = json!({"clarification": accept(json!({"choice": "postgres"}))});
    let result = request(&again);
    assert_eq!(text(&result), "The person chose: postgres", "{result}");
    client.close();
    let trace = place.trace();
    place
        .floe(&["trace", "verify", trace.to_str().unwrap()])
        .expect(0);
}
