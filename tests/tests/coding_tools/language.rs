//! `lsp` (coding-tools 1.18, 3.10, 4.3): its arguments, what it says where there is no server, and real answers of real servers, each
//! within the walls that the host builds around it.

mod clangd;
mod pyright;
mod words;

use std::time::Instant;

use floe_language::ServerSettings;
use serde_json::{Value, json};

use crate::rig::{Answer, LONG, Rig, definition};

/// Asks, again as long as the server has not started or read the project: this machine may be busy.
async fn ask(rig: &Rig, arguments: Value) -> Answer {
    let limit = Instant::now() + LONG * 2;
    loop {
        let answer = rig.call("lsp", arguments.clone()).await;
        let is_early = ["in time", "still starting", "still reading"]
            .iter()
            .any(|words| answer.text.contains(words));
        if !is_early || Instant::now() > limit {
            return answer;
        }
    }
}

/// The lines of an answer, without what the machine adds behind them.
async fn lines(rig: &Rig, arguments: Value) -> Vec<String> {
    let answer = ask(rig, arguments).await;
    answer.completed().lines().map(str::to_owned).collect()
}

/// Whether a server that a test is about is there; the project's own checks insist on it.
fn is_there(what: &str, found: bool) -> bool {
    assert!(
        found || std::env::var("CI").as_deref() != Ok("true"),
        "{what} is missing; run: make test"
    );
    found
}

#[tokio::test]
async fn lsp_describes_its_arguments() {
    let definition = definition("lsp");
    let schema = &definition.parameters;
    assert_eq!(schema["required"], json!(["kind", "file"]));
    assert_eq!(
        schema["properties"]["kind"]["enum"],
        json!([
            "definition",
            "references",
            "hover",
            "completion",
            "document_symbols",
            "workspace_symbols",
            "diagnostics"
        ])
    );
    assert_eq!(definition.permission, floe_protocol::Permission::ReadOnly);
}

#[tokio::test]
async fn lsp_without_a_server_is_unsupported_and_names_the_command_it_looked_for() {
    let rig = Rig::with(|options| {
        let pyright = options.language_servers.0.get_mut("pyright").unwrap();
        pyright.command = vec!["no-such-server".to_owned()];
    });
    rig.write("a.py", "x = 1\n");
    let asked = rig
        .call("lsp", json!({"kind": "diagnostics", "file": "a.py"}))
        .await;
    let text = asked.failed();
    assert!(text.starts_with("unsupported: "), "{text}");
    assert!(
        text.contains("looked for `no-such-server` on PATH"),
        "{text}"
    );
    assert!(!text.contains("not yet implemented"), "{text}");
}

#[tokio::test]
async fn lsp_without_a_language_for_the_file_is_unsupported() {
    let rig = Rig::with(|options| options.language_servers = ServerSettings::default());
    rig.write("notes.zig", "x");
    let asked = rig
        .call("lsp", json!({"kind": "diagnostics", "file": "notes.zig"}))
        .await;
    let text = asked.failed();
    let expected = "unsupported: No language server is set up for \"notes.zig\".";
    assert!(text.starts_with(expected), "{text}");
}

#[tokio::test]
async fn lsp_refuses_arguments_that_contradict_each_other() {
    let rig = Rig::new();
    for (arguments, expected) in [
        (
            json!({"kind": "definition", "file": "a.c", "line": 1, "character": 1, "symbol": "x"}),
            "definition takes either `line` and `character` or `symbol`, not both.",
        ),
        (
            json!({"kind": "hover", "file": "a.c", "line": 1}),
            "`line` needs `character` beside it.",
        ),
        (
            json!({"kind": "diagnostics", "file": "a.c", "symbol": "x"}),
            "diagnostics is about the whole file: leave `line`, `character` and `symbol` out.",
        ),
        (
            json!({"kind": "hover", "file": "a.c", "line": 0, "character": 1}),
            "Invalid argument \"/line\" for lsp: ",
        ),
        (
            json!({"kind": "rename", "file": "a.c"}),
            "Invalid argument \"/kind\" for lsp: ",
        ),
    ] {
        let answer = rig.call("lsp", arguments).await;
        assert!(answer.failed().contains(expected), "{answer:?}");
    }
}
