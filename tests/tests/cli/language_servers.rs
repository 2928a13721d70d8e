//! `lsp` through the binary: when it is listed, and what is said where no server is. Its page in the book has calls that a server answers.

use crate::support::Place;

#[test]
fn lsp_is_listed_unless_the_environment_switches_it_off() {
    let place = Place::new();
    let lists = |value: Option<&str>| {
        let mut command = place.command(&["tools", "--output", "json"]);
        if let Some(value) = value {
            command.env("FLOE_LSP_ENABLED", value);
        }
        let output = command.output().unwrap();
        let tools: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        tools.iter().any(|tool| tool["name"] == "lsp")
    };
    for on in [
        None,
        Some("1"),
        Some("true"),
        Some("TRUE"),
        Some("yes"),
        Some("on"),
        Some(" 1 "),
    ] {
        assert!(lists(on), "{on:?}");
    }
    for off in ["0", "false", "FALSE", "no", "off", " off "] {
        assert!(!lists(Some(off)), "{off:?}");
    }
}

#[test]
fn a_tool_that_is_switched_off_is_unknown() {
    let place = Place::new();
    place.workspace_file("a.py", "x = 1\n");
    let mut command = place.command(&[
        "call",
        "lsp",
        r#"{"kind":"hover","file":"a.py","symbol":"x"}"#,
    ]);
    let output = command.env("FLOE_LSP_ENABLED", "0").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim_end(),
        "Unknown tool: lsp"
    );
}

#[test]
fn without_a_server_the_commands_that_were_looked_for_are_named() {
    let place = Place::new();
    place.workspace_file("a.go", "package a\n");
    let mut command = place.command(&[
        "call",
        "lsp",
        r#"{"kind":"document_symbols","file":"a.go"}"#,
        "--output",
        "json",
    ]);
    let output = command.env("PATH", place.workspace()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("gopls"), "{text}");
}
