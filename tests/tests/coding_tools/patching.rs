//! `apply_patch` with `edits`: all of them or none.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use floe_protocol::Permission;
use serde_json::{Value, json};

use crate::rig::{Answer, Rig, definition};
use crate::small_disk::SmallDisk;

/// The most edits of one call.
const EDITS: usize = 50;
/// The largest file that is edited.
const FILE_BYTES: usize = 5 * 1024 * 1024;

async fn apply(rig: &Rig, edits: Value) -> Answer {
    rig.call("apply_patch", json!({ "edits": edits })).await
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_string": old, "new_string": new})
}

fn with(files: &[(&str, &str)]) -> Rig {
    let rig = Rig::new();
    for (path, contents) in files {
        rig.write(path, contents);
    }
    rig
}

/// Two files that the tests begin with.
fn two() -> Rig {
    with(&[("a.txt", "one\ntwo\n"), ("b.txt", "three\n")])
}

fn assert_untouched(rig: &Rig) {
    assert_eq!(rig.read_text("a.txt"), "one\ntwo\n");
    assert_eq!(rig.read_text("b.txt"), "three\n");
    let names = fs::read_dir(rig.workspace()).unwrap().count();
    assert_eq!(names, 2);
}

#[test]
fn apply_patch_takes_edits_or_a_patch_and_needs_to_write() {
    let definition = definition("apply_patch");
    assert_eq!(definition.permission, Permission::Write);
    let properties = definition.parameters["properties"].as_object().unwrap();
    let names: Vec<&String> = properties.keys().collect();
    assert_eq!(names, ["edits", "path", "patch"]);
    let edit = &properties["edits"]["items"];
    assert_eq!(edit["required"], json!(["old_string", "new_string"]));
}

#[tokio::test]
async fn edits_in_two_files_are_made_and_counted_file_by_file() {
    let rig = two();
    let edits = json!([
        edit("b.txt", "three", "3"),
        edit("a.txt", "one", "1"),
        edit("a.txt", "two", "2\n2b"),
    ]);
    let answer = apply(&rig, edits).await;
    assert_eq!(
        answer.completed(),
        "Applied 3 edit(s) across 2 file(s)\n\
         a.txt: 2 replacement(s) (+3 −2)\n\
         b.txt: 1 replacement(s) (+1 −1)\n\
         --- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,3 @@\n-one\n-two\n+1\n+2\n+2b\n\
         --- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-three\n+3\n"
    );
    assert_eq!(rig.read_text("a.txt"), "1\n2\n2b\n");
    assert_eq!(rig.read_text("b.txt"), "3\n");
    let told = answer.facts.structured.as_ref().unwrap();
    assert_eq!(told["edits"], 3);
    assert_eq!(told["changes"][0]["lines_added"], 3);
}

#[tokio::test]
async fn where_the_second_edit_is_invalid_the_first_file_is_untouched() {
    let rig = two();
    let answer = apply(
        &rig,
        json!([edit("a.txt", "one", "1"), edit("b.txt", "four", "4")]),
    )
    .await;
    assert!(
        answer
            .failed()
            .starts_with("edit[1]: `old_string` not found in b.txt"),
        "{answer:?}"
    );
    assert_untouched(&rig);
}

#[tokio::test]
async fn every_edit_that_fails_is_reported_by_its_index() {
    let rig = two();
    let edits = json!([
        edit("a.txt", "1234567890", "x"),
        edit("a.txt", "one", "1"),
        edit("b.txt", "e", "x"),
        edit("none.txt", "a", "b"),
        edit("../x", "a", "b"),
    ]);
    let answer = apply(&rig, edits).await;
    let faults: Vec<&str> = answer.failed().lines().collect();
    assert_eq!(
        faults,
        [
            "edit[0]: `old_string` not found in a.txt; read the file and copy the text as it stands there.",
            "edit[2]: `old_string` matches 2 times in b.txt; pass `replace_all` (lines 1, 1)",
            "edit[3]: failed to resolve none.txt: it does not exist.",
            "edit[4]: path not allowed: ../x. Path \"../x\" is outside the Workspace. Path not allowed by security policy: use one relative to the Workspace, or one that starts with /workspace/.",
        ]
    );
    assert_untouched(&rig);
}

