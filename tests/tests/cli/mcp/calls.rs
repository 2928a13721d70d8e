//! Listing and calling.

use serde_json::{Value, json};

use super::client::{Client, eventually, runs, text};
use crate::support::Place;

fn names(list: &Value) -> Vec<&str> {
    let tools = list["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[test]
fn the_tools_are_listed_with_schemas_titles_and_hints() {
    let place = Place::new();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::spawn(&place, &[]);
        client.shake_hands(version, json!({}));
        let list = client.request("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap();
        let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
        let command = tool("exec_command");
        assert_eq!(command["title"], "Exec command");
        assert_eq!(command["inputSchema"]["type"], "object");
        assert_eq!(command["inputSchema"]["required"], json!(["cmd"]));
        assert_eq!(
            command["annotations"],
            json!({
                "title": "Exec command",
                "readOnlyHint": false,
                "destructiveHint": true,
                "openWorldHint": false,
            })
        );
        assert_eq!(tool("list")["annotations"]["readOnlyHint"], true);
        client.close();
    }
}

#[test]
fn tools_above_the_cap_are_neither_listed_nor_run() {
    let place = Place::new();
    place.config("surfaces:\n  mcp: read-only\n");
    // The flag only lowers.
    let mut client = Client::start(&place, &["--max-permission", "execute"]);
    let list = client.request("tools/list", json!({}));
    assert!(names(&list).contains(&"list"), "{list}");
    assert!(!names(&list).contains(&"exec_command"), "{list}");
    let result = client.call("exec_command", json!({"cmd": "touch made"}));
    assert_eq!(result["isError"], true);
    assert!(
        text(&result).starts_with("Tool call denied by policy.\n"),
        "{result}"
    );
    assert!(!place.workspace().join("made").exists());
    client.close();
}

#[test]
fn the_flags_of_a_session_choose_workspace_and_tools() {
    let place = Place::new();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("here.txt"), "x").unwrap();
    let folder = elsewhere.path().to_str().unwrap();
    let mut client = Client::start(&place, &["--workspace", folder, "--toolset", "coding"]);
    let result = client.call("list", json!({"path": "."}));
    assert!(text(&result).contains("here.txt"), "{result}");
    client.close();
}

#[test]
fn a_call_has_its_text_its_facts_and_a_trace_of_its_own() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    let result = client.call("exec_command", json!({"cmd": "echo one; exit 3"}));
    assert!(text(&result).starts_with("one\n"), "{result}");
    assert_eq!(result["_meta"]["floe/facts"]["exit_code"], 3);
    let result = client.call("list", json!({"path": "."}));
    assert_eq!(result["isError"], false, "{result}");
    let ended = client.close();
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(ended.messages.is_empty(), "{ended:?}");
    let trace = place.trace();
    let trace = trace.to_str().unwrap();
    place.floe(&["trace", "verify", trace]).expect(0);
    let shown = place.floe(&["trace", "show", trace, "--output", "json"]);
    let records = shown.json_lines();
    let of_type = |name: &str| {
        let found = records
            .iter()
            .filter(|record| record["payload"]["type"] == name);
        found.count()
    };
    assert_eq!(of_type("approval_decision"), 2);
    assert_eq!(records[0]["type"], "session_meta");
    assert!(records[0]["payload"]["model_id"].is_null());
    assert_eq!(records[0]["payload"]["source"], "mcp");
}

#[test]
fn a_connection_without_calls_leaves_nothing() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    client.request("tools/list", json!({}));
    assert_eq!(client.close().status, 0);
    let traces = place.state();
    assert!(
        traces
            .iter()
            .all(|path| path.extension().is_none_or(|kind| kind != "jsonl")),
        "{traces:?}"
    );
}

#[test]
fn output_is_told_as_it_comes_where_progress_was_asked_for() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    // The command goes on only when the test has seen what it wrote.
    let script = "echo first; until [ -e go ]; do sleep 0.05; done; echo second";
    let id = client.ask(
        "tools/call",
        json!({
            "name": "exec_command",
            "arguments": {"cmd": script},
            "_meta": {"progressToken": "token"},
        }),
    );
    let is_progress = |message: &Value| message["method"] == "notifications/progress";
    let first = client.wait_for("progress", is_progress);
    assert_eq!(first["params"]["progressToken"], "token");
    assert_eq!(first["params"]["message"], "first\n");
    place.workspace_file("go", "");
    let result = client.result(id);
    assert_eq!(text(&result), "first\nsecond\n");
    // All progress comes before the result.
    let mut steps = vec![first];
    steps.extend(client.passed.drain(..).filter(is_progress));
    let told: String = steps
        .iter()
        .filter_map(|step| step["params"]["message"].as_str())
        .collect();
    assert_eq!(told, "first\nsecond\n");
    let counts: Vec<f64> = steps
        .iter()
        .map(|step| step["params"]["progress"].as_f64().unwrap())
        .collect();
    assert!(
        counts.windows(2).all(|pair| pair[0] < pair[1]),
        "{counts:?}"
    );
    let ended = client.close();
    assert!(!ended.messages.iter().any(is_progress), "{ended:?}");
}

