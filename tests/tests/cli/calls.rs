//! `floe call`: what it prints and how it ends.

use std::io::Read as _;
use std::time::{Duration, Instant};

use crate::support::{Place, ended};

#[test]
fn a_command_that_fails_prints_its_output_and_its_exit_code_and_ends_with_1() {
    let place = Place::new();
    let workspace = place.workspace();
    let ended = place.floe(&[
        "call",
        "exec_command",
        r#"{"cmd":"printf \"a\\nb\\n\"; exit 3"}"#,
        "--workspace",
        workspace.to_str().unwrap(),
    ]);
    ended.expect(1);
    assert_eq!(ended.stdout, "a\nb\n\n[exit code: 3]\n");
    assert_eq!(ended.stderr, "");
}

#[test]
fn a_call_that_completes_ends_with_0_and_leaves_one_trace_that_verifies() {
    let place = Place::new();
    place.workspace_file("hello.txt", "hello\n");
    let ended = place.floe(&["call", "file_read", r#"{"path":"hello.txt"}"#]);
    ended.expect(0);
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("hello\n", "")
    );
    place
        .floe(&["trace", "verify", place.trace().to_str().unwrap()])
        .expect(0);
}

#[test]
fn a_final_line_feed_is_added_where_the_output_has_none() {
    let place = Place::new();
    place.workspace_file("hello.txt", "no line feed");
    assert_eq!(
        place
            .floe(&["call", "file_read", r#"{"path":"hello.txt"}"#])
            .stdout,
        "no line feed\n"
    );
}

#[test]
fn arguments_come_from_a_file_or_from_standard_input() {
    let place = Place::new();
    place.workspace_file("hello.txt", "hello\n");
    let arguments = place.file("arguments.json", r#"{"path":"hello.txt"}"#);
    let from_file = place.floe(&["call", "file_read", &format!("@{}", arguments.display())]);
    let from_input = place.floe_reading(&["call", "file_read", "-"], br#"{"path":"hello.txt"}"#);
    assert_eq!(from_file.expect(0).stdout, "hello\n");
    assert_eq!(from_input.expect(0).stdout, "hello\n");
}

#[test]
fn a_denied_call_ends_with_3_and_does_nothing() {
    let place = Place::new();
    let call = [
        "call",
        "exec_command",
        r#"{"cmd":"touch made"}"#,
        "--approve",
    ];
    for mode in ["deny-all", "always-ask", "read-only"] {
        let ended = place.floe(&[call.as_slice(), &[mode]].concat());
        ended.expect(3);
        assert_eq!(ended.stdout, "Tool call denied by user.\n", "{mode}");
        let asked = mode != "deny-all";
        assert_eq!(
            ended.stderr.contains("nobody could be asked"),
            asked,
            "{mode}: {}",
            ended.stderr
        );
    }
    assert!(!place.workspace().join("made").exists());
}

#[test]
fn a_tool_that_only_reads_runs_in_the_read_only_mode() {
    let place = Place::new();
    place
        .floe(&["call", "list", "{}", "--approve", "read-only"])
        .expect(0);
}

#[test]
fn a_tool_above_the_cap_ends_with_3_and_says_what_it_needs() {
    let place = Place::new();
    let ended = place.floe(&[
        "call",
        "exec_command",
        r#"{"cmd":"true"}"#,
        "--max-permission",
        "read-only",
    ]);
    ended.expect(3);
    assert!(
        ended.stdout.starts_with("Tool call denied by policy.\n"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("execute"), "{}", ended.stdout);
}

#[test]
fn the_cap_of_the_configuration_holds_and_the_flag_only_lowers_it() {
    let place = Place::new();
    place.config("surfaces:\n  call: read-only\n");
    for cap in ["dangerous", "read-only", "none"] {
        let ended = place.floe(&[
            "call",
            "exec_command",
            r#"{"cmd":"true"}"#,
            "--max-permission",
            cap,
        ]);
        ended.expect(3);
    }
    place.floe(&["call", "list", "{}"]).expect(0);
}

#[test]
fn a_project_narrows_for_its_own_workspace() {
    let place = Place::new();
    place.workspace_file(".floe/config.yaml", "approve: deny-all\n");
    place.floe(&["call", "list", "{}"]).expect(3);
}

#[test]
fn an_interrupt_ends_the_call_and_its_processes_with_130() {
    let place = Place::new();
    let mut child = place.spawn(&mut place.command(&[
        "call",
        "exec_command",
        r#"{"cmd":"echo started; sleep 600; touch survived"}"#,
    ]));
    let mut first = [0; 7];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    assert_eq!(&first, b"started");
    let interrupted = Instant::now();
    interrupt(child.id());
    let ended = ended(child.wait_with_output().unwrap());
    ended.expect(130);
    assert!(interrupted.elapsed() < Duration::from_secs(20));
    assert!(
        ended.stdout.contains("[interrupted: tool aborted by user]"),
        "{}",
        ended.stdout
    );
    assert!(!place.workspace().join("survived").exists());
    place
        .floe(&["trace", "verify", place.trace().to_str().unwrap()])
        .expect(0);
}

#[test]
fn a_command_of_a_single_call_finds_the_end_of_its_input() {
    let place = Place::new();
    let ended = place.floe(&[
        "call",
        "exec_command",
        r#"{"cmd":"cat; read line || echo none"}"#,
    ]);
    assert_eq!(ended.expect(0).stdout, "none\n");
}

#[test]
fn a_command_that_still_runs_when_floe_exits_is_ended_and_that_is_said() {
    let place = Place::new();
    let arguments = r#"{"cmd":"sleep 600; touch survived","yield_time_ms":250}"#;
    let ended = place.floe(&["call", "exec_command", arguments]);
    ended.expect(0);
    assert!(
        ended.stderr.contains("sleep 600") && ended.stderr.contains("was ended"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_command_without_a_sandbox_is_marked_unconfined() {
    let place = Place::new();
    let call = [
        "call",
        "exec_command",
        r#"{"cmd":"true"}"#,
        "--output",
        "json",
    ];
    let facts = |ended: &crate::support::Ended| -> serde_json::Value {
        let messages = ended.json_lines();
        let mut payloads = messages.iter().map(|message| &message["payload"]);
        payloads
            .find(|payload| payload["type"] == "tool_call_output")
            .unwrap()["facts"]
            .clone()
    };
    let by_flag = place.floe(&[call.as_slice(), &["--unsafe-no-sandbox"]].concat());
    assert_eq!(facts(by_flag.expect(0))["confinement"], "UNCONFINED");
    place.config("shell: {unsafe_no_sandbox: true}\n");
    let by_configuration = place.floe(&call);
    assert_eq!(
        facts(by_configuration.expect(0))["confinement"],
        "UNCONFINED"
    );
}

#[test]
fn a_reader_that_goes_away_ends_the_call_quietly() {
    let place = Place::new();
    let mut child = place.spawn(&mut place.command(&[
        "call",
        "exec_command",
        r#"{"cmd":"yes | head -c 400000; sleep 600"}"#,
    ]));
    drop(child.stdout.take());
    let ended = ended(child.wait_with_output().unwrap());
    assert_eq!(ended.stderr, "");
    ended.expect(130);
}

fn interrupt(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

/// An agent whose command tool has these limits.
fn agent_with(place: &Place, name: &str, limits: &str) {
    place.file(
        &format!("state/agents/{name}/system_config.yaml"),
        format!(
            "system_prompt: x\ntools:\n  builtin:\n    - name: exec_command\n      description: Runs.\n      permission: execute\n      \
             {limits}\n      parameters: {{type: object, properties: {{cmd: {{type: string}}, yield_time_ms: {{type: integer}}}}, required: [cmd]}}\n"
        ),
    );
}

#[test]
fn an_agents_entry_sets_the_limits_of_its_tool_for_a_run_and_for_a_call() {
    let place = Place::new();
    agent_with(&place, "strict", "maxOutputLength: 10");
    // Less than the shortest window, so that it is over before the tool hands back on its own.
    agent_with(&place, "hurried", "timeoutMs: 200");
    let call = |agent: &str, arguments: &str| {
        place.floe(&["call", "exec_command", arguments, "--agent", agent])
    };
    let cut = call("strict", r#"{"cmd":"printf 0123456789A; exit 3"}"#);
    assert_eq!(
        cut.expect(1).stdout,
        "0123456789\n[output truncated: exceeded 10 chars]\n[exit code: 3]\n"
    );
    let late = call("hurried", r#"{"cmd":"sleep 60","yield_time_ms":60000}"#);
    assert_eq!(late.expect(1).stdout, "[tool timeout: exceeded 200ms]\n");
    place
        .floe(&["call", "list", "{}", "--agent", "strict"])
        .expect(1);

    let script = place.file(
        "script.yaml",
        "turns:\n  - tool_calls: [{name: exec_command, arguments: {cmd: 'sleep 60', yield_time_ms: 60000}}]\n  \
         - {expect: ['^\\[tool timeout: exceeded 200ms\\]$'], text: x}\n",
    );
    let model = format!("script:{}", script.display());
    place
        .floe(&["run", "-m", "x", "--model", &model, "--agent", "hurried"])
        .expect(0);
}

#[test]
fn an_agent_that_is_named_and_has_no_file_is_a_usage_error() {
    Place::new()
        .floe(&["call", "list", "{}", "--agent", "nobody"])
        .expect_usage(&["There is no agent nobody", "system_config.yaml"]);
}
