//! `glob`.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use floe_protocol::Permission;
use serde_json::{Value, json};

use crate::rig::{Answer, Rig, definition};

const NOTHING: &str = "[no output]";

async fn glob(rig: &Rig, arguments: Value) -> Answer {
    rig.call("glob", arguments).await
}

async fn found(rig: &Rig, arguments: Value) -> Vec<String> {
    let answer = glob(rig, arguments).await;
    let text = answer.completed();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Gives a file the time of its last change.
fn touch(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

#[test]
fn the_tool_is_called_glob_and_requires_a_pattern() {
    let definition = definition("glob");
    assert_eq!(definition.name, "glob");
    assert_eq!(definition.permission, Permission::ReadOnly);
    assert_eq!(definition.parameters["required"], json!(["pattern"]));
}

#[tokio::test]
async fn two_stars_and_an_extension_give_only_files_with_it() {
    let rig = Rig::new();
    for file in [
        "a.rs",
        "src/b.rs",
        "src/deep/c.rs",
        "src/d.toml",
        ".hidden/e.rs",
    ] {
        rig.write(file, "");
    }
    assert_eq!(
        found(&rig, json!({"pattern": "**/*.rs"})).await,
        [".hidden/e.rs", "a.rs", "src/b.rs", "src/deep/c.rs"]
    );
}

#[tokio::test]
async fn what_is_no_glob_is_an_invalid_glob() {
    let rig = Rig::new();
    for pattern in ["[a", "{a,b", "a[z-b]"] {
        let answer = glob(&rig, json!({"pattern": pattern})).await;
        let text = answer.failed();
        assert!(text.starts_with("Invalid glob"), "{text}");
    }
}

#[tokio::test]
async fn node_modules_and_what_ignore_files_name_are_skipped() {
    let rig = Rig::new();
    rig.write(".gitignore", "*.log\n");
    for file in [
        "node_modules/a.js",
        ".git/b.js",
        "c.js",
        "d.log",
        "build/e.js",
    ] {
        rig.write(file, "");
    }
    assert_eq!(
        found(&rig, json!({"pattern": "**/*.{js,log}"})).await,
        ["c.js"]
    );
    let all = found(&rig, json!({"pattern": "**/*.{js,log}", "no_ignore": true})).await;
    assert_eq!(
        all,
        [
            ".git/b.js",
            "build/e.js",
            "c.js",
            "d.log",
            "node_modules/a.js"
        ]
    );
    assert_eq!(
        found(&rig, json!({"pattern": "*.js", "path": "build"})).await,
        ["build/e.js"]
    );
}

#[tokio::test]
async fn a_star_does_not_cross_a_folder() {
    let rig = Rig::new();
    for file in ["src/b.rs", "src/a/b.rs", "src/a/c/d.rs"] {
        rig.write(file, "");
    }
    assert_eq!(
        found(&rig, json!({"pattern": "src/*.rs"})).await,
        ["src/b.rs"]
    );
    assert_eq!(found(&rig, json!({"pattern": "src?b.rs"})).await, [NOTHING]);
    assert_eq!(
        found(&rig, json!({"pattern": "src/*/b.rs"})).await,
        ["src/a/b.rs"]
    );
}

#[tokio::test]
async fn braces_and_classes_are_alternatives() {
    let rig = Rig::new();
    for file in ["a.rs", "b.rs", "c.rs", "a.toml"] {
        rig.write(file, "");
    }
    assert_eq!(
        found(&rig, json!({"pattern": "{a,b}.{rs,toml}"})).await,
        ["a.rs", "a.toml", "b.rs"]
    );
    assert_eq!(
        found(&rig, json!({"pattern": "[!a].rs"})).await,
        ["b.rs", "c.rs"]
    );
}

#[tokio::test]
async fn the_newest_come_first() {
    let rig = Rig::new();
    for (name, seconds) in [("old", 1_000), ("new", 3_000), ("mid", 2_000)] {
        rig.write(name, "");
        touch(&rig.path(name), seconds);
    }
    let answer = glob(&rig, json!({"pattern": "*"})).await;
    assert_eq!(answer.completed(), "new\nmid\nold\n");
}

#[tokio::test]
async fn files_of_one_age_come_by_path() {
    let rig = Rig::new();
    for name in ["b", "c/a", "a"] {
        rig.write(name, "");
        touch(&rig.path(name), 1_000);
    }
    let answer = glob(&rig, json!({"pattern": "**"})).await;
    assert_eq!(answer.completed(), "a\nb\nc/a\n");
}

#[tokio::test]
async fn what_is_above_the_cap_is_counted_and_exactly_the_cap_is_not_called_cut() {
    let rig = Rig::new();
    for number in 0..501 {
        rig.write(format!("{number:03}"), "");
        touch(&rig.path(format!("{number:03}")), 1_000);
    }
    let answer = glob(&rig, json!({"pattern": "*"})).await;
    let text = answer.completed();
    assert_eq!(text.lines().count(), 502, "with the note");
    assert!(text.starts_with("000\n001\n"), "{text}");
    assert!(
        text.ends_with(
            "499\n\n[the 500 newest of 501; narrow the pattern or raise max_results to see others]"
        ),
        "{text}"
    );
    let answer = glob(&rig, json!({"pattern": "*", "max_results": 501})).await;
    assert!(answer.completed().ends_with("500\n"), "{}", answer.text);
}

#[tokio::test]
async fn a_path_is_where_it_looks() {
    let rig = Rig::new();
    for file in ["a.rs", "src/b.rs", "src/deep/c.rs"] {
        rig.write(file, "");
    }
    let looked = |pattern: &str| json!({"pattern": pattern, "path": "src"});
    assert_eq!(found(&rig, looked("*.rs")).await, ["src/b.rs"]);
    assert_eq!(
        found(&rig, looked("**/*.rs")).await,
        ["src/b.rs", "src/deep/c.rs"]
    );
    assert_eq!(
        found(&rig, looked("/workspace/src/*.rs")).await,
        ["src/b.rs"]
    );
}

#[tokio::test]
async fn a_missing_path_is_not_accessible() {
    let rig = Rig::new();
    fs::create_dir(rig.path("source")).unwrap();
    let answer = glob(&rig, json!({"pattern": "*", "path": "sorce"})).await;
    let text = answer.failed();
    assert!(text.starts_with("Path is not accessible: "), "{text}");
    assert!(text.contains("Did you mean \"source\"?"), "{text}");
}

#[tokio::test]
async fn a_file_as_path_is_not_a_directory() {
    let rig = Rig::new();
    rig.write("a.txt", "");
    let answer = glob(&rig, json!({"pattern": "*", "path": "a.txt"})).await;
    let text = answer.failed();
    assert!(text.starts_with("\"a.txt\" is not a directory."), "{text}");
}

#[tokio::test]
async fn a_link_that_leads_out_leaks_no_name() {
    let rig = Rig::new();
    fs::write(rig.outside().join("only-outside"), "").unwrap();
    symlink("../outside", rig.path("folder")).unwrap();
    symlink("../outside/only-outside", rig.path("file")).unwrap();
    symlink("nowhere", rig.path("dangling")).unwrap();
    for include_dirs in [false, true] {
        let answer = glob(&rig, json!({"pattern": "**", "include_dirs": include_dirs})).await;
        assert_eq!(answer.completed(), NOTHING);
    }
    for pattern in ["folder/*", "../outside/*", "/etc/*"] {
        let answer = glob(&rig, json!({"pattern": pattern})).await;
        assert_eq!(answer.completed(), NOTHING, "{pattern}");
    }
    for path in ["folder", "../outside"] {
        let answer = glob(&rig, json!({"pattern": "*", "path": path})).await;
        assert!(!answer.failed().contains("only-outside"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_link_to_a_file_inside_is_named_and_one_to_a_folder_only_with_folders() {
    let rig = Rig::new();
    rig.write("a/target", "");
    symlink("a/target", rig.path("file")).unwrap();
    symlink("a", rig.path("folder")).unwrap();
    assert_eq!(
        found(&rig, json!({"pattern": "**"})).await,
        ["a/target", "file"]
    );
    assert_eq!(
        found(&rig, json!({"pattern": "**", "include_dirs": true})).await,
        ["a", "a/target", "file", "folder"]
    );
}

#[tokio::test]
async fn case_is_ignored_where_that_is_asked_for() {
    let rig = Rig::new();
    for file in ["README.md", "readme.MD", "other.md"] {
        rig.write(file, "");
    }
    assert_eq!(
        found(&rig, json!({"pattern": "README.md"})).await,
        ["README.md"]
    );
    assert_eq!(
        found(
            &rig,
            json!({"pattern": "readme.[m]d", "case_insensitive": true})
        )
        .await,
        ["README.md", "readme.MD"]
    );
}
