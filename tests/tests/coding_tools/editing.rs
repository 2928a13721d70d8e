//! `file_write` and `edit`: what becomes of a file, and what does not.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use floe_environment::Rate;
use floe_protocol::{ApprovalMode, Permission};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::rig::{Answer, Rig, definition};

/// The largest file that is edited.
const FILE_BYTES: usize = 5 * 1024 * 1024;
/// The largest arguments of a call.
const ARGUMENT_BYTES: usize = 4 * 1024 * 1024;

async fn write(rig: &Rig, path: &str, content: &str) -> Answer {
    rig.call("file_write", json!({"path": path, "content": content}))
        .await
}

async fn edit(rig: &Rig, path: &str, old: &str, new: &str) -> Answer {
    let arguments = json!({"path": path, "old_string": old, "new_string": new});
    rig.call("edit", arguments).await
}

async fn edit_all(rig: &Rig, path: &str, old: &str, new: &str) -> Answer {
    let arguments =
        json!({"path": path, "old_string": old, "new_string": new, "replace_all": true});
    rig.call("edit", arguments).await
}

/// A Rig with files in its Workspace.
fn with(files: &[(&str, &[u8])]) -> Rig {
    let rig = Rig::new();
    for (path, contents) in files {
        rig.write(path, contents);
    }
    rig
}

/// A second Session over the same Workspace and the same state.
fn beside(first: &Rig) -> Rig {
    let workspace = first.workspace();
    Rig::with(|options| {
        options.home = floe_protocol::Home::new(workspace.parent().unwrap().join("home"));
        options.workspace = floe_workspace::Workspace::open(&workspace).unwrap();
    })
}

fn mode(rig: &Rig, path: &str) -> u32 {
    fs::metadata(rig.path(path)).unwrap().permissions().mode() & 0o7777
}

fn set_mode(rig: &Rig, path: &str, mode: u32) {
    fs::set_permissions(rig.path(path), fs::Permissions::from_mode(mode)).unwrap();
}

