//! Files that are no ordinary ones.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, symlink};
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::meanwhile::Meanwhile;
use crate::rig::Rig;

const NOTHING: &str = "[no output]";

/// Documented on the page about security: no path tells that a file has another name elsewhere.
#[tokio::test]
async fn a_hard_link_is_a_file_of_the_workspace_whatever_other_name_it_has() {
    let rig = Rig::new();
    fs::write(rig.outside().join("shared"), "both\n").unwrap();
    fs::hard_link(rig.outside().join("shared"), rig.path("hard")).unwrap();
    let answer = rig.call("file_read", json!({"path": "hard"})).await;
    assert_eq!(answer.completed(), "both\n");
    let answer = rig.call("grep", json!({"pattern": "both"})).await;
    assert_eq!(answer.completed(), "hard:1:both\n");
}

#[tokio::test]
async fn no_tool_goes_through_a_magic_link() {
    let rig = Rig::new();
    fs::write(rig.outside().join("secret"), "MARKER").unwrap();
    for (name, target) in [
        ("root", "/proc/self/root"),
        ("cwd", "/proc/self/cwd"),
        ("descriptor", "/proc/self/fd"),
        ("thread", "/proc/thread-self/root"),
        ("executable", "/proc/self/exe"),
    ] {
        symlink(target, rig.path(name)).unwrap();
    }
    let outside = rig.outside();
    let through = format!("root{}/secret", outside.display());
    for path in [
        through.as_str(),
        "root/etc/passwd",
        "thread/etc/passwd",
        "cwd/Cargo.toml",
        "descriptor/0",
        "executable",
        "/proc/self/root/etc/passwd",
        "/workspace/root/etc/passwd",
    ] {
        let answer = rig.call("file_read", json!({ "path": path })).await;
        let text = answer.failed();
        assert!(text.contains("is outside the Workspace."), "{text}");
    }
    for path in ["root", "root/etc", "cwd", "descriptor", "thread"] {
        let listed = rig.call("list", json!({ "path": path })).await;
        assert!(
            listed.failed().contains("is outside the Workspace."),
            "{listed:?}"
        );
        let searched = rig
            .call("grep", json!({"pattern": ".", "path": path}))
            .await;
        assert!(
            searched.failed().contains("is outside the Workspace."),
            "{searched:?}"
        );
        let found = rig
            .call("glob", json!({"pattern": "*", "path": path}))
            .await;
        assert!(
            found.failed().contains("is outside the Workspace."),
            "{found:?}"
        );
    }
    let found = rig
        .call("glob", json!({"pattern": "**", "include_dirs": true}))
        .await;
    assert_eq!(found.completed(), NOTHING);
}

#[tokio::test]
async fn a_fifo_a_socket_and_a_device_are_refused_and_never_opened() {
    let rig = Rig::new();
    let make = |name: &str, kind| mknodat(CWD, rig.path(name), kind, Mode::RUSR | Mode::WUSR, 0);
    make("fifo", FileType::Fifo).unwrap();
    let _listener = UnixListener::bind(rig.path("socket")).unwrap();
    let mut special = vec![("fifo", "FIFO"), ("socket", "socket")];
    // Making a device takes a privilege that not every machine gives to tests.
    if make("device", FileType::CharacterDevice).is_ok() {
        special.push(("device", "device"));
    }
    for (name, _) in &special {
        let read = rig.call("file_read", json!({ "path": name })).await;
        assert_eq!(
            read.failed(),
            format!("Failed to read file: \"{name}\" is not a regular file.")
        );
        let searched = rig
            .call("grep", json!({"pattern": "x", "path": name}))
            .await;
        assert!(searched.text.contains("1 no regular file"), "{searched:?}");
    }
    let listed = rig.call("list", json!({})).await;
    assert_eq!(listed.completed().matches("other\t").count(), special.len());
    let searched = rig.call("grep", json!({"pattern": "x"})).await;
    assert_eq!(
        searched.completed(),
        format!("[skipped: {} no regular file]", special.len())
    );
    let found = rig.call("glob", json!({"pattern": "*"})).await;
    assert_eq!(found.completed(), NOTHING);
}

