//! Subagents of a run and of a single call.

use crate::support::Place;

const DELEGATED: &str = "turns:
  - tool_calls:
      - {name: spawn_subagent, arguments: {prompt: Which files are there?}}
  - expect: ['^notes\\.txt\\n\\[task_id: subagent-[0-9a-f]{8}; ']
    text: The subagent has looked.
subagents:
  - turns:
      - tool_calls: [{name: list}]
      - expect: ['notes\\.txt']
        text: notes.txt
";

#[test]
fn a_run_delegates_and_both_traces_verify() {
    let place = Place::new();
    place.workspace_file("notes.txt", "");
    let script = place.file("script.yaml", DELEGATED);
    let model = format!("script:{}", script.display());
    let ended = place.floe(&[
        "run",
        "-m",
        "Go.",
        "--model",
        &model,
        "--toolset",
        "coding",
        "--output",
        "json",
    ]);
    ended.expect(0);
    let lines = ended.json_lines();
    let of_child: Vec<_> = lines
        .iter()
        .filter_map(|line| line["origin"][0].as_str())
        .collect();
    let child = of_child.first().expect("a child's messages are streamed");
    let told: Vec<_> = lines
        .iter()
        .filter(|line| line["payload"]["type"] == "subagent")
        .map(|line| line["payload"]["state"].as_str().unwrap())
        .collect();
    assert_eq!(told, ["running", "idle", "finished"]);
    place.floe(&["trace", "verify", child]).expect(0);
    let hash = lines
        .iter()
        .rev()
        .find_map(|line| line["payload"]["hash"].as_str())
        .unwrap();
    place
        .floe(&["trace", "verify", child, "--head", hash])
        .expect(0);
}

#[test]
fn a_single_call_delegates_to_the_model_that_is_set_and_no_argument_opens_a_file() {
    let place = Place::new();
    let script = place.file("child.yaml", "turns: [{text: Done.}]");
    let named = format!("script:{}", script.display());
    let call = ["call", "spawn_subagent", r#"{"prompt":"x"}"#];
    let mut command = place.command(&call);
    command.env("FLOE_MODEL", &named);
    let ended = crate::support::ended(command.output().unwrap());
    ended.expect(0);
    assert!(ended.stdout.starts_with("Done.\n"), "{}", ended.stdout);
    let ended = place.floe(&call);
    ended.expect(1);
    assert!(ended.stdout.contains("FLOE_MODEL"), "{}", ended.stdout);
    let arguments = serde_json::json!({"prompt": "x", "model_id": named}).to_string();
    let ended = place.floe(&["call", "spawn_subagent", &arguments]);
    ended.expect(1);
    assert!(
        ended.stdout.contains("a file of this machine"),
        "{}",
        ended.stdout
    );
}
