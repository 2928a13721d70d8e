//! The shapes of what is printed for programs, the help, and the completion scripts.

use serde_json::Value;

use crate::support::{Place, ended};

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn tools_as_json_is_an_array_of_the_six_members() {
    let place = Place::new();
    let tools = place.floe(&["tools", "--output", "json"]).expect(0).json();
    let tools = tools.as_array().unwrap();
    assert!(!tools.is_empty());
    for tool in tools {
        // Where there is more to say of one, two further ones say it.
        let mut keys = keys(tool);
        keys.retain(|key| !["output_schema", "permission_varies"].contains(key));
        assert_eq!(
            keys,
            [
                "name",
                "description",
                "parameters",
                "permission",
                "capabilities",
                "origin"
            ]
        );
        assert_eq!(tool["parameters"]["type"], "object");
        assert_eq!(tool["origin"], "built-in");
    }
    let of = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!(of("exec_command")["permission"], "execute");
    assert_eq!(
        of("exec_command")["capabilities"],
        serde_json::json!(["commands"])
    );
    assert_eq!(of("list")["permission"], "read-only");
    assert_eq!(of("list")["capabilities"], serde_json::json!(["workspace"]));
    assert!(place.state().is_empty(), "listing leaves nothing behind");
}

#[test]
fn toolsets_select_tools() {
    let place = Place::new();
    let names = |toolset: &str| -> Vec<String> {
        let tools = place
            .floe(&["tools", "--toolset", toolset, "--output", "json"])
            .expect(0)
            .json();
        tools
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(!names("minimal").contains(&"list".to_owned()));
    assert!(!names("coding").contains(&"exec_command".to_owned()));
    assert!(names("all").len() >= names("default").len());
}

#[test]
fn doctor_as_json_names_every_layer_and_its_status_says_whether_commands_are_confined() {
    let place = Place::new();
    let ended = place.floe(&["doctor", "--output", "json"]);
    let doctor = ended.json();
    assert_eq!(
        keys(&doctor),
        [
            "ok",
            "minimum",
            "tier",
            "tiers",
            "unsafe_no_sandbox",
            "network",
            "allow_hosts",
            "tools"
        ]
    );
    let tiers = doctor["tiers"].as_array().unwrap();
    let layers = tiers.iter().flat_map(|tier| {
        assert_eq!(keys(tier), ["tier", "stands", "fault", "layers"]);
        tier["layers"].as_array().unwrap()
    });
    for layer in layers.chain(doctor["tools"].as_array().unwrap()) {
        assert_eq!(keys(layer), ["name", "active", "detail", "remedy"]);
    }
    assert_eq!(ended.status, i32::from(doctor["ok"] != true));
    assert!(place.state().is_empty(), "looking leaves nothing behind");
}

#[test]
fn a_call_as_json_ends_with_the_complete_output_and_its_facts() {
    let ended = Place::new().floe(&[
        "call",
        "exec_command",
        r#"{"cmd":"exit 3"}"#,
        "--output",
        "json",
    ]);
    let messages = ended.expect(1).json_lines();
    let output = messages
        .iter()
        .map(|message| &message["payload"])
        .find(|payload| payload["type"] == "tool_call_output")
        .unwrap();
    assert_eq!(output["stop_reason"], "failed");
    assert_eq!(output["facts"]["exit_code"], 3);
    assert_eq!(output["facts"]["confinement"], "native");
}

#[test]
fn the_reference_configuration_is_printed_and_is_sound() {
    let place = Place::new();
    let reference = place.floe(&["config"]);
    place.config(&reference.expect(0).stdout);
    place.floe(&["tools"]).expect(0);
}

#[test]
fn help_is_printed_with_examples_for_every_command() {
    let place = Place::new();
    for command in [
        &["run"][..],
        &["call"],
        &["tools"],
        &["trace", "list"],
        &["trace", "show"],
        &["trace", "verify"],
        &["doctor"],
        &["config"],
        &["completions"],
        &[],
    ] {
        let ended = place.floe(&[command, &["--help"]].concat());
        assert!(
            ended.expect(0).stdout.contains("Examples:"),
            "{command:?}:\n{}",
            ended.stdout
        );
    }
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = Place::new().floe(&["completions", shell]);
        assert!(ended.expect(0).stdout.contains("max-permission"), "{shell}");
    }
}

#[test]
fn a_list_whose_reader_went_away_ends_quietly() {
    let place = Place::new();
    let mut child = place.spawn(&mut place.command(&["tools"]));
    drop(child.stdout.take());
    let ended = crate::support::ended(child.wait_with_output().unwrap());
    assert_eq!(ended.expect(0).stderr, "");
}

#[test]
fn what_is_no_terminal_gets_no_colour() {
    let place = Place::new();
    for command in [&["doctor"][..], &["tools"], &["call", "list", "{}"]] {
        let ended = place.floe(command);
        assert!(
            !ended.stdout.contains('\x1b') && !ended.stderr.contains('\x1b'),
            "{command:?}"
        );
    }
}

#[test]
fn a_tool_above_the_cap_is_not_listed() {
    let place = Place::new();
    let listed = place.floe(&["tools", "--max-permission", "read-only", "--output", "json"]);
    let listed = listed.expect(0).json();
    let tools = listed.as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "file_read"));
    let below = |tool: &serde_json::Value| {
        tool["permission"] == "none" || tool["permission"] == "read-only"
    };
    assert!(tools.iter().all(below), "{listed}");
}

#[test]
fn results_that_cannot_be_written_are_a_failure_and_a_reader_that_left_is_none() {
    let place = Place::new();
    for arguments in [
        &["config"][..],
        &["tools"],
        &["completions", "bash"],
        &["call", "list", "{}"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let mut command = place.command(arguments);
        let ended = ended(command.stdout(full.unwrap()).output().unwrap());
        ended.expect(1);
        assert!(
            ended.stderr.contains("cannot be written"),
            "{}",
            ended.stderr
        );
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = place.command(&["config"]);
    ended(command.stdout(writer).output().unwrap()).expect(0);
}
