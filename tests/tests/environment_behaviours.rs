//! The behaviours that spec/environment.md 3.1 and 3.2 mark as asserted from the start, through the door and the real tools; and
//! what decisions.md adds to them: the cut with head and tail, and the words for bad arguments. A test is named after its sentence.
//! What shows only inside one crate (the ring, idle command sessions, the wake signal) is tested there.

mod door;

use std::time::{Duration, Instant};

use door::{Door, LONG, gone};
use floe_environment::{CallOutcome, Gate, Selection, ToolCallOutput, Toolset};
use floe_protocol::{ModelMsg, Permission, Phase, StopReason, ToolDefinition};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Ten times the two seconds of the sentences that say "in under two seconds".
const PROMPT: Duration = Duration::from_secs(20);

fn process_id(output: &ToolCallOutput) -> String {
    let at = output
        .output
        .find("proc-")
        .unwrap_or_else(|| panic!("no process_id: {output:?}"));
    output.output[at..at + 13].to_owned()
}

async fn exec_yielding(door: &Door, id: &str, script: &str) -> ToolCallOutput {
    let arguments = json!({"cmd": script, "yield_time_ms": 250}).to_string();
    door.call_as(id, "exec_command", &arguments).await
}

async fn input(door: &Door, id: &str, process: &str, chars: &str, yield_ms: u32) -> ToolCallOutput {
    let arguments =
        json!({"process_id": process, "chars": chars, "yield_time_ms": yield_ms}).to_string();
    door.call_as(id, "input_command", &arguments).await
}

