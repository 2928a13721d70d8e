//! clangd over a small project in C: publishes diagnostics, reads the project in the background.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{ask, is_there, lines};
use crate::rig::{LONG, Rig};

const HEADER: &str =
    "#pragma once\n#include <stddef.h>\n/// The area of a square.\nint area(int side);\n";
const SHAPES: &str = "#include \"shapes.h\"\nint area(int side) { return side * side; }\n";
const MAIN: &str = "#include \"shapes.h\"\nsize_t count;\nint main(void) {\n  /* 😀 é */ return area(3) + missing;\n}\n";

/// The project; none where clangd is not there.
fn project() -> Option<Rig> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join("clangd").is_file());
    if !is_there("clangd", found) {
        return None;
    }
    let rig = Rig::new();
    rig.write("src/shapes.h", HEADER);
    rig.write("src/shapes.c", SHAPES);
    rig.write("src/main.c", MAIN);
    let folder = rig.workspace().canonicalize().unwrap();
    let entry =
        |file: &str| json!({"directory": folder, "file": file, "command": format!("cc -c {file}")});
    let commands = json!([entry("src/shapes.c"), entry("src/main.c")]);
    rig.write("compile_commands.json", commands.to_string());
    Some(rig)
}

/// The place of `area` in `main`, behind characters of four and two bytes.
fn call(kind: &str) -> Value {
    json!({"kind": kind, "file": "src/main.c", "line": 4, "character": 20})
}

#[tokio::test]
async fn clangd_finds_definitions_and_uses_across_files() {
    let Some(rig) = project() else { return };
    let used = "src/main.c:4:20: /* 😀 é */ return area(3) + missing;";
    let declared = "src/shapes.h:4:5: int area(int side);";
    let defined = "src/shapes.c:2:5: int area(int side) { return side * side; }";
    // What it has not read yet it does not know: it reads the other file in the background.
    let limit = Instant::now() + LONG;
    while lines(&rig, call("definition")).await != [defined] && Instant::now() < limit {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(lines(&rig, call("definition")).await, [defined]);
    assert_eq!(
        lines(&rig, call("references")).await,
        [used, defined, declared]
    );
    let by_name = json!({"kind": "references", "file": "src/shapes.c", "symbol": "area"});
    assert_eq!(lines(&rig, by_name).await, [used, defined, declared]);
    let found = lines(
        &rig,
        json!({"kind": "workspace_symbols", "file": "src/main.c", "symbol": "area"}),
    )
    .await;
    assert!(found[0].contains(": function area"), "{found:?}");
}

#[tokio::test]
async fn clangd_says_what_something_is_and_what_could_be_written() {
    let Some(rig) = project() else { return };
    let hover = ask(&rig, call("hover")).await;
    let text = hover.completed();
    assert!(
        text.contains("The area of a square.") && text.contains("int area(int side)"),
        "{text}"
    );
    let found = lines(
        &rig,
        json!({"kind": "completion", "file": "src/main.c", "line": 4, "character": 22}),
    )
    .await;
    assert!(
        found
            .iter()
            .any(|line| line.contains("area(int side) (function)")),
        "{found:?}"
    );
}

#[tokio::test]
async fn clangd_lists_what_a_file_defines_and_what_is_wrong_with_it() {
    let Some(rig) = project() else { return };
    let found = lines(
        &rig,
        json!({"kind": "document_symbols", "file": "src/main.c"}),
    )
    .await;
    assert_eq!(
        found,
        [
            "src/main.c:2:8: variable count",
            "src/main.c:3:5: function main"
        ]
    );
    let found = lines(&rig, json!({"kind": "diagnostics", "file": "src/main.c"})).await;
    assert_eq!(found.len(), 1, "{found:?}");
    let expected = "src/main.c:4:30: error: Use of undeclared identifier 'missing'";
    assert!(found[0].starts_with(expected), "{found:?}");
    rig.write("src/main.c", MAIN.replace(" + missing", ""));
    let found = lines(&rig, json!({"kind": "diagnostics", "file": "src/main.c"})).await;
    assert_eq!(found, ["No problems found."]);
}

#[tokio::test]
async fn clangd_names_a_place_in_the_tool_chain_without_saying_where_it_lies() {
    let Some(rig) = project() else { return };
    let found = lines(
        &rig,
        json!({"kind": "definition", "file": "src/main.c", "symbol": "size_t"}),
    )
    .await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains(" (outside the Workspace):"), "{found:?}");
    assert!(!found[0].contains('/'), "{found:?}");
}
