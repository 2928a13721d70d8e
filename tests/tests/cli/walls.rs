//! What a command cannot reach through the built binary. The tests look at the canary, the listener and the Trace, not at
//! what the command says.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::Place;

/// Runs one command through the binary with a secret in the host's environment.
fn run(place: &Place, script: &str) -> String {
    let arguments = serde_json::json!({ "cmd": script }).to_string();
    let mut command = place.command(&["call", "exec_command", &arguments]);
    let output = command
        .env("CANARY_SECRET", "n0t-f0r-y0u")
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_canary_outside_the_workspace_is_neither_read_nor_changed() {
    let place = Place::new();
    let canary = place.file("canary", "untouched-canary");
    std::fs::set_permissions(&canary, std::fs::Permissions::from_mode(0o666)).unwrap();
    let before = std::fs::metadata(&canary).unwrap();
    let path = canary.display();
    std::os::unix::fs::symlink(&canary, place.workspace().join("link")).unwrap();
    for script in [
        format!("cat {path}; cat link; cat ../canary; cat /proc/1/root{path}"),
        format!("echo x >> {path}; echo x > link; echo x > ../canary"),
        format!(
            "rm -f {path}; mv {path} stolen; ln {path} hard; chmod 600 {path}; touch {path}; truncate -s 0 {path}"
        ),
        format!("cp {path} copy; ln -sf {path} again; echo x > again; (cd ..; ls -la)"),
    ] {
        let said = run(&place, &script);
        assert!(!said.contains("untouched-canary"), "{script}: {said}");
    }
    let after = std::fs::metadata(&canary).unwrap();
    assert_eq!(
        std::fs::read_to_string(&canary).unwrap(),
        "untouched-canary"
    );
    assert_eq!(after.permissions(), before.permissions());
    assert_eq!(after.modified().unwrap(), before.modified().unwrap());
    assert!(!place.workspace().join("copy").exists());
    assert!(!place.workspace().join("stolen").exists());
}

#[test]
fn the_hosts_processes_and_a_secret_of_its_environment_are_not_seen() {
    let place = Place::new();
    let said = run(
        &place,
        "env; cat /proc/*/environ | tr '\\0' '\\n'; ls -d /proc/[0-9]* | wc -l; cat /proc/*/cmdline | tr '\\0' ' '",
    );
    assert!(!said.contains("n0t-f0r-y0u"), "{said}");
    let own = std::process::id();
    let seen = run(
        &place,
        &format!("test -d /proc/{own} && cat /proc/{own}/cmdline"),
    );
    assert!(!seen.contains("walls"), "{seen}");
    let count: usize = run(&place, "ls -d /proc/[0-9]* | wc -l")
        .trim()
        .parse()
        .unwrap();
    assert!(count < 10, "{count} processes are visible");
}

#[test]
fn a_listener_on_the_hosts_loopback_is_not_reached() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    run(
        &place,
        &format!(
            "timeout 2 bash -c 'echo hello > /dev/tcp/127.0.0.1/{port}'; timeout 2 bash -c 'echo hello > /dev/tcp/localhost/{port}'"
        ),
    );
    let error = listener.accept().expect_err("the command reached the host");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}
