//! Whatever `glob`, `grep` or `list` names, `file_read` opens by what stands there: over trees with odd names, ignore files and links.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::rig::Rig;

/// Trees that are tried.
const CASES: u32 = 48;

/// One thing in a tree.
#[derive(Clone, Debug)]
enum Thing {
    /// A file that holds its own path.
    File(Vec<String>),
    /// `.gitignore` or `.ignore` in a folder.
    Ignore(Vec<String>, bool, String),
    /// A link to a path below the Workspace, or out of it.
    Link(Vec<String>, String),
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c]{1,2}(\\.(rs|log))?",
        1 => prop::sample::select(vec![
            "build", "target", ".hidden", "-rf", "with space", " lead", "trail ", "a:1:b", "[x]", "{a,b}", "*", "?", "!", "#c",
            "caf\u{e9}", "cafe\u{301}", "漢字", "🙂", "\u{202e}rtl", "quo\"te", "it's", "[plan_exit]", "%2e%2e", "~", "..a", "a..",
            "line\nbreak", "tab\tstop", "\u{1b}[31m", "cr\rlf", "\u{7f}", "\u{85}", "back\\slash", "back\\slash\nbreak",
        ]).prop_map(str::to_owned),
        1 => "[^/\0]{1,6}".prop_filter("a name", |name| !matches!(name.as_str(), "." | "..")),
    ]
}

fn path() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(name(), 1..4)
}

fn thing() -> impl Strategy<Value = Thing> {
    prop_oneof![
        6 => path().prop_map(Thing::File),
        1 => (
            prop::collection::vec(name(), 0..2),
            any::<bool>(),
            "([!/]?[a-c*]{1,2}(\\.log|/|\\*\\*)?\n){1,3}",
        )
            .prop_map(|(folder, git, rules)| Thing::Ignore(folder, git, rules)),
        2 => (
            path(),
            prop_oneof![
                path().prop_map(|path| path.join("/")),
                Just("..".to_owned()),
                Just("../outside/secret".to_owned()),
                Just("../../outside".to_owned()),
                Just("/proc/self/root/etc".to_owned()),
                Just(".".to_owned()),
            ],
        )
            .prop_map(|(path, target)| Thing::Link(path, target)),
    ]
}

/// Makes what can be made; what is in the way of another stays away.
fn make(workspace: &Path, things: &[Thing]) {
    for thing in things {
        let (Thing::File(path) | Thing::Ignore(path, ..) | Thing::Link(path, _)) = thing;
        let relative = path.join("/");
        let place = workspace.join(&relative);
        match thing {
            Thing::File(_) => {
                if fs::create_dir_all(place.parent().unwrap()).is_ok() && !place.exists() {
                    let _ = fs::write(&place, format!("needle\n{relative}"));
                }
            }
            Thing::Ignore(_, git, rules) => {
                if fs::create_dir_all(&place).is_ok() {
                    let name = if *git { ".gitignore" } else { ".ignore" };
                    let _ = fs::write(place.join(name), format!("{rules}#needle\n"));
                }
            }
            Thing::Link(_, target) => {
                if fs::create_dir_all(place.parent().unwrap()).is_ok() {
                    let _ = symlink(target, &place);
                }
            }
        }
    }
}

/// What a tool prints of the tree, a name a line, the kind before it taken off.
async fn named(rig: &Rig, tool: &str, arguments: Value) -> BTreeSet<String> {
    let answer = rig.call(tool, arguments).await;
    let text = answer.completed();
    let body = text.split("\n\n[").next().unwrap();
    body.lines()
        .filter(|line| !line.starts_with('[') || tool != "list")
        .filter(|line| *line != "[no output]" && !line.starts_with("[skipped: "))
        .map(|line| line.strip_prefix("file\t").unwrap_or(line).to_owned())
        .filter(|line| {
            !["dir\t", "link\t", "other\t"]
                .iter()
                .any(|kind| line.starts_with(kind))
        })
        .collect()
}

async fn check(things: Vec<Thing>) {
    let rig = Rig::new();
    fs::write(rig.outside().join("secret"), "MARKER").unwrap();
    make(&rig.workspace(), &things);
    let glob =
        |no_ignore: bool| json!({"pattern": "**", "no_ignore": no_ignore, "max_results": 5000});
    let grep = |no_ignore: bool| json!({"pattern": "needle", "output_mode": "files", "no_ignore": no_ignore});
    let globbed = named(&rig, "glob", glob(false)).await;
    let grepped = named(&rig, "grep", grep(false)).await;
    let all_globbed = named(&rig, "glob", glob(true)).await;
    let all_grepped = named(&rig, "grep", grep(true)).await;
    let listed = named(&rig, "list", json!({"depth": 3})).await;
    assert!(
        globbed.is_subset(&all_globbed),
        "{globbed:?} {all_globbed:?}"
    );
    assert!(grepped.is_subset(&globbed), "{grepped:?} {globbed:?}");
    assert!(
        all_grepped.is_subset(&all_globbed),
        "{all_grepped:?} {all_globbed:?}"
    );
    for line in all_globbed.iter().chain(&listed) {
        let read = rig.call("file_read", json!({ "path": line })).await;
        let text = read.completed();
        assert!(!text.contains("MARKER"), "{line}: {text}");
        // A file that is no link says by which path it was made.
        if listed.contains(line) && text.starts_with("needle\n") {
            let made = text.strip_prefix("needle\n").unwrap();
            let found = rig.path(made).canonicalize().unwrap();
            let contents = fs::read_to_string(found).unwrap();
            assert_eq!(contents, text, "{line}");
        }
    }
}

#[test]
fn whatever_glob_grep_and_list_name_file_read_opens() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    });
    let trees = prop::collection::vec(thing(), 0..14);
    runner
        .run(&trees, |things| {
            runtime.block_on(check(things));
            Ok(())
        })
        .unwrap();
}
