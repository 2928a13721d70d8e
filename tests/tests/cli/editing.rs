//! The tools that search and change files, and `floe undo`, through the binary.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::Place;

/// The arguments of a call as JSON.
fn json(arguments: serde_json::Value) -> String {
    arguments.to_string()
}

macro_rules! call {
    ($place:expr, $tool:expr, $($arguments:tt)+) => {
        $place.floe(&["call", $tool, &json(serde_json::json!($($arguments)+))])
    };
}

#[test]
fn grep_names_path_line_and_text_and_glob_the_paths_newest_first() {
    let place = Place::new();
    place.workspace_file("src/a.rs", "fn one() {}\nfn two() {}\n");
    place.workspace_file("src/deep/b.rs", "// two\n");
    place.workspace_file("target/c.rs", "fn two() {}\n");
    place.workspace_file("binary", "two\0");
    let found = call!(place, "grep", {"pattern": "two"});
    found.expect(0);
    assert_eq!(
        found.stdout,
        "src/a.rs:2:fn two() {}\nsrc/deep/b.rs:1:// two\n\n[skipped: 1 binary]\n"
    );
    let cut = call!(place, "grep", {"pattern": "fn", "max_matches": 1, "include": "*.rs"});
    assert!(
        cut.expect(0)
            .stdout
            .contains("[matches 1–1; there are more, continue with offset 1]")
    );
    assert_eq!(
        call!(place, "grep", {"pattern": "("})
            .expect(1)
            .stdout
            .lines()
            .next()
            .map(|line| line.starts_with("Invalid regex: ")),
        Some(true)
    );
    let globbed = call!(place, "glob", {"pattern": "src/*.rs"});
    assert_eq!(globbed.expect(0).stdout, "src/a.rs\n");
    assert_eq!(
        call!(place, "glob", {"pattern": "**/*.{rs,toml}"})
            .expect(0)
            .stdout
            .lines()
            .count(),
        2
    );
    assert!(
        call!(place, "glob", {"pattern": "a["})
            .expect(1)
            .stdout
            .contains("Invalid glob pattern")
    );
}

#[test]
fn a_file_is_written_edited_and_taken_back_edit_by_edit() {
    let place = Place::new();
    let file = place.workspace().join("src/main.rs");
    let written = call!(place, "file_write", {"path": "src/main.rs", "content": "one\r\ntwo\r\n"});
    assert_eq!(
        written.expect(0).stdout,
        "Written 10 bytes to src/main.rs (created; +2 −0 lines)\n"
    );
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o751)).unwrap();
    let edited = call!(place, "edit", {"path": "src/main.rs", "old_string": "one\ntwo", "new_string": "1\n2\n3"});
    let shown = &edited.expect(0).stdout;
    assert!(
        shown.starts_with("Edited src/main.rs: 1 replacement(s) (matched ignoring line endings)\n--- a/src/main.rs\n"),
        "{shown}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), b"1\r\n2\r\n3\r\n");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o751);
    assert_eq!(
        place.floe(&["undo"]).expect(0).stdout,
        "src/main.rs is as it was before\n"
    );
    assert_eq!(std::fs::read(&file).unwrap(), b"one\r\ntwo\r\n");
    place.floe(&["undo"]).expect(0);
    assert!(!place.workspace().join("src").exists());
    assert!(
        place
            .floe(&["undo"])
            .expect(0)
            .stderr
            .contains("no edit to take back")
    );
}

#[test]
fn an_edit_that_others_have_built_on_is_not_taken_back() {
    let place = Place::new();
    call!(place, "file_write", {"path": "a", "content": "mine\n"}).expect(0);
    place.workspace_file("a", "theirs\n");
    let refused = place.floe(&["undo"]);
    assert!(
        refused.expect(1).stderr.contains("\"a\" has changed since"),
        "{}",
        refused.stderr
    );
    let kept = std::fs::read_to_string(place.workspace().join("a")).unwrap();
    assert_eq!(kept, "theirs\n");
    assert!(
        refused.stderr.contains("--keep-changed"),
        "{}",
        refused.stderr
    );
    let passed = place.floe(&["undo", "--keep-changed"]);
    assert_eq!(
        passed.expect(0).stdout,
        "a has changed since and is kept as it is\n"
    );
    assert!(
        place
            .floe(&["undo"])
            .expect(0)
            .stderr
            .contains("no edit to take back")
    );
}

/// A moment of a patch under way, by what is to be seen of it in the Workspace and beside it.
type Moment = fn(&Place) -> bool;

#[test]
fn a_program_that_is_killed_while_it_patches_leaves_all_of_it_or_nothing_once_another_has_run() {
    const FILES: usize = 20;
    let name = |number: usize| format!("f{number:02}");
    let body = "x".repeat(200 * 1024);
    fn changed(place: &Place, number: usize) -> bool {
        let path = place.workspace().join(format!("f{number:02}"));
        std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"new"))
    }
    fn temporary(place: &Place, name: &str) -> bool {
        let entries = std::fs::read_dir(place.workspace()).unwrap().flatten();
        entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .any(|found| found.starts_with(".floe-") && found.ends_with(name))
    }
    let moments: [Moment; 6] = [
        |place| temporary(place, "-0.tmp"),
        |place| temporary(place, "-19.tmp"),
        |place| changed(place, 0),
        |place| changed(place, 1),
        |place| changed(place, 10),
        |place| changed(place, 19),
    ];
    for moment in moments {
        let place = Place::new();
        let mut edits = Vec::new();
        for number in 0..FILES {
            place.workspace_file(&name(number), format!("old\n{body}"));
            edits.push(
                serde_json::json!({"path": name(number), "old_string": "old", "new_string": "new"}),
            );
        }
        let call = json(serde_json::json!({ "edits": edits }));
        let mut child = place.spawn(&mut place.command(&["call", "apply_patch", &call]));
        // It ends as well where the moment was too short to be seen.
        while !moment(&place) && child.try_wait().unwrap().is_none() {}
        child.kill().unwrap();
        child.wait().unwrap();
        place.floe(&["call", "list", "{}"]).expect(0);
        let count = (0..FILES).filter(|number| changed(&place, *number)).count();
        assert!(
            count == 0 || count == FILES,
            "{count} of {FILES} files are new"
        );
        let names = std::fs::read_dir(place.workspace()).unwrap().count();
        assert_eq!(names, FILES, "nothing is left beside the files");
    }
}

