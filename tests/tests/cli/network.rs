//! Hosts that a person allows, in the configuration or for one run, and hosts that nobody did. The one server is the test's own, on the
//! loopback; a grant says that the name stands for its address.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};

use serde_json::{Value, json};

use crate::support::{Ended, Place};
use crate::terminal::Terminal;

/// A web server of this machine that says `reached`.
fn web() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut block = [0; 4096];
            let _ = client.read(&mut block);
            let _ = client.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nreached\n",
            );
        }
    });
    address
}

fn call(place: &Place, script: &str, further: &[&str]) -> Ended {
    let arguments = json!({ "cmd": script }).to_string();
    place.floe(&[&["call", "exec_command", &arguments][..], further].concat())
}

#[test]
fn a_host_that_is_allowed_for_one_run_is_reached_and_every_other_is_refused_and_recorded() {
    let place = Place::new();
    let grant = format!("web.test:80={}", web());
    let script =
        "curl -sS http://web.test/; curl -s https://other.test/; curl -s https://other.test/; true";
    let ended = call(&place, script, &["--allow-host", &grant]);
    let note =
        "[network: other.test:443 refused: not among the allowed hosts; ask with widen.hosts]";
    assert!(ended.expect(0).stdout.starts_with("reached\n"), "{ended:?}");
    assert_eq!(ended.stdout.matches(note).count(), 1, "{ended:?}");
    let trace = std::fs::read_to_string(place.trace()).unwrap();
    let refused: Vec<Value> = trace
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["payload"].clone())
        .filter(|payload| payload["code"] == "host_refused")
        .collect();
    assert_eq!(refused.len(), 1, "{trace}");
    assert_eq!(
        refused[0]["message"],
        "other.test:443 refused: not among the allowed hosts; ask with widen.hosts"
    );
}

#[test]
fn without_a_word_about_it_commands_have_no_network() {
    let place = Place::new();
    let ended = call(
        &place,
        "env | grep -ci proxy; curl -s -m 5 http://web.test/; echo $?",
        &[],
    );
    assert_eq!(ended.expect(0).stdout, "0\n6\n");
}

#[test]
fn the_configuration_allows_hosts_and_a_project_shortens_the_list() {
    let place = Place::new();
    let address = web();
    place.config(&format!(
        "shell:\n  network: proxy\n  allow_hosts: ['one.test:80={address}', 'two.test:80={address}']\n"
    ));
    let script =
        "curl -sS http://one.test/; curl -s -o /dev/null -w '%{http_code}\\n' http://two.test/";
    let ended = call(&place, script, &[]);
    assert_eq!(ended.expect(0).stdout, "reached\n200\n");

    place.workspace_file(
        ".floe/config.yaml",
        "shell: {allow_hosts: ['one.test:80', 'three.test']}\n",
    );
    let ended = call(&place, script, &[]);
    assert!(
        ended.expect(0).stdout.starts_with("reached\n403\n"),
        "{ended:?}"
    );
    assert!(
        ended.stdout.contains("[network: two.test:80 refused"),
        "{ended:?}"
    );

    // What a person says for one run is not the project's to take away.
    let ended = call(
        &place,
        script,
        &["--allow-host", &format!("two.test:80={address}")],
    );
    assert_eq!(ended.expect(0).stdout, "reached\n200\n");

    place.workspace_file(".floe/config.yaml", "shell: {network: host}\n");
    call(&place, script, &[]).expect_usage(&[".floe/config.yaml:1: `shell.network` widens"]);
}

#[test]
fn a_host_that_is_none_is_an_error_of_usage() {
    let place = Place::new();
    for host in ["https://a.test", "*", "127.0.0.1:80", "a.test:x"] {
        let ended = call(&place, "true", &["--allow-host", host]);
        ended.expect_usage(&["--allow-host", "is no granted host"]);
    }
    place.config("shell:\n  allow_hosts:\n    - a.test\n    - '*.com'\n");
    call(&place, "true", &[]).expect_usage(&[
        "`shell.allow_hosts",
        "a whole top-level domain cannot be granted",
    ]);
    assert!(place.state().is_empty());
}

#[test]
fn only_the_persons_own_file_gives_the_network_of_the_machine() {
    let place = Place::new();
    let address = web();
    place.config("shell: {network: host}\n");
    let ended = call(&place, &format!("curl -sS http://{address}/"), &[]);
    assert_eq!(ended.expect(0).stdout, "reached\n");
    let doctor = place.floe(&["doctor"]);
    assert!(
        doctor
            .stdout
            .contains("They reach all that this machine reaches"),
        "{doctor:?}"
    );
    place.config("shell: {network: proxy, allow_hosts: [crates.io]}\n");
    let doctor = place.floe(&["doctor"]);
    assert!(
        doctor
            .stdout
            .contains("They reach these hosts over the network: crates.io."),
        "{doctor:?}"
    );
    let doctor = place.floe(&["doctor", "--output", "json"]).json();
    assert_eq!(
        (&doctor["network"], &doctor["allow_hosts"]),
        (&json!("proxy"), &json!(["crates.io"]))
    );
}

/// That a person granted the host shows in why it is refused: its name leads to this machine, so that nothing has to leave it.
#[test]
fn a_host_that_a_person_grants_to_a_call_is_that_calls_alone() {
    const GRANTED: &str =
        "localhost:443 refused: it leads to 127.0.0.1, which is not a public address";
    const NOT_GRANTED: &str = "localhost:443 refused: not among the allowed hosts";
    let place = Place::new();
    place.config("shell: {network: proxy}\n");
    let script = "curl -s --noproxy '' https://localhost/; env -u ALL_PROXY curl -s --noproxy '' -x http://127.0.0.1:${http_proxy##*:} https://localhost/; true";
    let widen = json!({"reason": "the page is there", "hosts": ["LOCALHOST"]});
    let turns = [
        json!({"tool_calls": [{"name": "exec_command", "arguments": {"cmd": script, "widen": widen}}]}),
        json!({"tool_calls": [{"name": "exec_command", "arguments": {"cmd": script}}]}),
        json!({"text": "The end."}),
    ];
    let model = place.file("script.yaml", json!({ "turns": turns }).to_string());
    let model = format!("script:{}", model.display());
    let mut terminal = Terminal::floe(
        &place,
        &["run", "-m", "Go.", "--model", &model],
        &[("NO_COLOR", "1")],
    );
    terminal.wait_for("Let it?");
    terminal.press("y\n");
    let (status, screen) = terminal.end();
    assert_eq!(status, 0, "{screen}");
    assert!(screen.contains("localhost:443"), "{screen}");
    let trace = std::fs::read_to_string(place.trace()).unwrap();
    let outputs: Vec<String> = trace
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["payload"].clone())
        .filter(|payload| payload["type"] == "tool_call_output")
        .map(|payload| payload["output"].as_str().unwrap_or_default().to_owned())
        .collect();
    let [granted, later] = &outputs[..] else {
        panic!("{trace}")
    };
    // The same call without showing what it was given is refused as any other.
    assert!(
        granted.contains(GRANTED) && granted.contains(NOT_GRANTED),
        "{granted}"
    );
    assert!(
        later.contains(NOT_GRANTED) && !later.contains(GRANTED),
        "{later}"
    );
}
