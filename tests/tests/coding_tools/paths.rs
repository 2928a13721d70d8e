//! Paths that lead out of the Workspace, and those that only look like it, for every tool that takes one.

use serde_json::json;

use crate::rig::Rig;

#[tokio::test]
async fn paths_of_the_system_and_of_credentials_are_outside_for_every_file_tool() {
    let rig = Rig::new();
    let home = std::env::home_dir().unwrap_or_else(|| "/root".into());
    let paths = [
        "/etc/passwd",
        "/etc/shadow",
        "/root/.bashrc",
        "/home/someone/.profile",
        "/usr/bin/env",
        "/bin/sh",
        "/sbin/init",
        "/lib/x",
        "/opt/x",
        "/boot/x",
        "/dev/null",
        "/proc/self/environ",
        "/sys/kernel",
        "/var/run/docker.sock",
        "/run/secrets/x",
        "/tmp/x",
        "/",
        "//etc/passwd",
        "/workspace/../etc/passwd",
        "../../../../etc/passwd",
        "..",
        "a/../..",
    ];
    let of_home = [
        ".ssh/id_rsa",
        ".aws/credentials",
        ".gnupg/secring.gpg",
        ".config/gh/hosts.yml",
        ".netrc",
    ];
    let of_home = of_home.map(|path| home.join(path).display().to_string());
    for path in paths.into_iter().chain(of_home.iter().map(String::as_str)) {
        for (tool, arguments) in [
            ("file_read", json!({"path": path})),
            ("list", json!({"path": path})),
            ("grep", json!({"pattern": "x", "path": path})),
            ("file_write", json!({"path": path, "content": "x"})),
            (
                "edit",
                json!({"path": path, "old_string": "a", "new_string": "b"}),
            ),
            (
                "apply_patch",
                json!({"edits": [{"path": path, "old_string": "", "new_string": "b"}]}),
            ),
        ] {
            let answer = rig.call(tool, arguments).await;
            assert!(
                answer.failed().contains("outside the Workspace"),
                "{tool} {path}: {answer:?}"
            );
        }
    }
}

#[tokio::test]
async fn what_only_looks_like_a_way_out_is_a_name_in_the_workspace() {
    let rig = Rig::new();
    for name in [
        "..%2f..%2fetc",
        "%2e%2e",
        "~",
        "~root",
        "...",
        "..a",
        "a..b",
        "$HOME",
        ".hidden",
    ] {
        let path = format!("{name}/file");
        rig.call("file_write", json!({"path": path, "content": "x"}))
            .await
            .completed();
        assert_eq!(rig.read(&path), b"x");
        assert_eq!(
            rig.call("file_read", json!({"path": path}))
                .await
                .completed(),
            "x"
        );
    }
}
