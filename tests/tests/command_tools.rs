//! What the tools for commands add to the contract's first behaviours, through the door with the real components: commands in the
//! background, terminals, endings, the hint about input, and whole outputs as they came.

mod door;

use std::time::{Duration, Instant};

use door::{Door, LONG, gone};
use floe_environment::ToolCallOutput;
use floe_protocol::StopReason;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// An argument of `sleep` that no other process of this machine has.
fn mark(number: u32) -> String {
    format!("37{:05}.{number}5", std::process::id() % 100_000)
}

fn process_id(output: &ToolCallOutput) -> String {
    let at = output
        .output
        .find("proc-")
        .unwrap_or_else(|| panic!("no process_id: {output:?}"));
    output.output[at..at + 13].to_owned()
}

async fn exec(door: &Door, id: &str, arguments: Value) -> ToolCallOutput {
    door.call_as(id, "exec_command", &arguments.to_string())
        .await
}

async fn input(door: &Door, id: &str, arguments: Value) -> ToolCallOutput {
    door.call_as(id, "input_command", &arguments.to_string())
        .await
}

/// Polls until all that the process has printed since holds `wanted`.
async fn poll_until(door: &Door, process: &str, wanted: &str) -> String {
    let mut text = String::new();
    let limit = Instant::now() + LONG;
    let mut attempt = 0;
    while !text.contains(wanted) {
        assert!(Instant::now() < limit, "{text:?} has no {wanted:?}");
        attempt += 1;
        let id = format!("poll-{wanted}-{attempt}");
        let output = input(
            door,
            &id,
            json!({"process_id": process, "yield_time_ms": 250}),
        )
        .await;
        text += output
            .output
            .split("[process still running")
            .next()
            .unwrap_or_default();
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_the_background_returns_its_id_at_once_without_content_and_is_reported_when_it_has_ended()
 {
    let door = Door::with(|_, options| options.reports_ends = true).await;
    let asked = Instant::now();
    let script = "until [ -e go ]; do sleep 0.02; done; echo built; exit 3";
    let output = exec(
        &door,
        "c1",
        json!({"cmd": script, "run_in_background": true}),
    )
    .await;
    assert!(asked.elapsed() < Duration::from_secs(30));
    let process = process_id(&output);
    assert_eq!(
        output.output,
        format!(
            "[command running in background with process_id {process}; its completion will arrive as a user message; use input_command \
             to poll for output, send input or kill it]"
        )
    );
    assert_eq!(output.stop_reason, StopReason::Completed);
    assert_eq!(door.commands.awaited().len(), 1);
    std::fs::write(door.workspace.join("go"), "").unwrap();
    assert!(door.commands.report_due().await);
    let reports = door.commands.take_reports();
    assert_eq!(reports.len(), 1);
    assert_eq!(
        (&reports[0].process_id, &*reports[0].output),
        (&process, "built\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_model_is_told_of_ends_none_is_promised() {
    let door = Door::new().await;
    let output = exec(
        &door,
        "c1",
        json!({"cmd": "sleep 1", "run_in_background": true}),
    )
    .await;
    assert!(
        output
            .output
            .contains("its completion is not announced here"),
        "{}",
        output.output
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_command_says_so_in_the_words_of_the_contract_and_is_not_reported() {
    let door = Door::new().await;
    let mark = mark(1);
    let script = format!("echo up; sleep {mark}");
    let started = exec(
        &door,
        "c1",
        json!({"cmd": script, "run_in_background": true}),
    )
    .await;
    let process = process_id(&started);
    let output = input(&door, "c2", json!({"process_id": process, "kill": true})).await;
    let note = format!(
        "[process {process} killed (SIGTERM to the process group, SIGKILL after a grace period)]"
    );
    assert!(output.output.ends_with(&note), "{}", output.output);
    assert_eq!(output.stop_reason, StopReason::Completed);
    gone(&mark).await;
    assert_eq!(door.commands.take_reports(), []);
    let output = input(&door, "c3", json!({"process_id": process})).await;
    assert!(
        output.output.contains("unknown process_id"),
        "{}",
        output.output
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_a_command_that_has_ended_removes_it_and_tells_how_it_ended() {
    let door = Door::new().await;
    let started = exec(
        &door,
        "c1",
        json!({"cmd": "exit 4", "run_in_background": true}),
    )
    .await;
    let process = process_id(&started);
    assert!(door.commands.report_due().await);
    let output = input(&door, "c2", json!({"process_id": process, "kill": true})).await;
    assert_eq!(
        output.output,
        format!("[process {process} had already exited (exit code 4); session removed]")
    );
    assert_eq!(door.commands.take_reports(), [], "the result has told it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_tells_the_end_makes_the_report_superfluous() {
    let door = Door::new().await;
    let started = exec(
        &door,
        "c1",
        json!({"cmd": "echo out", "run_in_background": true}),
    )
    .await;
    let process = process_id(&started);
    assert!(door.commands.report_due().await);
    let output = input(&door, "c2", json!({"process_id": process})).await;
    assert_eq!(output.output, "out\n");
    assert_eq!(door.commands.take_reports(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_input_can_be_sent_with_and_without_text() {
    let door = Door::new().await;
    let started = exec(&door, "c1", json!({"cmd": "cat", "yield_time_ms": 250})).await;
    let process = process_id(&started);
    let output = input(
        &door,
        "c2",
        json!({"process_id": process, "chars": "last", "eof": true, "yield_time_ms": 30000}),
    )
    .await;
    assert_eq!(output.output, "last");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_of_a_command_is_resized_and_pipes_are_not() {
    let door = Door::new().await;
    let script = "stty size; trap 'stty size' WINCH; while :; do sleep 0.05; done";
    let started = exec(
        &door,
        "c1",
        json!({"cmd": script, "tty": true, "yield_time_ms": 250}),
    )
    .await;
    let process = process_id(&started);
    let mut seen = started.output.clone();
    if !seen.contains("24 80") {
        seen += &poll_until(&door, &process, "24 80").await;
    }
    let resize = json!({"process_id": process, "columns": 132, "rows": 50, "yield_time_ms": 250});
    let output = input(&door, "c2", resize).await;
    if !output.output.contains("50 132") {
        poll_until(&door, &process, "50 132").await;
    }
    let output = input(&door, "c3", json!({"process_id": process, "columns": 132})).await;
    assert_eq!(
        output.output,
        "Missing required argument \"rows\" for input_command."
    );
    let started = exec(&door, "c4", json!({"cmd": "cat", "yield_time_ms": 250})).await;
    let pipes = process_id(&started);
    let resize = json!({"process_id": pipes, "columns": 132, "rows": 50});
    let output = input(&door, "c5", resize).await;
    assert!(
        output
            .output
            .starts_with("[input_command error: the command has pipes"),
        "{}",
        output.output
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_shown_with_the_hint_and_a_program_that_works_has_none() {
    let door = Door::new().await;
    for (id, script, tty) in [
        (
            "pipes",
            "printf 'Name: '; read name; echo \"hello $name\"",
            false,
        ),
        (
            "terminal",
            "printf 'Name: '; read name; echo \"hello $name\"",
            true,
        ),
    ] {
        let started = exec(
            &door,
            id,
            json!({"cmd": script, "tty": tty, "yield_time_ms": 2000}),
        )
        .await;
        let process = process_id(&started);
        assert_eq!(
            started.output,
            format!(
                "Name: \n[process running with process_id {process}; use input_command to send input or poll for output]\n\
                 [the process seems to wait for input]"
            )
        );
        let reply = json!({"process_id": process, "chars": "Ada\n", "yield_time_ms": 30000});
        let output = input(&door, &format!("{id}-reply"), reply).await;
        assert!(output.output.contains("hello Ada"), "{}", output.output);
    }
    let working = exec(
        &door,
        "works",
        json!({"cmd": "sleep 600", "yield_time_ms": 500}),
    )
    .await;
    assert!(
        !working.output.contains("seems to wait"),
        "{}",
        working.output
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_output_of_a_cut_command_is_what_it_printed_byte_for_byte() {
    let door = Door::new().await;
    let script = r"for i in $(seq 4000); do printf '\033[1mline\033[0m %s\377\r\n' $i; done";
    let output = exec(&door, "c1", json!({"cmd": script})).await;
    assert!(!output.output.contains('\u{1b}'), "the model gets text");
    let path = output.facts.unwrap().full_output.unwrap();
    let name = path.strip_prefix("/floe/outputs/").unwrap();
    let kept = std::fs::read(door.outputs.join(name)).unwrap();
    let printed: Vec<u8> = (1..=4000)
        .flat_map(|number| {
            let mut line = format!("\u{1b}[1mline\u{1b}[0m {number}").into_bytes();
            line.extend(b"\xff\r\n");
            line
        })
        .collect();
    assert!(
        kept == printed,
        "{} bytes instead of {}",
        kept.len(),
        printed.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_poll_keeps_what_the_command_has_printed_since_its_start() {
    let door = Door::new().await;
    let script = "echo first; read go; seq 20000; read on";
    let started = exec(&door, "c1", json!({"cmd": script, "yield_time_ms": 250})).await;
    let process = process_id(&started);
    let go = json!({"process_id": process, "chars": "\n", "yield_time_ms": 3000});
    let output = input(&door, "c2", go).await;
    let path = output.facts.expect("it was cut").full_output.unwrap();
    let name = path.strip_prefix("/floe/outputs/").unwrap();
    let kept = std::fs::read_to_string(door.outputs.join(name)).unwrap();
    assert!(kept.starts_with("first\n1\n2\n"), "{}", &kept[..40]);
    assert!(kept.ends_with("20000\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_also_what_ignores_the_request_to_end_and_hides_in_a_session_of_its_own() {
    let mark = mark(2);
    let door = Door::minimal("exec_command", Some(240), None).await;
    let script = format!("trap '' TERM; echo begun; (setsid sleep {mark} &); sleep {mark}");
    let arguments = json!({"cmd": script}).to_string();
    // On a busy machine it may not get so far as to print in that time.
    let mut attempts = (0..20).map(|number| format!("c{number}"));
    loop {
        let id = attempts.next().expect("it prints before its time is up");
        let output = door.call_as(&id, "exec_command", &arguments).await;
        assert_eq!(output.stop_reason, StopReason::Failed);
        if output.output == "begun\n\n[tool timeout: exceeded 240ms]" {
            break;
        }
    }
    gone(&mark).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_is_answered_at_once_and_gives_the_command_its_second_behind_the_answer() {
    let door = Door::new().await;
    let script =
        "trap 'sleep 0.3; echo saved > saved; exit' TERM; echo up; while :; do sleep 0.02; done";
    let cancel = CancellationToken::new();
    let running = door.start(
        "c1",
        "exec_command",
        &json!({"cmd": script}).to_string(),
        &cancel,
    );
    let running = tokio::spawn(running);
    door.sink.until_streamed("c1", "up\n").await;
    cancel.cancel();
    let output = running.await.unwrap().unwrap();
    assert_eq!(output.output, "up\n\n[interrupted: tool aborted by user]");
    let limit = Instant::now() + LONG;
    while !door.workspace.join("saved").exists() {
        assert!(Instant::now() < limit, "it was not asked first");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    door.until_no_command_is_left().await;
}