#[tokio::test]
async fn every_edit_that_may_not_be_made_is_reported_by_its_index() {
    let rig = two();
    symlink("a.txt", rig.path("link")).unwrap();
    let edits = json!([
        edit("b.txt", "three", "3"),
        edit(".git/hooks/pre-commit", "", "x"),
        edit("link", "one", "1"),
    ]);
    let answer = apply(&rig, edits).await;
    let faults: Vec<&str> = answer.failed().lines().collect();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(
        faults[0].starts_with("edit[1]: ") && faults[0].contains("is protected"),
        "{faults:?}"
    );
    assert!(
        faults[1].starts_with("edit[2]: refusing to edit through symlink: \"link\""),
        "{faults:?}"
    );
    assert!(rig.path("link").is_symlink());
    fs::remove_file(rig.path("link")).unwrap();
    assert_untouched(&rig);
}

#[tokio::test]
async fn edits_of_one_file_follow_each_other() {
    let rig = two();
    let edits = json!([edit("a.txt", "one", "1"), edit("a.txt", "1\ntwo", "both")]);
    apply(&rig, edits).await.completed();
    assert_eq!(rig.read_text("a.txt"), "both\n");
}

#[tokio::test]
async fn all_names_of_a_file_mean_the_same_one() {
    let rig = two();
    fs::create_dir(rig.path("d")).unwrap();
    let host = rig.path("a.txt").canonicalize().unwrap();
    let edits = json!([
        edit("a.txt", "one", "1"),
        edit("./a.txt", "1", "2"),
        edit("d/../a.txt", "2", "3"),
        edit("/workspace/a.txt", "3", "4"),
        edit(host.to_str().unwrap(), "4\ntwo", "all"),
    ]);
    let answer = apply(&rig, edits).await;
    assert!(
        answer
            .completed()
            .starts_with("Applied 5 edit(s) across 1 file(s)\na.txt: 5 replacement(s) (+1 −2)\n"),
        "{answer:?}"
    );
    assert_eq!(rig.read_text("a.txt"), "all\n");
}

#[tokio::test]
async fn no_edit_is_lost_where_a_folder_has_a_second_name() {
    let rig = with(&[("d/a.txt", "one\ntwo\n")]);
    symlink("d", rig.path("link")).unwrap();
    let edits = json!([edit("d/a.txt", "one", "1"), edit("link/a.txt", "two", "2")]);
    let answer = apply(&rig, edits).await;
    assert!(
        answer.failed().contains("use one name for both"),
        "{answer:?}"
    );
    assert_eq!(rig.read_text("d/a.txt"), "one\ntwo\n");
    apply(&rig, json!([edit("link/a.txt", "two", "2")]))
        .await
        .completed();
    assert_eq!(rig.read_text("d/a.txt"), "one\n2\n");
    assert!(rig.path("link").is_symlink());
}

#[tokio::test]
async fn an_empty_list_is_refused() {
    let rig = two();
    assert_eq!(
        apply(&rig, json!([])).await.failed(),
        "`edits` array is empty"
    );
    assert_untouched(&rig);
}

#[tokio::test]
async fn no_edits_or_both_forms_are_refused() {
    let rig = two();
    let neither = rig.call("apply_patch", json!({})).await;
    assert!(
        neither.failed().starts_with("Missing 'edits' array"),
        "{neither:?}"
    );
    let both =
        json!({"edits": [edit("a.txt", "one", "1")], "patch": "*** Begin Patch\n*** End Patch"});
    let both = rig.call("apply_patch", both).await;
    assert_eq!(both.failed(), "Pass `edits` or `patch`, not both.");
    assert_untouched(&rig);
}