#[test]
fn a_patch_is_made_whole_or_not_at_all() {
    let place = Place::new();
    place.workspace_file("a.txt", "one\ntwo\n");
    place.workspace_file("gone.txt", "x\n");
    let patch = "*** Begin Patch\n*** Add File: new/c.txt\n+c\n*** Delete File: gone.txt\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n one\n-two\n+2\n*** End Patch";
    let refused = call!(place, "apply_patch", {"patch": patch.replace("-two", "-three")});
    refused.expect(1);
    assert!(place.workspace().join("gone.txt").exists() && !place.workspace().join("new").exists());
    let made = call!(place, "apply_patch", {"patch": patch});
    let shown = &made.expect(0).stdout;
    assert!(
        shown.starts_with("Applied 3 edit(s) across 3 file(s)\n"),
        "{shown}"
    );
    let read = |path: &str| std::fs::read_to_string(place.workspace().join(path)).ok();
    assert_eq!(read("b.txt").as_deref(), Some("one\n2\n"));
    assert_eq!(read("new/c.txt").as_deref(), Some("c\n"));
    assert_eq!((read("a.txt"), read("gone.txt")), (None, None));
    let edits = call!(place, "apply_patch", {"edits": [
        {"path": "b.txt", "old_string": "one", "new_string": "1"},
        {"path": "./b.txt", "old_string": "1\n2", "new_string": "12"},
        {"path": "d.txt", "old_string": "", "new_string": "d"},
    ]});
    edits.expect(0);
    assert_eq!(read("b.txt").as_deref(), Some("12\n"));
    let failed = call!(place, "apply_patch", {"edits": [
        {"path": "b.txt", "old_string": "12", "new_string": "x"},
        {"path": "none", "old_string": "a", "new_string": "b"},
    ]});
    assert!(failed.expect(1).stdout.starts_with("edit[1]: "));
    assert_eq!(read("b.txt").as_deref(), Some("12\n"));
}

#[test]
fn what_is_protected_hidden_or_outside_is_not_changed() {
    let place = Place::new();
    place.workspace_file(".git/config", "[core]\n");
    place.workspace_file(".env", "KEY=1\n");
    symlink("/etc/hostname", place.workspace().join("link")).unwrap();
    for (path, expected) in [
        (".git/hooks/pre-commit", "is protected"),
        (".git/config", "is protected"),
        (".floe/config.yaml", "is protected"),
        (".vscode/tasks.json", "is protected"),
        (".env", "hidden from tools"),
        ("link", "outside the Workspace"),
        ("../x", "outside the Workspace"),
        ("/etc/x", "outside the Workspace"),
    ] {
        let refused = call!(place, "file_write", {"path": path, "content": "x"});
        let shown = &refused.expect(1).stdout;
        assert!(shown.contains(expected), "{path}: {shown}");
    }
}

#[test]
fn plan_mode_and_a_cap_offer_nothing_that_changes_files() {
    let place = Place::new();
    let listed = place.floe(&["tools", "--max-permission", "read-only", "--output", "json"]);
    let listed = &listed.expect(0).stdout;
    assert!(
        listed.contains("\"grep\"") && !listed.contains("\"edit\""),
        "{listed}"
    );
}

#[test]
fn a_todo_list_is_shown_a_plan_is_told_and_nobody_can_be_asked_here() {
    let place = Place::new();
    let todos = call!(place, "todowrite", {"todos": [
        {"content": "read", "status": "completed"},
        {"content": "write", "status": "in_progress"},
    ]});
    assert_eq!(
        todos.expect(0).stdout,
        "Todo list updated (2 item(s)):\n[x] read\n[~] write\n"
    );
    assert_eq!(
        call!(place, "plan_exit", {"plan": " do it "})
            .expect(0)
            .stdout,
        "[plan_exit]\ndo it\n"
    );
    let asked = call!(place, "question", {"question": "Which?"});
    assert!(
        asked
            .expect(1)
            .stdout
            .contains("Nobody can be asked in this Session.")
    );
}

#[test]
fn shell_shows_both_outputs_apart_and_ends_what_takes_too_long() {
    let place = Place::new();
    let ran = call!(place, "shell", {"command": "echo oops >&2; printf out; exit 7"});
    assert_eq!(
        ran.expect(1).stdout,
        "out\n[stderr]\noops\n\n[exit code: 7]\n"
    );
    let slow = call!(place, "shell", {"command": "echo begun; sleep 100", "timeout_ms": 2500});
    let shown = &slow.expect(1).stdout;
    assert!(
        shown.ends_with("[tool timeout: exceeded 2500ms]\n"),
        "{shown}"
    );
}
