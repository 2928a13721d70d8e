//! What a command may use, as the binary shows it, and what a killed one leaves.

use std::time::{Duration, Instant};

use crate::support::Place;

/// No test waits longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `condition` holds.
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_command_that_uses_too_much_is_stopped_and_its_result_names_the_limit_and_its_key() {
    let place = Place::new();
    place.config("shell:\n  limits: {memory_mb: 64, tmp_mb: 16}\n");
    for (script, reason) in [
        (
            "echo first; head -c 300M /dev/zero | tail",
            "[command stopped: its processes used more than 64 MiB of memory (shell.limits.memory_mb)]",
        ),
        (
            "echo first; head -c 40M /dev/zero > /tmp/large; sleep 600",
            "[command stopped: /tmp and the home folder held more than 16 MiB (shell.limits.tmp_mb)]",
        ),
    ] {
        let arguments = serde_json::json!({ "cmd": script }).to_string();
        let ended = place.floe(&["call", "exec_command", &arguments, "--output", "json"]);
        assert_eq!(ended.status, 1, "{ended:?}");
        assert!(ended.stdout.contains("first"), "{ended:?}");
        assert!(ended.stdout.contains(reason), "{ended:?}");
    }
}

#[test]
fn a_disk_that_is_nearly_full_stops_a_command_before_it_fills_it() {
    let place = Place::new();
    place.config("shell:\n  limits: {free_mb: 1000000000000}\n");
    let arguments = serde_json::json!({ "cmd": "sleep 600" }).to_string();
    let ended = place.floe(&["call", "exec_command", &arguments]);
    let reason = "less than 1000000000000 MiB were left free on the disk (shell.limits.free_mb)]";
    let all = format!("{}{}", ended.stdout, ended.stderr);
    assert!(all.contains(reason), "{all}");
}

#[test]
fn what_a_killed_floe_has_left_is_swept_by_the_next_one() {
    let place = Place::new();
    let arguments =
        serde_json::json!({ "cmd": "echo x > /tmp/left; touch ready; sleep 600" }).to_string();
    let mut killed = place.spawn(&mut place.command(&["call", "exec_command", &arguments]));
    eventually("the command runs", || {
        place.workspace().join("ready").exists()
    });
    let left = || {
        let mut state = place.state();
        state.retain(|path| path.ends_with("tmp/left"));
        !state.is_empty()
    };
    assert!(left());
    // One that lives is left alone.
    assert_eq!(place.floe(&["call", "list", "{}"]).status, 0);
    assert!(left());
    killed.kill().unwrap();
    killed.wait().unwrap();
    eventually("it is swept", || {
        assert_eq!(place.floe(&["call", "list", "{}"]).status, 0);
        !left()
    });
}
