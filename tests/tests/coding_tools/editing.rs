//! `file_write` and `edit`: what becomes of a file, and what does not. Here is what holds for both.

mod edit;
mod file_write;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::rig::{Answer, Rig};

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
