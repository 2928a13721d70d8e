//! How a connection ends, and that nothing is left of it.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::client::{Client, eventually, runs};
use crate::support::Place;

/// A client with a call that runs `sleep SECONDS` and a child of it.
fn busy(place: &Place, seconds: &str) -> Client {
    let mut client = Client::start(place, &[]);
    let script = format!("touch up; (sleep {seconds} & sleep {seconds}); echo never");
    client.ask_call("exec_command", json!({"cmd": script}));
    eventually("the command runs", || {
        place.workspace().join("up").exists() && runs(seconds)
    });
    client
}

#[test]
fn a_client_that_goes_away_ends_its_calls_and_their_processes() {
    let place = Place::new();
    let client = busy(&place, "3932.25");
    // What the kernel does for a client that was killed: all its ends are closed at once.
    let ended = client.close();
    assert_eq!(ended.status, 0, "{ended:?}");
    eventually("its processes are gone", || !runs("3932.25"));
    let trace = place.trace();
    place
        .floe(&["trace", "verify", trace.to_str().unwrap()])
        .expect(0);
}

#[test]
fn a_killed_client_leaves_no_process() {
    let place = Place::new();
    // The client is a shell that holds the pipes of floe, alone, and reads; it is killed without a word.
    let binary = crate::support::binary();
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    });
    let call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "exec_command", "arguments": {"cmd": "touch up; (sleep 3932.5 & sleep 3932.5); echo never"}},
    });
    let input = format!(
        "{hello}\n{}\n{call}\n",
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    );
    let input = place.file("input", input);
    let script = format!(
        "coproc '{}' mcp; cat '{}' >&${{COPROC[1]}}; echo $COPROC_PID > floe.pid; while read -r -u ${{COPROC[0]}} line; do :; done",
        binary.display(),
        input.display()
    );
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &script]);
    place.prepare(&mut command);
    let mut client = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("the command runs", || {
        place.workspace().join("up").exists() && runs("3932.5")
    });
    let floe = std::fs::read_to_string(place.workspace().join("floe.pid")).unwrap();
    client.kill().unwrap();
    client.wait().unwrap();
    eventually("its processes are gone", || !runs("3932.5"));
    eventually("floe is gone", || {
        !std::path::Path::new(&format!("/proc/{}", floe.trim())).exists()
    });
}

#[test]
fn an_interrupt_ends_it_in_order_while_the_client_holds_its_pipes() {
    let place = Place::new();
    for (signal, seconds) in [(Signal::INT, "3932.75"), (Signal::TERM, "3932.875")] {
        let _ = std::fs::remove_file(place.workspace().join("up"));
        let client = busy(&place, seconds);
        let pid = Pid::from_raw(client.child.id() as i32).unwrap();
        kill_process(pid, signal).unwrap();
        let ended = client.ended();
        assert_eq!(ended.status, 130, "{ended:?}");
        eventually("its processes are gone", || !runs(seconds));
    }
}