#[test]
fn a_flood_of_output_is_a_few_bounded_steps() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    let id = client.ask(
        "tools/call",
        json!({
            "name": "exec_command",
            "arguments": {"cmd": "yes 'a line of some length, again and again' | head -c 100000000"},
            "_meta": {"progressToken": 1},
        }),
    );
    let result = client.result(id);
    assert!(text(&result).contains("[output truncated"), "{result}");
    let bytes: usize = client
        .passed
        .iter()
        .map(|message| message.to_string().len())
        .sum();
    assert!(bytes < 1 << 20, "{bytes} bytes of progress");
    client.close();
}

#[test]
fn without_a_token_there_is_no_progress() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    client.call("exec_command", json!({"cmd": "echo x; sleep 0.3; echo y"}));
    assert!(client.passed.is_empty(), "{:?}", client.passed);
    client.close();
}

#[test]
fn eight_calls_run_at_once_and_each_answer_is_its_own() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    let ids: Vec<u64> = (0..8)
        .map(|number| {
            // None ends before all have started.
            let script = format!(
                "touch here-{number}; until [ $(ls here-* | wc -l) = 8 ]; do sleep 0.05; done; echo number {number}"
            );
            client.ask_call("exec_command", json!({"cmd": script}))
        })
        .collect();
    for (number, id) in ids.into_iter().enumerate().rev() {
        let result = client.result(id);
        assert_eq!(text(&result), format!("number {number}\n"));
    }
    client.close();
}

#[test]
fn mistakes_in_a_call_are_errors_of_the_tool_that_a_model_can_read() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    for (tool, arguments, words) in [
        ("no_such_tool", json!({}), "Unknown tool: no_such_tool"),
        (
            "exec_command",
            json!({}),
            "Missing required argument \"cmd\" for exec_command.",
        ),
        (
            "list",
            json!({"path": ".", "colour": 1}),
            "Unknown argument \"colour\" for list",
        ),
        ("list", json!({"path": "/etc"}), "is outside the Workspace."),
    ] {
        let result = client.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert!(text(&result).contains(words), "{result}");
    }
    let long = "x".repeat(5 << 20);
    let result = client.call("exec_command", json!({"cmd": long}));
    assert!(
        text(&result).starts_with("Arguments of exec_command are too long:"),
        "{result}"
    );
    // Parameters that are none of the method are the protocol's.
    for params in [
        json!({"name": "list", "arguments": "."}),
        json!({"arguments": {}}),
    ] {
        let response = client.request("tools/call", params);
        assert_eq!(response["error"]["code"], -32602, "{response}");
    }
    let response = client.request("tools/frobnicate", json!({}));
    assert_eq!(response["error"]["code"], -32601, "{response}");
    client.close();
}

#[test]
fn a_cancelled_call_ends_with_its_processes_and_is_not_answered() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    let script = "touch up; (sleep 3931.25 & sleep 3931.25); echo never";
    let id = client.ask_call("exec_command", json!({"cmd": script}));
    eventually("the command runs", || {
        place.workspace().join("up").exists() && runs("3931.25")
    });
    client.send(&json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": id, "reason": "enough"},
    }));
    eventually("its processes are gone", || !runs("3931.25"));
    // The connection goes on.
    let result = client.call("exec_command", json!({"cmd": "echo still here"}));
    assert_eq!(text(&result), "still here\n");
    let ended = client.close();
    assert!(
        ended.messages.iter().all(|message| message["id"] != id),
        "{ended:?}"
    );
    let shown = place.floe(&["trace", "show", place.trace().to_str().unwrap()]);
    assert!(shown.stdout.contains("aborted"), "{}", shown.stdout);
}

#[test]
fn a_command_that_was_left_running_is_reached_by_a_later_call_and_ends_with_the_connection() {
    let place = Place::new();
    let mut client = Client::start(&place, &[]);
    let result = client.call(
        "exec_command",
        json!({"cmd": "read line; echo got $line; sleep 3931.5", "yield_time_ms": 250}),
    );
    let text_of = text(&result).to_owned();
    let from = text_of.find("proc-").expect(&text_of);
    let process = &text_of[from..from + "proc-00000000".len()];
    let result = client.call(
        "input_command",
        json!({"process_id": process, "chars": "hello\n", "yield_time_ms": 2000}),
    );
    assert!(text(&result).contains("got hello"), "{result}");
    let ended = client.close();
    assert_eq!(ended.status, 0);
    assert!(
        ended.stderr.contains("was still running and was ended"),
        "{}",
        ended.stderr
    );
    eventually("it is gone", || !runs("3931.5"));
}