/// Polls until the process has ended; the outputs joined, and the last one.
async fn poll_to_end(door: &Door, process: &str) -> (String, ToolCallOutput) {
    let mut text = String::new();
    for attempt in 0..60 {
        let output = input(door, &format!("poll-{attempt}"), process, "", 1000).await;
        text += &output.output;
        if !output.output.contains("[process still running") {
            return (text, output);
        }
    }
    panic!("the process did not end: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn known_entries_are_listed_and_unknown_names_are_hidden() {
    let door = Door::with(|registry, options| {
        let mut unknown: ToolDefinition = registry.get("list").unwrap().definition.clone();
        unknown.name = "teleport".into();
        let list = registry.get("list").unwrap().definition.clone();
        options.selection = Selection::Entries(vec![list, unknown]);
    })
    .await;
    let listed = serde_json::to_value(door.environment.tools()).unwrap();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 1);
    let fields: Vec<&str> = listed[0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        fields,
        [
            "name",
            "description",
            "parameters",
            "permission",
            "capabilities",
            "origin"
        ]
    );
    assert_eq!(listed[0]["name"], "list");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_streams_start_deltas_stop_and_then_the_complete_output() {
    let door = Door::new().await;
    let output = door
        .exec("echo one; echo two > file.txt; cat file.txt")
        .await;
    let seen = door.sink.seen("c1");
    assert_eq!(seen.phases.first(), Some(&Phase::Start));
    assert_eq!(seen.phases.last(), Some(&Phase::Stop));
    assert!(
        seen.phases[1..seen.phases.len() - 1]
            .iter()
            .all(|phase| *phase == Phase::Delta)
    );
    assert_eq!(seen.text(), "one\ntwo\n");
    assert_eq!(output.output, seen.text());
    assert_eq!(
        std::fs::read_to_string(door.workspace.join("file.txt")).unwrap(),
        "two\n"
    );
    // The complete message follows at once.
    let messages = door.sink.messages();
    assert!(matches!(
        &messages[messages.len() - 1].body,
        floe_protocol::Body::ModelMsg(ModelMsg::ToolCallOutput { .. })
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_appends_to_an_existing_file() {
    let door = Door::new().await;
    std::fs::write(door.workspace.join("notes.txt"), "first\n").unwrap();
    let output = door.exec("echo second >> notes.txt").await;
    assert_eq!(output.stop_reason, StopReason::Completed);
    let text = std::fs::read_to_string(door.workspace.join("notes.txt")).unwrap();
    assert_eq!(text, "first\nsecond\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_of_a_command_is_hardened() {
    let door = Door::new().await;
    let output = door
        .exec("echo \"$GIT_EDITOR|$GIT_TERMINAL_PROMPT|$PAGER|$TERM\"")
        .await;
    assert_eq!(output.output, "true|0|cat|dumb\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_body_is_exactly_the_first_characters_and_the_marker_starts_after_one_newline() {
    let door = Door::minimal("exec_command", None, Some(100)).await;
    let output = door.exec("printf '%0500d' 7").await;
    assert_eq!(&output.output[..100], "0".repeat(100));
    assert_eq!(
        &output.output[101..],
        "[output truncated: exceeded 100 chars]"
    );
    assert_eq!(door.sink.seen("c1").text(), output.output);
    assert_eq!(output.facts.unwrap().truncated, Some(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_zero_or_less_cuts_nothing() {
    for max in [0, -1] {
        let door = Door::minimal("exec_command", None, Some(max)).await;
        let output = door.exec("printf '%020000d' 7").await;
        assert_eq!(output.output.len(), 20_000);
        assert_eq!(output.facts.unwrap().truncated, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_of_zero_or_less_is_no_timeout() {
    let door = Door::minimal("exec_command", Some(0), None).await;
    assert_eq!(door.exec("sleep 0.3; echo done").await.output, "done\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_is_the_tools_own_return_value() {
    let door = Door::new().await;
    let output = door.call("images-failed", "{}").await;
    assert_eq!(output.stop_reason, StopReason::Failed);
    assert_eq!(output.end, CallOutcome::Ran);
}

#[tokio::test(flavor = "multi_thread")]
async fn images_stream_once_in_a_delta_before_stop_and_are_on_the_complete_message() {
    let door = Door::new().await;
    let output = door.call("images-only", "{}").await;
    let seen = door.sink.seen("c1");
    assert_eq!(seen.deltas.last(), Some(&None));
    assert_eq!(seen.images_streamed, output.images);
    assert_eq!(output.images.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_abort_while_a_timeout_is_pending_is_aborted_and_not_failed() {
    let door = Door::minimal("exec_command", Some(100_000), None).await;
    let cancel = CancellationToken::new();
    let arguments = r#"{"cmd":"echo begin; sleep 600"}"#;
    let running = door.start("c1", "exec_command", arguments, &cancel);
    door.sink.until_streamed("c1", "begin").await;
    cancel.cancel();
    let output = tokio::time::timeout(LONG, running).await.unwrap().unwrap();
    assert_eq!(output.stop_reason, StopReason::Aborted);
    assert_eq!(output.end, CallOutcome::Interrupted);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_unparsable_and_empty_arguments_are_explained() {
    let door = Door::new().await;
    let cases = [
        ("nope", "{}", "Unknown tool: nope"),
        (
            "exec_command",
            "{\"cmd\":",
            "Tool call \"exec_command\" failed: the arguments are not valid JSON (EOF while parsing a value at line 1 column 7). Re-issue the call with one complete, valid JSON object.",
        ),
        (
            "exec_command",
            " ",
            "Tool call \"exec_command\" failed: the arguments field is empty. Re-issue the call with a complete JSON object.",
        ),
    ];
    for (at, (tool, arguments, text)) in cases.into_iter().enumerate() {
        let output = door.call_as(&format!("c{at}"), tool, arguments).await;
        assert_eq!(output.output, text);
        assert_eq!(output.stop_reason, StopReason::Failed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_output_is_ever_empty() {
    let door = Door::new().await;
    let output = door.exec("true").await;
    assert_eq!(
        (output.output.as_str(), output.stop_reason),
        ("[no output]", StopReason::Completed)
    );
    let output = door.call_as("c2", "exec_command", "{}").await;
    assert_eq!(
        output.output,
        "Missing required argument \"cmd\" for exec_command."
    );
    let output = door
        .call_as("c3", "exec_command", r#"{"cmd":"exit 3"}"#)
        .await;
    assert_eq!(
        (output.output.as_str(), output.stop_reason),
        ("[exit code: 3]", StopReason::Failed)
    );
    let output = door.call_as("c4", "noop", "{}").await;
    assert_eq!(output.output, "[no output]");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_with_a_background_child_that_holds_the_pipes_ends_promptly() {
    let door = Door::new().await;
    let cancel = CancellationToken::new();
    let arguments = json!({"cmd": "sleep 3517.5 & echo begin; wait"}).to_string();
    let running = door.start("c1", "exec_command", &arguments, &cancel);
    door.sink.until_streamed("c1", "begin").await;
    let aborted = Instant::now();
    cancel.cancel();
    let output = tokio::time::timeout(LONG, running).await.unwrap().unwrap();
    assert!(aborted.elapsed() < PROMPT);
    assert_eq!(output.stop_reason, StopReason::Aborted);
    gone("3517.5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_permission_of_a_tool_is_known_and_that_of_an_unknown_one_is_not() {
    let door = Door::new().await;
    assert_eq!(
        door.environment.permission_of("exec_command"),
        Some(Permission::Execute)
    );
    assert_eq!(
        door.environment.permission_of("list"),
        Some(Permission::ReadOnly)
    );
    assert_eq!(door.environment.permission_of("nope"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throw_after_a_delta_is_start_delta_note_stop_complete_and_failed() {
    let door = Door::new().await;
    let output = door.call("yields-ab-then-boom", "{}").await;
    let seen = door.sink.seen("c1");
    assert_eq!(
        seen.phases,
        [Phase::Start, Phase::Delta, Phase::Delta, Phase::Stop]
    );
    assert_eq!(seen.completes.len(), 1);
    assert_eq!(output.output, "ab\n[tool error] boom");
    assert_eq!(output.stop_reason, StopReason::Failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_process_in_the_background_does_not_hold_the_result() {
    let door = Door::new().await;
    let started = Instant::now();
    let output = door.exec("sleep 3618.5 & echo hello").await;
    assert_eq!(output.output, "hello\n");
    assert_eq!(output.stop_reason, StopReason::Completed);
    assert!(started.elapsed() < PROMPT);
    gone("3618.5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_streams_while_the_command_runs() {
    let door = Door::new().await;
    let cancel = CancellationToken::new();
    // The command goes on only when the test, which has seen its first line, lets it.
    let arguments = json!({"cmd": "echo first; until [ -e go ]; do sleep 0.05; done; echo second"});
    let running = door.start("c1", "exec_command", &arguments.to_string(), &cancel);
    door.sink.until_streamed("c1", "first\n").await;
    std::fs::write(door.workspace.join("go"), "").unwrap();
    let output = tokio::time::timeout(LONG, running).await.unwrap().unwrap();
    assert_eq!(output.output, "first\nsecond\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn input_reaches_a_kept_process_and_its_reply_and_exit_status_come_back() {
    let door = Door::new().await;
    let started = exec_yielding(&door, "c1", "read line; echo \"got $line\"; exit 4").await;
    assert_eq!(started.stop_reason, StopReason::Completed);
    let process = process_id(&started);
    let output = input(&door, "c2", &process, "hello\n", 30_000).await;
    assert_eq!(output.output, "got hello\n\n[exit code: 4]");
    assert_eq!(output.stop_reason, StopReason::Failed);
    assert_eq!(output.facts.unwrap().exit_code, Some(4));
    let output = input(&door, "c3", &process, "", 250).await;
    assert!(
        output.output.contains("unknown process_id"),
        "{}",
        output.output
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_poll_writes_nothing() {
    let door = Door::new().await;
    let started = exec_yielding(&door, "c1", "read line; echo \"got [$line]\"").await;
    let process = process_id(&started);
    let output = input(&door, "c2", &process, "", 250).await;
    assert_eq!(
        output.output,
        format!(
            "[process still running with process_id {process}]\n[the process seems to wait for input]"
        )
    );
    assert_eq!(output.stop_reason, StopReason::Completed);
    let output = input(&door, "c3", &process, "x\n", 30_000).await;
    assert_eq!(output.output, "got [x]\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_alone_interrupts_the_process() {
    let door = Door::new().await;
    let started = exec_yielding(&door, "c1", "sleep 3719.5").await;
    let process = process_id(&started);
    let asked = Instant::now();
    let output = input(&door, "c2", &process, "\u{3}", 30_000).await;
    assert_eq!(output.stop_reason, StopReason::Failed, "{}", output.output);
    assert!(asked.elapsed() < Duration::from_secs(30));
    gone("3719.5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_mixed_with_other_input_is_refused_and_nothing_is_written() {
    let door = Door::new().await;
    let started = exec_yielding(&door, "c1", "read line; echo \"got [$line]\"").await;
    let process = process_id(&started);
    let output = input(&door, "c2", &process, "y\u{3}\n", 250).await;
    assert_eq!(
        output.output,
        "[input_command error: chars mixes U+0003 (Ctrl-C) with other content; send \"\\u0003\" alone to interrupt]"
    );
    assert_eq!(output.stop_reason, StopReason::Failed);
    let output = input(&door, "c3", &process, "x\n", 30_000).await;
    assert_eq!(output.output, "got [x]\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_process_id_is_explained() {
    let door = Door::new().await;
    let output = input(&door, "c1", "proc-00000000", "", 250).await;
    assert!(
        output.output.starts_with(
            "[input_command error: unknown process_id proc-00000000 (the session may have exited and been cleared)]"
        ),
        "{}",
        output.output
    );
    assert_eq!(output.stop_reason, StopReason::Failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn writing_to_a_closed_stdin_breaks_nothing() {
    let door = Door::new().await;
    let script = "exec 0<&-; until [ -e go ]; do sleep 0.05; done; echo alive";
    let started = exec_yielding(&door, "c1", script).await;
    let process = process_id(&started);
    let output = input(&door, "c2", &process, "into the void\n", 250).await;
    assert_eq!(
        output.stop_reason,
        StopReason::Completed,
        "{}",
        output.output
    );
    std::fs::write(door.workspace.join("go"), "").unwrap();
    let (text, _) = poll_to_end(&door, &process).await;
    assert!(text.contains("alive\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_has_no_terminal_unless_it_asks_for_one() {
    let door = Door::new().await;
    let script = "for fd in 0 1 2; do [ -t $fd ] && echo tty || echo pipe; done";
    assert_eq!(door.exec(script).await.output, "pipe\npipe\npipe\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_dispose_a_command_is_refused() {
    let door = Door::new().await;
    door.commands.dispose().await;
    let output = door.exec("echo never").await;
    assert!(
        output
            .output
            .starts_with("[spawn error: command session manager disposed]"),
        "{}",
        output.output
    );
    assert_eq!(output.stop_reason, StopReason::Failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_arrived_while_nobody_read_is_delivered_without_waiting_out_the_window() {
    let door = Door::new().await;
    let script = "until [ -e go ]; do sleep 0.05; done; echo early; touch said; sleep 600";
    let started = exec_yielding(&door, "c1", script).await;
    let process = process_id(&started);
    std::fs::write(door.workspace.join("go"), "").unwrap();
    while !door.workspace.join("said").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The poll may last two minutes; the line is there long before.
    let cancel = CancellationToken::new();
    let arguments = json!({"process_id": process, "yield_time_ms": 120_000}).to_string();
    let polling = door.start("c2", "input_command", &arguments, &cancel);
    door.sink.until_streamed("c2", "early\n").await;
    cancel.cancel();
    let output = tokio::time::timeout(LONG, polling).await.unwrap().unwrap();
    assert_eq!(output.stop_reason, StopReason::Aborted);
    // An interrupted poll leaves the process alone.
    let output = input(&door, "c3", &process, "", 250).await;
    assert_eq!(
        output.output,
        format!("[process still running with process_id {process}]")
    );
    door.commands.dispose().await;
}

// decisions.md: head-tail, and the words for bad arguments.

async fn head_tail_of_ten() -> Door {
    Door::with(|registry, options| {
        let mut exec = registry.get("exec_command").unwrap().definition.clone();
        exec.max_output_length = 10;
        options.selection = Selection::Entries(vec![exec]);
        options.outputs = None;
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn head_and_tail_of_a_command_at_a_budget_of_ten() {
    let cases = [
        ("printf 0123456789", "0123456789"),
        (
            "printf 0123456789A",
            "01234\n[output truncated: kept first 5 and last 5 of 11 chars]\n6789A",
        ),
        (
            "printf 0123456789A; exit 3",
            "01234\n[output truncated: kept first 5 and last 5 of 11 chars]\n6789A\n[exit code: 3]",
        ),
    ];
    for (script, expected) in cases {
        let door = head_tail_of_ten().await;
        let output = door.exec(script).await;
        assert_eq!(output.output, expected);
        assert_eq!(door.sink.seen("c1").text(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_line_and_the_exit_code_of_two_hundred_thousand_lines_are_in_the_result() {
    let door = Door::new().await;
    let script = "seq 1 200000; echo 'error: the last line' >&2; exit 7";
    let output = door.exec(script).await;
    assert!(
        output
            .output
            .ends_with("\nerror: the last line\n\n[exit code: 7]"),
        "{}",
        &output.output[output.output.len().saturating_sub(200)..]
    );
    assert!(output.output.starts_with("1\n2\n3\n"));
    assert_eq!(door.sink.seen("c1").text(), output.output);
    let facts = output.facts.unwrap();
    assert_eq!(facts.exit_code, Some(7));
    assert_eq!(facts.truncated, Some(true));
    let path = facts.full_output.expect("the whole output is kept");
    let line = format!("\n[full output: {path}]\n");
    assert!(output.output.contains(&line));
    let name = path.strip_prefix("/floe/outputs/").unwrap();
    let kept = std::fs::read_to_string(door.outputs.join(name)).unwrap();
    assert!(kept.ends_with("200000\nerror: the last line\n"));
    // A command and `file_read` find it under the name that the model was told.
    let count = json!({"cmd": format!("tail -n 1 {path}")}).to_string();
    let output = door.call_as("c2", "exec_command", &count).await;
    assert_eq!(output.output, "error: the last line\n");
    let read = json!({"path": path, "offset": 1, "limit": 2}).to_string();
    let output = door.call_as("c3", "file_read", &read).await;
    assert!(output.output.starts_with("1\n2\n"), "{}", output.output);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_arguments_end_at_the_gate_that_names_them_and_nothing_runs() {
    let door = Door::new().await;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_value = format!("{{\"cmd\":{deep}}}");
    let long = format!("{{\"cmd\":\"touch made #{}\"}}", "x".repeat(10 << 20));
    let cases = [
        (
            long.as_str(),
            Gate::Size,
            "Arguments of exec_command are too long: ",
        ),
        (deep.as_str(), Gate::Json, "(nested deeper than 128 levels)"),
        (
            deep_value.as_str(),
            Gate::Json,
            "(nested deeper than 128 levels)",
        ),
        (
            "touch made",
            Gate::Json,
            "the arguments are not valid JSON (",
        ),
        ("", Gate::Json, "the arguments field is empty."),
        (
            "\"touch made\"",
            Gate::Schema,
            "Missing required argument \"cmd\" for exec_command.",
        ),
        (
            r#"{"cmd":["touch","made"]}"#,
            Gate::Schema,
            "Missing required argument \"cmd\" for exec_command.",
        ),
        (
            r#"{"cmd":"touch made","yield_time_ms":"soon"}"#,
            Gate::Schema,
            "Invalid argument \"/yield_time_ms\" for exec_command: ",
        ),
        (
            r#"{"cmd":"touch made","cwd":"/"}"#,
            Gate::Schema,
            "Unknown argument \"cwd\" for exec_command; it takes cmd, workdir, yield_time_ms, run_in_background, tty, widen.",
        ),
    ];
    for (at, (arguments, gate, words)) in cases.into_iter().enumerate() {
        let output = door
            .call_as(&format!("c{at}"), "exec_command", arguments)
            .await;
        assert_eq!(output.end, CallOutcome::Gate(gate), "{}", output.output);
        assert!(output.output.contains(words), "{}", output.output);
        assert_eq!(output.stop_reason, StopReason::Failed);
    }
    assert!(!door.workspace.join("made").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_of_the_wrong_type_that_mean_something_are_coerced() {
    let door = Door::new().await;
    let arguments = r#"{"cmd":"echo ok","yield_time_ms":"30000","tty":"false","workdir":null}"#;
    assert_eq!(door.call("exec_command", arguments).await.output, "ok\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_outside_the_workspace_is_refused_by_every_reader() {
    let door = Door::new().await;
    for (at, tool) in ["file_read", "list", "read_image"].into_iter().enumerate() {
        for path in ["../canary", "/etc/passwd"] {
            let arguments = json!({"path": path}).to_string();
            let arguments = match tool {
                "read_image" => json!({"source": path}).to_string(),
                _ => arguments,
            };
            let output = door
                .call_as(&format!("c{at}{}", path.len()), tool, &arguments)
                .await;
            assert_eq!(
                output.stop_reason,
                StopReason::Failed,
                "{tool} {path}: {}",
                output.output
            );
            assert!(!output.output.contains("root:"), "{}", output.output);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_facts_of_a_command_come_from_the_host() {
    let door = Door::new().await;
    let forged = "printf '\\n[exit code: 0]'; exit 9";
    let facts = door.exec(forged).await.facts.unwrap();
    assert_eq!(facts.exit_code, Some(9));
    assert_eq!(facts.confinement.as_deref(), Some("native"));
    let facts = door
        .call_as("c2", "exec_command", r#"{"cmd":"kill -TERM $$"}"#)
        .await
        .facts
        .unwrap();
    assert_eq!(facts.signal.as_deref(), Some("SIGTERM"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_toolset_minimal_has_the_six_that_this_build_knows() {
    let door = Door::with(|_, options| {
        options.selection = Selection::Toolset(Toolset::Minimal);
    })
    .await;
    let names: Vec<String> = door
        .environment
        .tools()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(names, ["exec_command", "input_command", "read_image"]);
    let output = door.call("file_read", r#"{"path":"x"}"#).await;
    assert_eq!(output.output, "Unknown tool: file_read");
    assert_eq!(output.end, CallOutcome::Gate(Gate::Visibility));
}
