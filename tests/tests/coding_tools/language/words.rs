//! Through the tool to the server that the tests bring along, which is there on every machine.

use std::collections::BTreeMap;

use floe_language::{ServerSetting, ServerSettings};
use serde_json::json;

use super::lines;
use crate::rig::Rig;

fn rig(mode: &str) -> Rig {
    Rig::with(|options| {
        let setting = ServerSetting {
            enabled: true,
            command: vec![
                env!("CARGO_BIN_EXE_language-server-fixture").to_owned(),
                mode.to_owned(),
            ],
            languages: BTreeMap::from([("words".to_owned(), vec!["txt".to_owned()])]),
            ..ServerSetting::default()
        };
        options.language_servers = ServerSettings(BTreeMap::from([("words".to_owned(), setting)]));
    })
}

#[tokio::test]
async fn lsp_prints_places_with_their_lines() {
    let rig = rig("");
    rig.write("a.txt", "def area\nuse 😀 area\n");
    let found = lines(
        &rig,
        json!({"kind": "references", "file": "a.txt", "symbol": "area"}),
    )
    .await;
    assert_eq!(found, ["a.txt:1:5: def area", "a.txt:2:7: use 😀 area"]);
    let found = lines(
        &rig,
        json!({"kind": "definition", "file": "/workspace/a.txt", "line": 2, "character": 7}),
    )
    .await;
    assert_eq!(found, ["a.txt:1:5: def area"]);
    let found = lines(&rig, json!({"kind": "diagnostics", "file": "a.txt"})).await;
    assert_eq!(found, ["No problems found."]);
}

#[tokio::test]
async fn lsp_sees_what_the_other_tools_have_written() {
    let rig = rig("");
    rig.write("a.txt", "one\n");
    let diagnostics = || json!({"kind": "diagnostics", "file": "a.txt"});
    assert_eq!(lines(&rig, diagnostics()).await, ["No problems found."]);
    let written = rig
        .call("file_write", json!({"path": "a.txt", "content": "BAD\n"}))
        .await;
    written.completed();
    assert_eq!(
        lines(&rig, diagnostics()).await,
        ["a.txt:1:1: error: bad word"]
    );
}

#[tokio::test]
async fn lsp_tells_how_a_server_went_away() {
    let rig = rig("crash-at-start");
    rig.write("a.txt", "one\n");
    let asked = rig
        .call("lsp", json!({"kind": "diagnostics", "file": "a.txt"}))
        .await;
    let text = asked.failed();
    assert!(
        text.starts_with(
            "The language server words is gone: it exited with code 7. It wrote:\nno such luck"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn lsp_servers_cannot_write_the_workspace_nor_reach_the_network() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let rig = rig("break-out");
    let port = listener.local_addr().unwrap().port();
    rig.write("a.txt", format!("port{port}\n"));
    rig.write(".env", "SECRET=1");
    let found = lines(
        &rig,
        json!({"kind": "hover", "file": "a.txt", "line": 1, "character": 1}),
    )
    .await;
    assert_eq!(
        found,
        ["written: false; connected: false; cached: true; secret: \"\""]
    );
    assert!(!rig.path("planted").exists());
}