#[tokio::test]
async fn links_that_lead_in_a_circle_end() {
    let rig = Rig::new();
    rig.write("folder/file", "needle\n");
    symlink("b", rig.path("a")).unwrap();
    symlink("a", rig.path("b")).unwrap();
    symlink(".", rig.path("here")).unwrap();
    symlink("..", rig.path("folder/up")).unwrap();
    let read = rig.call("file_read", json!({"path": "a"})).await;
    assert!(
        read.failed().contains("too many symbolic links"),
        "{read:?}"
    );
    let read = rig
        .call(
            "file_read",
            json!({"path": "here/here/folder/up/folder/file"}),
        )
        .await;
    assert_eq!(read.completed(), "needle\n");
    let searched = rig.call("grep", json!({"pattern": "needle"})).await;
    assert_eq!(searched.completed(), "folder/file:1:needle\n");
    let found = rig.call("glob", json!({"pattern": "**"})).await;
    assert_eq!(found.completed(), "folder/file\n");
    let listed = rig.call("list", json!({"depth": 3})).await;
    assert_eq!(
        listed.completed(),
        "link\ta\nlink\tb\ndir\tfolder\nfile\tfolder/file\nlink\tfolder/up\nlink\there\n"
    );
}

#[tokio::test]
async fn a_sparse_file_of_ten_gibibytes_costs_nothing() {
    let rig = Rig::new();
    let size: u64 = 10 << 30;
    let file = File::create(rig.path("sparse")).unwrap();
    file.set_len(size).unwrap();
    let text = File::create(rig.path("text")).unwrap();
    text.set_len(size).unwrap();
    text.write_all_at("first line\n".repeat(1000).as_bytes(), 0)
        .unwrap();
    let read = rig.call("file_read", json!({"path": "sparse"})).await;
    assert!(
        read.failed()
            .starts_with("File too large: 10737418240 bytes (limit: 10485760 bytes)."),
        "{read:?}"
    );
    let read = rig
        .call("file_read", json!({"path": "sparse", "offset": 1}))
        .await;
    assert_eq!(
        read.failed(),
        "Failed to read file: \"sparse\" is binary, of an unknown type (10737418240 bytes)."
    );
    let read = rig
        .call(
            "file_read",
            json!({"path": "text", "offset": 2, "limit": 1}),
        )
        .await;
    assert_eq!(
        read.completed(),
        "first line\n\n[lines 2–2 of more than 1000; continue with offset 3]"
    );
    let searched = rig.call("grep", json!({"pattern": "line"})).await;
    assert_eq!(searched.completed(), "[skipped: 2 larger than 5 MiB]");
    let listed = rig.call("list", json!({"size": true})).await;
    assert_eq!(
        listed.completed(),
        "file\tsparse\t10737418240\nfile\ttext\t10737418240\n"
    );
}

#[tokio::test]
async fn a_file_that_grows_while_it_is_read_has_an_end() {
    let rig = Rig::new();
    rig.write("log", "first\n");
    let mut log = File::options().append(true).open(rig.path("log")).unwrap();
    let lines = "more and more of it\n".repeat(500);
    let mut left = 2_000_u32;
    let growing = Meanwhile::doing(move || {
        // Bounded, so that it does not fill the disk where the reader is slow.
        left = left.saturating_sub(1);
        if left > 0 {
            log.write_all(lines.as_bytes()).unwrap();
        } else {
            std::thread::yield_now();
        }
    });
    let mut calls = 0;
    while calls < 20 || growing.rounds() < 200 {
        let read = rig
            .call("file_read", json!({"path": "log", "limit": 1}))
            .await;
        assert!(read.completed().starts_with("first\n"), "{read:?}");
        let searched = rig.call("grep", json!({"pattern": "^first$"})).await;
        assert!(
            matches!(
                searched.completed(),
                "log:1:first\n" | "[skipped: 1 larger than 5 MiB]"
            ),
            "{searched:?}"
        );
        calls += 1;
    }
}
