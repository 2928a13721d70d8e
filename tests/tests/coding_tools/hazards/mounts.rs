//! Another file system inside the Workspace. Mounting takes a namespace of its own, so the test runs itself in one.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::rig::Rig;

/// Whether this machine lets somebody mount in a namespace; the project's own checks insist on it.
fn may_mount() -> bool {
    let namespace = ["--user", "--map-root-user", "--mount"];
    let tried = Command::new("unshare")
        .args(namespace)
        .args(["mount", "-t", "tmpfs", "none"])
        .arg(std::env::temp_dir())
        .output();
    let may = tried.is_ok_and(|tried| tried.status.success());
    assert!(
        may || std::env::var("CI").as_deref() != Ok("true"),
        "nobody can mount here"
    );
    may
}

#[test]
fn a_mount_point_inside_the_workspace_is_part_of_it() {
    if !may_mount() {
        return;
    }
    // The name of a test is its path within the binary.
    let (_, module) = module_path!().split_once("::").unwrap();
    let inner = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "--propagation",
            "private",
        ])
        .arg(std::env::current_exe().unwrap())
        .args([&format!("{module}::inside_a_namespace"), "--exact"])
        .args(["--ignored", "--nocapture"])
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&inner.stdout),
        String::from_utf8_lossy(&inner.stderr)
    );
    assert!(inner.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[tokio::test]
#[ignore = "run by the test above, in a namespace where it may mount"]
async fn inside_a_namespace() {
    let rig = Rig::new();
    fs::create_dir(rig.path("mounted")).unwrap();
    fs::create_dir(rig.path("bound")).unwrap();
    let beside = rig.outside();
    fs::write(beside.join("file"), "needle from beside\n").unwrap();
    let mount = |arguments: &[&str]| {
        let mounted = Command::new("mount").args(arguments).status().unwrap();
        assert!(mounted.success(), "{arguments:?}");
    };
    mount(&["-t", "tmpfs", "none", rig.path("mounted").to_str().unwrap()]);
    mount(&[
        "--bind",
        beside.to_str().unwrap(),
        rig.path("bound").to_str().unwrap(),
    ]);
    rig.write("mounted/file", "needle on a mount\n");
    rig.write("plain", "needle\n");
    // Whoever mounted it there has put it into the Workspace.
    for (path, contents) in [
        ("mounted/file", "needle on a mount\n"),
        ("bound/file", "needle from beside\n"),
        ("bound/../mounted/file", "needle on a mount\n"),
    ] {
        let read = rig.call("file_read", json!({ "path": path })).await;
        assert_eq!(read.completed(), contents);
    }
    let found = rig
        .call("grep", json!({"pattern": "needle", "output_mode": "files"}))
        .await;
    assert_eq!(found.completed(), "bound/file\nmounted/file\nplain\n");
    let listed = rig.call("list", json!({"depth": 2})).await;
    assert_eq!(
        listed.completed(),
        "dir\tbound\nfile\tbound/file\ndir\tmounted\nfile\tmounted/file\nfile\tplain\n"
    );
    // And no way leads up from it.
    let read = rig
        .call("file_read", json!({"path": "bound/../../outside/file"}))
        .await;
    assert!(
        read.failed().contains("is outside the Workspace."),
        "{read:?}"
    );
}