#[tokio::test]
async fn an_edit_without_a_string_is_refused_by_its_place() {
    let rig = two();
    for (edits, place) in [
        (json!([{"path": "a.txt", "old_string": "one"}]), "/edits/0"),
        (
            json!([edit("a.txt", "one", "1"), {"path": "b.txt", "new_string": "x"}]),
            "/edits/1",
        ),
        (
            json!([{"path": "a.txt", "old_string": "one", "new_string": "1", "approved": true}]),
            "/edits/0",
        ),
        (json!(["a.txt"]), "/edits/0"),
    ] {
        let answer = apply(&rig, edits).await;
        assert!(answer.failed().contains(place), "{place}: {answer:?}");
    }
    assert_untouched(&rig);
}

#[tokio::test]
async fn a_path_that_climbs_out_is_refused_and_nothing_is_made_there() {
    let rig = two();
    let outside = rig.outside();
    let absolute = outside.join("x");
    for path in [
        "../outside/x",
        "d/../../outside/x",
        absolute.to_str().unwrap(),
    ] {
        let answer = apply(
            &rig,
            json!([edit("a.txt", "one", "1"), edit(path, "", "x")]),
        )
        .await;
        let text = answer.failed();
        assert!(
            text.starts_with(&format!("edit[1]: path not allowed: {path}.")),
            "{text}"
        );
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_untouched(&rig);
}

#[tokio::test]
async fn a_malformed_path_is_an_error_that_names_the_index() {
    let rig = two();
    let edits = json!([
        edit("a.txt", "one", "1"),
        edit("a\0b", "", "x"),
        edit("", "", "x"),
        edit("a.txt/b", "", "x"),
        edit(".", "", "x"),
    ]);
    let answer = apply(&rig, edits).await;
    let faults: Vec<&str> = answer.failed().lines().collect();
    assert_eq!(faults.len(), 4, "{faults:?}");
    for (fault, start) in faults.iter().zip([
        "edit[1]: path not allowed: a\0b.",
        "edit[2]: missing `path`",
        "edit[3]: failed to read a.txt/b: ",
        "edit[4]: failed to read .: ",
    ]) {
        assert!(fault.starts_with(start), "{fault}");
    }
    assert_untouched(&rig);
}

#[tokio::test]
async fn fifty_edits_are_made_and_fifty_one_are_refused() {
    let rig = Rig::new();
    let lines: String = (0..=EDITS).map(|line| format!("old {line}.\n")).collect();
    rig.write("a", &lines);
    let edits = |count: usize| -> Value {
        (0..count)
            .map(|line| edit("a", &format!("old {line}."), &format!("new {line}.")))
            .collect()
    };
    let refused = apply(&rig, edits(EDITS + 1)).await;
    assert_eq!(refused.failed(), "Too many edits: 51 (max 50)");
    assert_eq!(rig.read_text("a"), lines);
    let answer = apply(&rig, edits(EDITS)).await;
    assert!(
        answer
            .completed()
            .starts_with("Applied 50 edit(s) across 1 file(s)\n"),
        "{answer:?}"
    );
    assert_eq!(rig.read_text("a").matches("new").count(), EDITS);
}

#[tokio::test]
async fn an_empty_old_string_makes_a_file_and_the_folders_above() {
    let rig = two();
    let answer = apply(
        &rig,
        json!([edit("new/c.txt", "", "made\n"), edit("a.txt", "one", "1")]),
    )
    .await;
    assert!(
        answer
            .completed()
            .contains("\nnew/c.txt: created (+1 −0)\n"),
        "{answer:?}"
    );
    assert_eq!(rig.read_text("new/c.txt"), "made\n");
    // A file that was made in the call can be edited in it.
    let edits = json!([edit("d.txt", "", "made\n"), edit("d.txt", "made", "edited")]);
    apply(&rig, edits).await.completed();
    assert_eq!(rig.read_text("d.txt"), "edited\n");
}

#[tokio::test]
async fn a_file_that_exists_is_not_made_again() {
    let rig = two();
    let answer = apply(
        &rig,
        json!([edit("b.txt", "three", "3"), edit("a.txt", "", "x")]),
    )
    .await;
    assert_eq!(
        answer.failed(),
        "edit[1]: `old_string` must not be empty: a.txt exists already"
    );
    assert_untouched(&rig);
}

#[tokio::test]
async fn a_file_that_is_made_twice_is_refused_and_nothing_is_written() {
    let rig = two();
    let edits = json!([
        edit("a.txt", "one", "1"),
        edit("new.txt", "", "x"),
        edit("./new.txt", "", "y"),
    ]);
    let answer = apply(&rig, edits).await;
    assert_eq!(
        answer.failed(),
        "edit[2]: `old_string` must not be empty: ./new.txt exists already"
    );
    assert_untouched(&rig);
}

#[tokio::test]
async fn an_edit_without_a_path_takes_that_of_the_call() {
    let rig = two();
    let arguments = json!({"path": "a.txt", "edits": [
        {"old_string": "one", "new_string": "1"},
        {"old_string": "two", "new_string": "2"},
    ]});
    rig.call("apply_patch", arguments).await.completed();
    assert_eq!(rig.read_text("a.txt"), "1\n2\n");
    let nameless = apply(&rig, json!([{"old_string": "1", "new_string": "x"}])).await;
    assert_eq!(nameless.failed(), "edit[0]: missing `path`");
}

#[tokio::test]
async fn the_path_of_an_edit_wins_over_that_of_the_call() {
    let rig = two();
    let arguments = json!({"path": "a.txt", "edits": [
        edit("b.txt", "three", "3"),
        {"old_string": "one", "new_string": "1"},
    ]});
    rig.call("apply_patch", arguments).await.completed();
    assert_eq!(rig.read_text("a.txt"), "1\ntwo\n");
    assert_eq!(rig.read_text("b.txt"), "3\n");
}

#[tokio::test]
async fn a_list_that_comes_as_a_string_is_understood() {
    let rig = two();
    let edits = json!([edit("a.txt", "one", "1")]).to_string();
    apply(&rig, json!(edits)).await.completed();
    assert_eq!(rig.read_text("a.txt"), "1\ntwo\n");
}

#[tokio::test]
async fn an_edit_that_changes_nothing_is_no_fault_here() {
    let rig = two();
    let answer = apply(&rig, json!([edit("a.txt", "one", "one")])).await;
    assert!(
        answer
            .completed()
            .starts_with("Applied 1 edit(s) across 0 file(s)"),
        "{answer:?}"
    );
    assert_untouched(&rig);
}

#[tokio::test]
async fn a_looser_match_is_told_with_its_edit() {
    let rig = with(&[("a", "one  \ntwo\n"), ("b", "x\n")]);
    let edits = json!([edit("b", "x", "y"), edit("a", "one\ntwo\n", "1\n")]);
    let answer = apply(&rig, edits).await;
    assert!(
        answer
            .completed()
            .contains("\nedit[1]: matched ignoring space at the ends of lines\n"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_cap_of_read_only_refuses_apply_patch() {
    let rig = Rig::with(|options| options.max_permission = Some(Permission::ReadOnly));
    rig.write("a.txt", "one\n");
    let answer = apply(&rig, json!([edit("a.txt", "one", "1")])).await;
    assert!(
        answer.aborted().contains("Tool call denied by policy."),
        "{answer:?}"
    );
    assert_eq!(rig.read_text("a.txt"), "one\n");
}

#[tokio::test]
async fn a_file_that_is_too_long_or_no_text_is_refused_by_its_index() {
    let rig = two();
    rig.write("long", vec![b'x'; FILE_BYTES + 1]);
    rig.write("binary", b"\0one");
    let edits = json!([edit("long", "y", "z"), edit("binary", "one", "1")]);
    let answer = apply(&rig, edits).await;
    let faults: Vec<&str> = answer.failed().lines().collect();
    assert!(
        faults[0].starts_with("edit[0]: file too large (5242881 bytes)"),
        "{faults:?}"
    );
    assert!(
        faults[1].starts_with("edit[1]: failed to read binary: "),
        "{faults:?}"
    );
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_keeps_all_of_a_call_from_being_made() {
    let rig = two();
    rig.call("file_read", json!({"path": "b.txt"}))
        .await
        .completed();
    rig.write("b.txt", "three and theirs\n");
    let edits = json!([
        edit("a.txt", "one", "1"),
        edit("b.txt", "three", "3"),
        edit("c", "", "x")
    ]);
    let answer = apply(&rig, edits).await;
    assert_eq!(
        answer.failed(),
        "\"b.txt\" has changed since it was read: it had 6 bytes, and now 17. Read it again, then edit what it is now."
    );
    rig.write("b.txt", "three\n");
    assert_untouched(&rig);
}

#[tokio::test]
async fn modes_line_endings_and_marks_are_kept_and_setuid_is_dropped() {
    let rig = with(&[("crlf", "a\r\nb\r\n"), ("marked", "\u{FEFF}a")]);
    let mode = |bits| fs::Permissions::from_mode(bits);
    fs::set_permissions(rig.path("crlf"), mode(0o4750)).unwrap();
    let edits = json!([edit("crlf", "a\nb", "1\n2"), edit("marked", "a", "b\n")]);
    apply(&rig, edits).await.completed();
    assert_eq!(rig.read_text("crlf"), "1\r\n2\r\n");
    assert_eq!(rig.read_text("marked"), "\u{FEFF}b\n");
    let bits = fs::metadata(rig.path("crlf")).unwrap().permissions().mode();
    assert_eq!(bits & 0o7777, 0o750);
}

#[tokio::test]
async fn where_the_disk_is_full_at_any_file_all_of_them_stay_byte_for_byte() {
    let name = "patching::where_the_disk_is_full_at_any_file_all_of_them_stay_byte_for_byte";
    let Some(disk) = SmallDisk::for_test(name) else {
        return;
    };
    // Two thirds of the disk are taken; what is left holds the new contents of all files but one.
    for file in ["a", "b", "c"] {
        fs::write(disk.path(file), format!("old\n{}", "x".repeat(200 * 1024))).unwrap();
    }
    let before = disk.files();
    let rig = disk.rig();
    for full_at in 0..3 {
        let mut edits = vec![edit("a", "old", "new"), edit("b", "old", "new")];
        edits.insert(
            full_at,
            edit(["0", "aa", "z"][full_at], "", &"y".repeat(300 * 1024)),
        );
        let answer = apply(&rig, json!(edits)).await;
        assert!(
            answer.failed().contains("could not be changed"),
            "{answer:?}"
        );
        assert!(answer.text.contains("space"), "{answer:?}");
        assert_eq!(disk.files(), before);
    }
    let written = rig
        .call(
            "file_write",
            json!({"path": "a", "content": "y".repeat(500 * 1024)}),
        )
        .await;
    assert!(written.failed().contains("space"), "{written:?}");
    assert_eq!(disk.files(), before);
    // What fits is still written.
    apply(&rig, json!([edit("a", "old", "new")]))
        .await
        .completed();
}

#[tokio::test]
async fn where_the_disk_is_read_only_every_tool_that_writes_says_so_and_nothing_changes() {
    let name =
        "patching::where_the_disk_is_read_only_every_tool_that_writes_says_so_and_nothing_changes";
    let Some(disk) = SmallDisk::for_test(name) else {
        return;
    };
    fs::write(disk.path("a"), "old\n").unwrap();
    disk.make_read_only();
    let rig = disk.rig();
    let before = disk.files();
    for (tool, arguments) in [
        ("file_write", json!({"path": "a", "content": "new\n"})),
        ("file_write", json!({"path": "d/b", "content": "new\n"})),
        ("edit", edit("a", "old", "new")),
        (
            "apply_patch",
            json!({"edits": [edit("b", "", "x"), edit("a", "old", "new")]}),
        ),
    ] {
        let answer = rig.call(tool, arguments).await;
        assert!(answer.failed().contains("Read-only"), "{tool}: {answer:?}");
        assert_eq!(disk.files(), before);
    }
}
