//! pyright over a small project in Python: a program of Node.js that lies outside the system's folders, and is asked for diagnostics.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::{ask, is_there, lines};
use crate::rig::Rig;

const SHAPES: &str = "class Square:\n    \"\"\"Four equal sides.\"\"\"\n\n    def area(self, side: int) -> int:\n        return side * side\n";
const MAIN: &str = "from shapes import Square\n\nsquare = Square()\nprint('😀 é', square.area(3), square.area('x'))\nsquare.ar\n";

/// Where `make test` has put it.
fn program() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("FLOE_TEST_PYRIGHT") {
        return Some(PathBuf::from(folder).join("node_modules/.bin/pyright-langserver"));
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")))?;
    let programs = std::fs::read_dir(cache.join("floe/programs")).ok()?;
    let mut found = programs.filter_map(|entry| {
        let folder = entry.ok()?.path();
        let is_meant = folder.file_name()?.to_str()?.starts_with("pyright-");
        is_meant.then(|| folder.join("node_modules/.bin/pyright-langserver"))
    });
    found.next()
}

/// The project; none where pyright is not there.
fn project() -> Option<Rig> {
    let program = program().filter(|program| program.is_file());
    if !is_there("pyright", program.is_some()) {
        return None;
    }
    let rig = Rig::with(|options| {
        let pyright = options.language_servers.0.get_mut("pyright").unwrap();
        pyright.command[0] = program.unwrap().to_str().unwrap().to_owned();
    });
    rig.write("pyrightconfig.json", "{}");
    rig.write("shapes.py", SHAPES);
    rig.write("main.py", MAIN);
    Some(rig)
}

/// The place of `area` in `main.py`, behind characters of four and two bytes.
fn call(kind: &str) -> Value {
    json!({"kind": kind, "file": "main.py", "line": 4, "character": 21})
}

#[tokio::test]
async fn pyright_answers_all_seven_kinds() {
    let Some(rig) = project() else { return };
    let line = "print('😀 é', square.area(3), square.area('x'))";
    let defined = "shapes.py:4:9: def area(self, side: int) -> int:";
    assert_eq!(lines(&rig, call("definition")).await, [defined]);
    let used = [
        format!("main.py:4:21: {line}"),
        format!("main.py:4:37: {line}"),
        defined.to_owned(),
    ];
    assert_eq!(lines(&rig, call("references")).await, used);
    let by_name = json!({"kind": "references", "file": "shapes.py", "symbol": "Square.area"});
    assert_eq!(lines(&rig, by_name).await, used);
    let hover = ask(&rig, call("hover")).await;
    assert!(
        hover.completed().contains("area(side: int) -> int"),
        "{hover:?}"
    );
    let completion = json!({"kind": "completion", "file": "main.py", "line": 5, "character": 10});
    let found = lines(&rig, completion).await;
    assert!(found.contains(&"area (method)".to_owned()), "{found:?}");
    let symbols = json!({"kind": "document_symbols", "file": "shapes.py"});
    let found = lines(&rig, symbols).await;
    assert_eq!(found[0], "shapes.py:1:7: class Square", "{found:?}");
    assert_eq!(
        found[1], "shapes.py:4:9: method area in Square",
        "{found:?}"
    );
    let symbols = json!({"kind": "workspace_symbols", "file": "main.py", "symbol": "Squar"});
    let found = lines(&rig, symbols).await;
    assert!(
        found.contains(&"shapes.py:1:7: class Square".to_owned()),
        "{found:?}"
    );
    let found = lines(&rig, json!({"kind": "diagnostics", "file": "main.py"})).await;
    let place = "main.py:4:42: error: Argument of type";
    assert!(
        found.iter().any(|line| line.starts_with(place)),
        "{found:?}"
    );
}

#[tokio::test]
async fn pyright_sees_a_file_that_was_made_after_it_had_started() {
    let Some(rig) = project() else { return };
    rig.write("late.py", "from later import thing\n");
    let diagnostics = json!({"kind": "diagnostics", "file": "late.py"});
    let found = lines(&rig, diagnostics.clone()).await;
    assert!(
        found[0].contains("\"later\" could not be resolved"),
        "{found:?}"
    );
    rig.write("later.py", "thing = 1\n");
    assert_eq!(lines(&rig, diagnostics).await, ["No problems found."]);
}