/// The names in a folder of the Workspace.
fn names(rig: &Rig) -> Vec<String> {
    let entries = fs::read_dir(rig.workspace()).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn changes(answer: &Answer) -> &Value {
    &answer.facts.structured.as_ref().unwrap()["changes"]
}

// file_write

#[test]
fn file_write_requires_path_and_content() {
    let definition = definition("file_write");
    assert_eq!(definition.permission, Permission::Write);
    assert_eq!(
        definition.parameters["required"],
        json!(["path", "content"])
    );
}

#[tokio::test]
async fn file_write_makes_a_file_and_tells_its_bytes() {
    let rig = Rig::new();
    let answer = write(&rig, "a.txt", "12345678").await;
    assert!(
        answer
            .completed()
            .starts_with("Written 8 bytes to a.txt (created"),
        "{answer:?}"
    );
    assert_eq!(rig.read("a.txt"), b"12345678");
    assert_eq!(names(&rig), ["a.txt"]);
}

#[tokio::test]
async fn file_write_makes_the_folders_above() {
    let rig = Rig::new();
    write(&rig, "deep/er/still/a.txt", "x").await.completed();
    assert_eq!(rig.read("deep/er/still/a.txt"), b"x");
}

#[tokio::test]
async fn file_write_overwrites_and_says_so() {
    let rig = with(&[("a.txt", b"old\nkept\n")]);
    let answer = write(&rig, "a.txt", "new\nkept\n").await;
    assert_eq!(
        answer.completed(),
        "Written 9 bytes to a.txt (overwrote; +1 −1 lines)\n\
         --- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-old\n+new\n kept\n"
    );
    assert_eq!(rig.read("a.txt"), b"new\nkept\n");
}

#[tokio::test]
async fn file_write_takes_empty_content() {
    let rig = Rig::new();
    let answer = write(&rig, "empty", "").await;
    assert!(
        answer.completed().starts_with("Written 0 bytes to empty"),
        "{answer:?}"
    );
    assert_eq!(rig.read("empty"), b"");
}

#[tokio::test]
async fn file_write_refuses_to_climb_out_absolute_paths_and_nul() {
    let rig = Rig::new();
    let outside = rig.outside();
    let absolute = outside.join("x");
    for path in [
        "../outside/x",
        "a/../../outside/x",
        absolute.to_str().unwrap(),
        "/etc/x",
        "a\0b",
        "..",
    ] {
        let answer = write(&rig, path, "x").await;
        let text = answer.failed();
        assert!(
            text.starts_with(&format!("Path \"{path}\" is outside the Workspace.")),
            "{text}"
        );
        assert!(text.contains("not allowed"), "{text}");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert!(names(&rig).is_empty());
    assert!(!std::path::Path::new("/etc/x").exists());
}

#[tokio::test]
async fn file_write_to_no_file_name_is_an_invalid_path() {
    let rig = with(&[("d/a", b"")]);
    for path in [".", "d", "d/..", "/workspace"] {
        let answer = write(&rig, path, "x").await;
        assert!(
            answer
                .failed()
                .starts_with("Invalid path: missing file name"),
            "{answer:?}"
        );
    }
    assert_eq!(
        write(&rig, "", "x").await.failed(),
        "Missing required argument \"path\" for file_write."
    );
}

#[tokio::test]
async fn file_write_without_path_or_content_is_an_error_that_names_it() {
    let rig = Rig::new();
    for (arguments, name) in [
        (json!({"content": "x"}), "path"),
        (json!({"path": "a"}), "content"),
        (json!({"path": "a", "content": {}}), "content"),
    ] {
        let answer = rig.call("file_write", arguments).await;
        assert_eq!(
            answer.failed(),
            format!("Missing required argument \"{name}\" for file_write.")
        );
    }
    assert!(names(&rig).is_empty());
}

#[tokio::test]
async fn file_write_through_a_folder_that_leads_out_makes_neither_file_nor_folder_there() {
    let rig = Rig::new();
    let outside = rig.outside();
    symlink(&outside, rig.path("out")).unwrap();
    symlink("../outside", rig.path("relative")).unwrap();
    for path in ["out/x", "out/made/x", "relative/made/deep/x"] {
        let answer = write(&rig, path, "x").await;
        let text = answer.failed();
        assert!(text.contains("is outside the Workspace."), "{text}");
        assert!(!text.contains(outside.to_str().unwrap()), "{text}");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[tokio::test]
async fn file_write_through_a_final_link_is_refused_and_what_it_leads_to_stays() {
    let rig = with(&[("real.txt", b"original")]);
    fs::write(rig.outside().join("secret"), "MARKER").unwrap();
    symlink("real.txt", rig.path("link")).unwrap();
    symlink("nowhere", rig.path("dangling")).unwrap();
    symlink("../outside/secret", rig.path("out")).unwrap();
    for path in ["link", "dangling"] {
        let answer = write(&rig, path, "x").await;
        let text = answer.failed();
        assert!(
            text.starts_with(&format!("Refusing to write through symlink: \"{path}\"")),
            "{text}"
        );
    }
    write(&rig, "out", "x").await.failed();
    for link in ["link", "dangling", "out"] {
        assert!(rig.path(link).is_symlink(), "{link}");
    }
    assert_eq!(rig.read("real.txt"), b"original");
    assert_eq!(fs::read(rig.outside().join("secret")).unwrap(), b"MARKER");
    assert!(!rig.path("nowhere").exists());
}

#[tokio::test]
async fn a_cap_of_read_only_refuses_file_write() {
    let rig = Rig::with(|options| options.max_permission = Some(Permission::ReadOnly));
    let answer = write(&rig, "a", "x").await;
    assert!(
        answer.aborted().contains("Tool call denied by policy."),
        "{answer:?}"
    );
    assert!(names(&rig).is_empty());
}

#[tokio::test]
async fn a_file_write_over_the_rate_makes_no_file() {
    let rig = Rig::with(|options| {
        options.rate = Some(Rate {
            calls: 1,
            per: Duration::from_secs(3600),
        });
    });
    write(&rig, "first", "x").await.completed();
    let answer = write(&rig, "second", "x").await;
    assert!(answer.text.contains("Rate limit exceeded"), "{answer:?}");
    assert_eq!(names(&rig), ["first"]);
}

#[tokio::test]
async fn content_over_5_mib_is_refused_before_anything_grows() {
    let rig = Rig::new();
    let answer = write(&rig, "a", &"x".repeat(FILE_BYTES + 1)).await;
    let text = answer.failed();
    // It does not come as far as the tool: what carries it is over the limit of arguments, which is looked at first.
    assert!(
        text.contains("Arguments of file_write are too long: ")
            && text.contains(&format!("(limit {ARGUMENT_BYTES})")),
        "{text}"
    );
    assert!(names(&rig).is_empty());
}

#[tokio::test]
async fn content_as_long_as_arguments_may_be_is_written() {
    let rig = Rig::new();
    let arguments = |length: usize| json!({"path": "a", "content": "x".repeat(length)});
    let frame = arguments(0).to_string().len();
    let most = ARGUMENT_BYTES - frame;
    rig.call("file_write", arguments(most)).await.completed();
    assert_eq!(rig.read("a").len(), most);
    let over = rig.call("file_write", arguments(most + 1)).await;
    assert!(over.failed().contains("are too long"), "{}", over.text);
}

#[tokio::test]
async fn file_write_tells_programs_which_lines_changed() {
    let rig = with(&[("a", b"one\ntwo\n")]);
    let answer = write(&rig, "a", "one\n2\n3\n").await;
    let told = answer.facts.structured.as_ref().unwrap();
    assert_eq!(
        (&told["action"], &told["bytes"]),
        (&json!("overwrote"), &json!(8))
    );
    let change = &changes(&answer)[0];
    assert_eq!(
        (
            &change["path"],
            &change["lines_added"],
            &change["lines_removed"]
        ),
        (&json!("a"), &json!(2), &json!(1))
    );
    let made = write(&rig, "b", "x\n").await;
    let told = made.facts.structured.as_ref().unwrap();
    assert_eq!(
        (&told["action"], &changes(&made)[0]["action"]),
        (&json!("created"), &json!("created"))
    );
}

#[tokio::test]
async fn file_write_takes_the_expected_hash_and_refuses_another() {
    let rig = with(&[("a", b"one\n")]);
    let call = |path: &'static str, hash: String| {
        let arguments = json!({"path": path, "content": "two\n", "expected_hash": hash});
        rig.call("file_write", arguments)
    };
    let wrong = call("a", "0".repeat(64)).await;
    assert!(
        wrong
            .failed()
            .starts_with("\"a\" has changed since it was read"),
        "{wrong:?}"
    );
    assert_eq!(rig.read("a"), b"one\n");
    let missing = call("b", "0".repeat(64)).await;
    assert!(missing.failed().contains("does not exist"), "{missing:?}");
    // Written in capitals, as some programs do.
    let right: String = Sha256::digest(b"one\n")
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    call("a", right).await.completed();
    assert_eq!(rig.read("a"), b"two\n");
}

#[tokio::test]
async fn what_was_read_and_has_changed_since_is_not_overwritten_until_it_is_read_again() {
    let rig = with(&[("a", b"one\n")]);
    let read = || rig.call("file_read", json!({"path": "a"}));
    read().await.completed();
    rig.write("a", "theirs, longer\n");
    let refused = write(&rig, "a", "mine\n").await;
    assert_eq!(
        refused.failed(),
        "\"a\" has changed since it was read: it had 4 bytes, and now 15. Read it again, then edit what it is now."
    );
    let refused = edit(&rig, "a", "theirs", "mine").await;
    assert!(
        refused.failed().contains("has changed since it was read"),
        "{refused:?}"
    );
    assert_eq!(rig.read("a"), b"theirs, longer\n");
    read().await.completed();
    write(&rig, "a", "mine\n").await.completed();
    // What the model wrote it knows; what it never read it may write.
    write(&rig, "a", "mine too\n").await.completed();
    rig.write("b", "unread");
    write(&rig, "b", "mine\n").await.completed();
}

#[tokio::test]
async fn a_file_that_is_overwritten_keeps_its_mode_encoding_mark_and_line_endings() {
    let rig = with(&[
        ("crlf", b"a\r\nb\r\n"),
        ("marked", b"\xEF\xBB\xBFa\n"),
        ("wide", b"\xFF\xFEa\0\n\0"),
        ("mixed", b"a\r\nb\n"),
    ]);
    set_mode(&rig, "crlf", 0o751);
    let crlf = write(&rig, "crlf", "c\nd\n").await;
    assert!(
        crlf.completed()
            .contains("(overwrote; kept CRLF line endings; "),
        "{crlf:?}"
    );
    write(&rig, "marked", "b\n").await.completed();
    let wide = write(&rig, "wide", "é\n").await;
    assert!(
        wide.completed()
            .starts_with("Written 6 bytes to wide (overwrote; kept UTF-16; +1 −1 lines)\n"),
        "{wide:?}"
    );
    write(&rig, "mixed", "c\n").await.completed();
    assert_eq!(
        (rig.read("crlf"), mode(&rig, "crlf")),
        (b"c\r\nd\r\n".to_vec(), 0o751)
    );
    assert_eq!(rig.read("marked"), b"\xEF\xBB\xBFb\n");
    assert_eq!(rig.read("wide"), b"\xFF\xFE\xe9\0\n\0");
    assert_eq!(rig.read("mixed"), b"c\n");
}

#[tokio::test]
async fn a_new_file_has_the_mode_that_the_mask_leaves_and_an_edited_one_loses_setuid() {
    let rig = with(&[("tool", b"a\n"), ("plain", b"")]);
    write(&rig, "new", "x").await.completed();
    assert_eq!(mode(&rig, "new"), mode(&rig, "plain"));
    set_mode(&rig, "tool", 0o6755);
    edit(&rig, "tool", "a", "b").await.completed();
    assert_eq!(mode(&rig, "tool"), 0o755);
    set_mode(&rig, "tool", 0o4711);
    write(&rig, "tool", "c").await.completed();
    assert_eq!(mode(&rig, "tool"), 0o711);
}

#[tokio::test]
async fn what_is_no_regular_file_is_neither_written_nor_edited() {
    let rig = Rig::new();
    let fifo = rig.path("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(rig.path("socket")).unwrap();
    for (path, kind) in [("fifo", "FIFO"), ("socket", "socket")] {
        for answer in [
            write(&rig, path, "x").await,
            edit(&rig, path, "a", "b").await,
        ] {
            assert!(answer.failed().contains(kind), "{answer:?}");
        }
    }
    assert_eq!(names(&rig), ["fifo", "socket"]);
}

#[tokio::test]
async fn names_that_are_hard_to_write_are_written_edited_and_shown_on_one_line() {
    let rig = Rig::new();
    let long = "n".repeat(255);
    for name in [
        "-rf",
        "a b",
        "tab\there",
        "line\nbreak",
        "\u{1b}[31mred",
        "cafe\u{301}",
        "caf\u{e9}",
        &long,
    ] {
        write(&rig, name, "one\n").await.completed();
        edit(&rig, name, "one", "two").await.completed();
        assert_eq!(rig.read(name), b"two\n", "{name:?}");
    }
    assert_eq!(names(&rig).len(), 8);
    let longer = write(&rig, &"n".repeat(256), "x").await;
    assert!(
        longer.failed().contains("too long for a file name"),
        "{longer:?}"
    );
    let deep = vec!["d"; 100].join("/") + "/file";
    write(&rig, &deep, "x").await.completed();
    // Whatever can be written can be read.
    let path = |length: usize| {
        let folders = vec!["d".repeat(200); (length - 1) / 201].join("/");
        let name = "n".repeat(length - folders.len() - 1);
        format!("{folders}/{name}")
    };
    let root = rig.workspace().canonicalize().unwrap().as_os_str().len();
    let longest = path(4094 - root);
    write(&rig, &longest, "x").await.completed();
    let read = rig.call("file_read", json!({"path": longest})).await;
    assert_eq!(read.completed(), "x");
    let over = write(&rig, &path(4095 - root), "x").await;
    assert!(over.failed().contains("lies too deep"), "{over:?}");
}

// edit

#[tokio::test]
async fn edit_replaces_what_is_there_once_and_shows_the_diff() {
    let rig = with(&[("a.rs", b"fn one() {}\nfn two() {}\nfn three() {}\n")]);
    let answer = edit(&rig, "a.rs", "fn two()", "fn deux()").await;
    assert_eq!(
        answer.completed(),
        "Edited a.rs: 1 replacement(s)\n--- a/a.rs\n+++ b/a.rs\n@@ -1,3 +1,3 @@\n fn one() {}\n-fn two() {}\n+fn deux() {}\n fn three() {}\n"
    );
    assert_eq!(
        rig.read_text("a.rs"),
        "fn one() {}\nfn deux() {}\nfn three() {}\n"
    );
    let told = answer.facts.structured.as_ref().unwrap();
    assert_eq!(told["replacements"], 1);
    assert_eq!(told.get("matched"), None);
    assert_eq!(changes(&answer)[0]["lines_added"], 1);
}

#[tokio::test]
async fn edit_of_an_ambiguous_text_says_how_often_and_where_it_matches_and_changes_nothing() {
    let rig = with(&[("a", b"x\ny\nx\nx\n")]);
    let answer = edit(&rig, "a", "x", "z").await;
    assert_eq!(
        answer.failed(),
        "`old_string` matches 3 times in a; pass `replace_all: true` or expand `old_string` so it is unique (lines 1, 3, 4)"
    );
    assert_eq!(rig.read("a"), b"x\ny\nx\nx\n");
}

#[tokio::test]
async fn edit_with_replace_all_replaces_every_match() {
    let rig = with(&[("a", b"x\ny\nx\nx\n")]);
    let answer = edit_all(&rig, "a", "x", "z").await;
    assert!(
        answer
            .completed()
            .starts_with("Edited a: 3 replacement(s)\n"),
        "{answer:?}"
    );
    assert_eq!(rig.read("a"), b"z\ny\nz\nz\n");
}

#[tokio::test]
async fn edit_of_a_text_that_is_not_there_is_an_error_that_says_so() {
    let rig = with(&[("a", b"entirely other\n")]);
    let answer = edit(&rig, "a", "1234567890", "x").await;
    assert!(
        answer.failed().starts_with("`old_string` not found in a"),
        "{answer:?}"
    );
    assert_eq!(rig.read("a"), b"entirely other\n");
}

#[tokio::test]
async fn edit_of_a_text_that_is_nearly_there_names_the_line_and_how_alike_it_is() {
    let rig = with(&[("a", b"one\ntwo\nfn total(prices: &[u32]) -> u32 {\n")]);
    let answer = edit(&rig, "a", "fn total(price: &[u64]) -> u64 {", "x").await;
    let text = answer.failed();
    assert!(
        text.starts_with("`old_string` not found in a; the most similar text starts at line 3 ("),
        "{text}"
    );
    let share: u32 = text
        .split(['(', ' '])
        .find_map(|word| word.parse().ok().filter(|share| *share > 3))
        .unwrap();
    assert!((60..100).contains(&share), "{text}");
}

#[tokio::test]
async fn a_cap_of_read_only_refuses_edit() {
    let rig = Rig::with(|options| options.max_permission = Some(Permission::ReadOnly));
    rig.write("a", "x");
    let answer = edit(&rig, "a", "x", "y").await;
    assert!(
        answer.aborted().contains("Tool call denied by policy."),
        "{answer:?}"
    );
    assert_eq!(rig.read("a"), b"x");
}

#[tokio::test]
async fn a_person_who_cannot_be_asked_allows_no_edit() {
    let rig = Rig::with(|options| options.approval_mode = ApprovalMode::AlwaysAsk);
    rig.write("a", "x");
    let answer = edit(&rig, "a", "x", "y").await;
    assert_eq!(answer.aborted(), "Tool call denied by user.");
    assert_eq!(rig.read("a"), b"x");
}

#[tokio::test]
async fn edit_with_an_empty_old_string_is_refused() {
    let rig = with(&[("a", b"x")]);
    let answer = edit(&rig, "a", "", "y").await;
    assert!(
        answer
            .failed()
            .starts_with("`old_string` must not be empty"),
        "{answer:?}"
    );
    assert_eq!(rig.read("a"), b"x");
}

#[tokio::test]
async fn edit_with_identical_strings_is_refused() {
    let rig = with(&[("a", b"x")]);
    let answer = edit(&rig, "a", "x", "x").await;
    assert_eq!(
        answer.failed(),
        "`old_string` and `new_string` are identical — nothing to do"
    );
}

#[tokio::test]
async fn edit_requires_its_three_strings() {
    let rig = with(&[("a", b"x")]);
    for (arguments, name) in [
        (json!({"old_string": "x", "new_string": "y"}), "path"),
        (json!({"path": "a", "new_string": "y"}), "old_string"),
        (json!({"path": "a", "old_string": "x"}), "new_string"),
    ] {
        let answer = rig.call("edit", arguments).await;
        assert_eq!(
            answer.failed(),
            format!("Missing required argument \"{name}\" for edit.")
        );
    }
    assert_eq!(rig.read("a"), b"x");
}

#[tokio::test]
async fn edit_through_a_link_is_refused_and_the_link_stays() {
    let rig = with(&[("real", b"x")]);
    symlink("real", rig.path("link")).unwrap();
    let answer = edit(&rig, "link", "x", "y").await;
    assert!(
        answer
            .failed()
            .starts_with("Refusing to edit through symlink: \"link\""),
        "{answer:?}"
    );
    assert!(rig.path("link").is_symlink());
    assert_eq!(rig.read("real"), b"x");
}

#[tokio::test]
async fn a_crlf_file_is_edited_by_a_text_with_lf_and_stays_crlf() {
    let rig = with(&[("a", b"one\r\ntwo\r\nthree\r\n")]);
    let answer = edit(&rig, "a", "one\ntwo\n", "1\n2\n2b\n").await;
    assert!(
        answer
            .completed()
            .starts_with("Edited a: 1 replacement(s) (matched ignoring line endings)\n"),
        "{answer:?}"
    );
    assert_eq!(rig.read("a"), b"1\r\n2\r\n2b\r\nthree\r\n");
    // A text on one line is there exactly, and what it becomes has the endings of the file all the same.
    let answer = edit(&rig, "a", "three", "3\n4").await;
    assert!(
        answer
            .completed()
            .starts_with("Edited a: 1 replacement(s)\n"),
        "{answer:?}"
    );
    assert_eq!(rig.read("a"), b"1\r\n2\r\n2b\r\n3\r\n4\r\n");
}

#[tokio::test]
async fn a_byte_order_mark_is_kept() {
    let rig = with(&[("a", b"\xEF\xBB\xBFone\n")]);
    edit(&rig, "a", "one\n", "two\n").await.completed();
    assert_eq!(rig.read("a"), b"\xEF\xBB\xBFtwo\n");
}

#[tokio::test]
async fn a_file_in_utf_16_stays_in_utf_16_and_its_diff_is_shown() {
    let utf16 = |text: &str, unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        format!("\u{FEFF}{text}")
            .encode_utf16()
            .flat_map(unit)
            .collect()
    };
    for unit in [u16::to_le_bytes, u16::to_be_bytes] {
        let rig = Rig::new();
        rig.write("a", utf16("one 😀\r\ntwo\r\n", unit));
        let answer = edit(&rig, "a", "one 😀\ntwo", "1 é\n2").await;
        assert!(answer.completed().contains("+1 é"), "{answer:?}");
        assert_eq!(rig.read("a"), utf16("1 é\r\n2\r\n", unit));
    }
}

#[tokio::test]
async fn what_is_no_text_is_refused_and_stays() {
    for bytes in [&b"caf\xe9 one"[..], b"one\0two", b"\xFF\xFEo\0n\0e"] {
        let rig = with(&[("a", bytes)]);
        let answer = edit(&rig, "a", "one", "two").await;
        assert!(
            answer
                .failed()
                .contains("\"a\" is not text in UTF-8 or UTF-16."),
            "{answer:?}"
        );
        assert_eq!(rig.read("a"), bytes);
    }
}

#[tokio::test]
async fn a_missing_final_newline_stays_missing() {
    let rig = with(&[("a", b"one\ntwo")]);
    edit(&rig, "a", "two", "2").await.completed();
    assert_eq!(rig.read("a"), b"one\n2");
    edit(&rig, "a", "one\n", "1\n").await.completed();
    assert_eq!(rig.read("a"), b"1\n2");
}

#[tokio::test]
async fn mode_bits_are_kept() {
    let rig = with(&[("a", b"x")]);
    for bits in [0o600, 0o755, 0o640, 0o444] {
        set_mode(&rig, "a", bits);
        let (old, new) = if rig.read("a") == b"x" {
            ("x", "y")
        } else {
            ("y", "x")
        };
        edit(&rig, "a", old, new).await.completed();
        assert_eq!(mode(&rig, "a"), bits);
    }
}

#[tokio::test]
async fn every_step_of_the_ladder_finds_its_place_and_is_told() {
    for (file, old, new, expected, told) in [
        (
            "a  \nb\n",
            "a\nb\n",
            "c\n",
            "c\n",
            "space at the ends of lines",
        ),
        (
            "\tif x {\n\t\ty();\n\t}\n",
            "if x {\n\ty();\n}\n",
            "if z {\n\ty();\n}\n",
            "\tif z {\n\t\ty();\n\t}\n",
            "indentation",
        ),
        (
            "say “hi” — now\n",
            "say \"hi\" - now",
            "bye",
            "bye\n",
            "typographic punctuation",
        ),
        ("a\r\nb\r\n", "a\nb\n", "c\n", "c\r\n", "line endings"),
    ] {
        let rig = with(&[("f", file.as_bytes())]);
        let answer = edit(&rig, "f", old, new).await;
        let first = format!("Edited f: 1 replacement(s) (matched ignoring {told})\n");
        assert!(answer.completed().starts_with(&first), "{answer:?}");
        assert_eq!(rig.read_text("f"), expected);
        let matched = &answer.facts.structured.as_ref().unwrap()["matched"];
        assert_eq!(matched, &format!("matched ignoring {told}"));
    }
}

#[tokio::test]
async fn a_looser_step_counts_only_where_it_finds_one_place() {
    for (file, old) in [
        ("a  \nx\na\t\n", "a\n"),
        ("\ta();\n\n\ta();\n", "\t\ta();\n"),
        ("“a”\n‘x’\n“a”\n", "\"a\""),
        ("a\r\nb\r\na\r\nb\r\n", "a\nb"),
    ] {
        let rig = with(&[("f", file.as_bytes())]);
        let answer = edit(&rig, "f", old, "z").await;
        let text = answer.failed();
        assert!(
            text.starts_with("`old_string` matches 2 times in f;")
                || text.starts_with("`old_string` not found in f"),
            "{text}"
        );
        assert_eq!(rig.read_text("f"), file);
    }
}

#[tokio::test]
async fn typographic_quotes_are_folded_only_where_one_place_is_meant() {
    let rig = with(&[
        ("one", "say(“a”)\n".as_bytes()),
        ("two", "say(“a”)\nsay(‟a”)\n".as_bytes()),
    ]);
    let answer = edit(&rig, "one", "say(\"a\")", "say(\"b\")").await;
    assert!(
        answer
            .completed()
            .contains("(matched ignoring typographic punctuation)"),
        "{answer:?}"
    );
    assert_eq!(rig.read_text("one"), "say(\"b\")\n");
    let answer = edit(&rig, "two", "say(\"a\")", "say(\"b\")").await;
    assert!(
        answer.failed().contains("matches 2 times in two"),
        "{answer:?}"
    );
    // Not even all of them, since they are not the same.
    let answer = edit_all(&rig, "two", "say(\"a\")", "say(\"b\")").await;
    assert!(
        answer
            .failed()
            .contains("2 places are like it, but not like each other (lines 1, 2)"),
        "{answer:?}"
    );
    assert_eq!(rig.read_text("two"), "say(“a”)\nsay(‟a”)\n");
}

#[tokio::test]
async fn a_diff_in_a_result_has_at_most_4_kib() {
    let rig = Rig::new();
    let old: String = (0..2000).map(|line| format!("old line {line}\n")).collect();
    rig.write("a", &old);
    let answer = edit_all(&rig, "a", "old", "new").await;
    let (first, diff) = answer.completed().split_once('\n').unwrap();
    assert_eq!(first, "Edited a: 2000 replacement(s)");
    assert!(diff.len() <= 4096 && diff.len() > 3500, "{}", diff.len());
    let last = diff.lines().last().unwrap();
    assert!(
        last.starts_with('[') && last.ends_with("more lines of the diff]"),
        "{last}"
    );
}

#[tokio::test]
async fn a_file_of_exactly_5_mib_is_edited_and_one_byte_more_is_not() {
    let rig = Rig::new();
    let mut contents = vec![b'\n'; FILE_BYTES];
    contents[..3].copy_from_slice(b"one");
    rig.write("most", &contents);
    edit(&rig, "most", "one", "two").await.completed();
    contents[..3].copy_from_slice(b"two");
    assert_eq!(rig.read("most"), contents);
    contents.push(b'\n');
    rig.write("over", &contents);
    let answer = edit(&rig, "over", "two", "six").await;
    assert!(
        answer
            .failed()
            .starts_with("file too large (5242881 bytes)"),
        "{answer:?}"
    );
    assert_eq!(rig.read("over"), contents);
}

#[tokio::test]
async fn writers_of_one_file_in_two_sessions_take_their_turns_and_lose_no_update() {
    const LINES: usize = 8;
    let first = Rig::new();
    let lines = |word: &str| -> String {
        (0..2 * LINES)
            .map(|line| format!("{word} {line}.\n"))
            .collect()
    };
    first.write("shared", lines("old"));
    let second = beside(&first);
    let work = async |rig: &Rig, from: usize| {
        for line in from..from + LINES {
            let (old, new) = (format!("old {line}."), format!("new {line}."));
            // Refused where the other one came first, and then tried again on what is there now.
            loop {
                let answer = edit(rig, "shared", &old, &new).await;
                if answer.stop_reason == floe_protocol::StopReason::Completed {
                    break;
                }
                assert!(answer.failed().contains("has changed since"), "{answer:?}");
                rig.call("file_read", json!({"path": "shared"}))
                    .await
                    .completed();
            }
        }
    };
    tokio::join!(work(&first, 0), work(&second, LINES));
    assert_eq!(first.read_text("shared"), lines("new"));
    assert_eq!(names(&first), ["shared"]);
}

#[tokio::test]
async fn edits_of_one_session_at_the_same_time_lose_no_update() {
    let rig = with(&[("a", b"one\ntwo\nthree\n")]);
    let change = async |old: &str, new: &str| {
        for _ in 0..100 {
            let answer = edit(&rig, "a", old, new).await;
            if answer.stop_reason == floe_protocol::StopReason::Completed {
                return;
            }
            assert!(answer.failed().contains("has changed since"), "{answer:?}");
        }
        panic!("{old} was never changed");
    };
    tokio::join!(change("one", "1"), change("two", "2"), change("three", "3"));
    assert_eq!(rig.read_text("a"), "1\n2\n3\n");
}

#[tokio::test]
async fn what_is_protected_or_hidden_is_not_edited() {
    let rig = with(&[
        (".git/config", b"[core]\n"),
        (".env", b"KEY=1\n"),
        (".floe/config.yaml", b"a: 1\n"),
    ]);
    for (path, old, why) in [
        (".git/config", "[core]", "is protected"),
        (".env", "KEY=1", "hidden from tools"),
        (".floe/config.yaml", "a: 1", "is protected"),
    ] {
        let before = rig.read(path);
        let answer = edit(&rig, path, old, "x").await;
        assert!(answer.failed().contains(why), "{path}: {answer:?}");
        let answer = write(&rig, path, "x").await;
        assert!(answer.failed().contains(why), "{path}: {answer:?}");
        assert_eq!(rig.read(path), before);
    }
}
