//! What `file_write` makes and overwrites, and what it refuses.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use floe_environment::Rate;
use floe_protocol::Permission;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{ARGUMENT_BYTES, FILE_BYTES, changes, edit, mode, names, set_mode, with, write};
use crate::rig::{Rig, definition};

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
