//! The 16 golden vectors of spec/environment.md section 6, byte for byte, through the real components, the real sandbox and real
//! commands. Chunking of the content is not part of the contract; the note is always one delta.

mod door;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use door::{Door, LONG, gone};
use floe_environment::{Answer, Approver, Question, ToolCallOutput};
use floe_protocol::{ApprovalMode, ModelMsg, Phase, StopReason};
use tokio_util::sync::CancellationToken;

/// What a vector says: the content, the note in a delta of its own, and the stop reason.
struct Vector<'text> {
    content: &'text str,
    note: &'text str,
    stop: StopReason,
}

fn check(door: &Door, output: &ToolCallOutput, vector: &Vector<'_>) {
    let seen = door.sink.seen(&output.tool_call_id);
    let Vector {
        content,
        note,
        stop,
    } = vector;
    assert_eq!(seen.text(), format!("{content}{note}"));
    if !note.is_empty() {
        assert_eq!(seen.deltas.last(), Some(&Some((*note).to_owned())));
    }
    assert_eq!(seen.phases.first(), Some(&Phase::Start));
    assert_eq!(seen.phases.last(), Some(&Phase::Stop));
    assert_eq!(seen.stop, Some(*stop));
    let [
        ModelMsg::ToolCallOutput {
            output: complete,
            stop_reason,
            ..
        },
    ] = seen.completes.as_slice()
    else {
        panic!("one complete output: {seen:?}");
    };
    assert_eq!(*complete, format!("{content}{note}"));
    assert_eq!(stop_reason, stop);
    assert_eq!(output.output, *complete);
    let decisions = door.sink.decisions();
    let of_this_call = |id: &String| *id == output.tool_call_id;
    let made = decisions
        .iter()
        .filter(|one| of_this_call(&one.tool_call_id));
    assert_eq!(made.count(), 1);
}

async fn exec_vector(script: &str, content: &str, note: &str, stop: StopReason) {
    let door = Door::minimal("exec_command", None, None).await;
    let output = door.exec(script).await;
    check(
        &door,
        &output,
        &Vector {
            content,
            note,
            stop,
        },
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_1_a_silent_command_is_no_output() {
    exec_vector("true", "", "[no output]", StopReason::Completed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_2_output_that_ends_in_a_newline_and_an_exit_code() {
    exec_vector(
        "printf 'a\\nb\\n'; exit 3",
        "a\nb\n",
        "\n[exit code: 3]",
        StopReason::Failed,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_3_an_exit_code_without_output_has_no_leading_newline() {
    exec_vector("exit 3", "", "[exit code: 3]", StopReason::Failed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_4_the_truncation_marker_stands_before_the_exit_code() {
    let door = Door::minimal("exec_command", None, Some(5)).await;
    let output = door.exec("printf 'hello world'; exit 1").await;
    let vector = Vector {
        content: "hello",
        note: "\n[output truncated: exceeded 5 chars]\n[exit code: 1]",
        stop: StopReason::Failed,
    };
    check(&door, &output, &vector);
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_5_a_command_that_is_killed_names_the_signal() {
    exec_vector(
        "kill -9 $$",
        "",
        "[terminated by signal SIGKILL]",
        StopReason::Failed,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_6_a_timeout_keeps_what_was_printed() {
    let door = Door::minimal("exec_command", Some(200), None).await;
    let started = Instant::now();
    let vector = Vector {
        content: "begin\n",
        note: "\n[tool timeout: exceeded 200ms]",
        stop: StopReason::Failed,
    };
    // On a machine under load the command may not have begun after 200 ms; that is a right answer too, and proves nothing.
    for attempt in 0..10 {
        let id = format!("c{attempt}");
        let arguments = r#"{"cmd":"echo begin; sleep 600"}"#;
        let output = door.call_as(&id, "exec_command", arguments).await;
        if output.output.starts_with("begin") {
            check(&door, &output, &vector);
            assert!(started.elapsed() < Duration::from_secs(30));
            return;
        }
        assert_eq!(output.output, "[tool timeout: exceeded 200ms]");
    }
    panic!("the command never began within 200 ms");
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_7_a_user_abort_before_the_timer_is_aborted() {
    let door = Door::minimal("exec_command", Some(30_000), None).await;
    let cancel = CancellationToken::new();
    let running = door.start(
        "c1",
        "exec_command",
        r#"{"cmd":"echo begin; sleep 600"}"#,
        &cancel,
    );
    door.sink.until_streamed("c1", "begin\n").await;
    cancel.cancel();
    let output = tokio::time::timeout(LONG, running).await.unwrap().unwrap();
    let vector = Vector {
        content: "begin\n",
        note: "\n[interrupted: tool aborted by user]",
        stop: StopReason::Aborted,
    };
    check(&door, &output, &vector);
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_8_a_background_child_ends_with_its_command() {
    let door = Door::minimal("exec_command", None, None).await;
    let started = Instant::now();
    let output = door.exec("sleep 3021.25 & echo hello").await;
    let vector = Vector {
        content: "hello\n",
        note: "",
        stop: StopReason::Completed,
    };
    check(&door, &output, &vector);
    assert!(started.elapsed() < Duration::from_secs(20));
    gone("3021.25").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_9_a_command_that_still_runs_says_how_to_reach_it() {
    let door = Door::minimal("exec_command", None, None).await;
    let arguments = r#"{"cmd":"printf x; sleep 600","yield_time_ms":1000}"#;
    let output = door.call("exec_command", arguments).await;
    let id = output
        .output
        .split("process_id ")
        .nth(1)
        .and_then(|rest| rest.split(';').next())
        .expect("an id");
    assert_eq!(id.len(), "proc-".len() + 8, "{id}");
    assert!(
        id.bytes().skip(5).all(|byte| byte.is_ascii_hexdigit()),
        "{id}"
    );
    let note = format!(
        "\n[process running with process_id {id}; use input_command to send input or poll for output]"
    );
    let vector = Vector {
        content: "x",
        note: &note,
        stop: StopReason::Completed,
    };
    check(&door, &output, &vector);
    door.commands.dispose().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_10_a_name_that_nothing_has() {
    let door = Door::new().await;
    let output = door.call("nope", "{}").await;
    let vector = Vector {
        content: "Unknown tool: nope",
        note: "",
        stop: StopReason::Failed,
    };
    check(&door, &output, &vector);
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_11_empty_arguments() {
    let door = Door::minimal("exec_command", None, None).await;
    let output = door.call("exec_command", "").await;
    let vector = Vector {
        content: "Tool call \"exec_command\" failed: the arguments field is empty. Re-issue the call with a complete JSON object.",
        note: "",
        stop: StopReason::Failed,
    };
    check(&door, &output, &vector);
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_12_arguments_that_are_no_object() {
    for arguments in ["[]", "5"] {
        let door = Door::minimal("exec_command", None, None).await;
        let output = door.call("exec_command", arguments).await;
        let vector = Vector {
            content: "Missing required argument \"cmd\" for exec_command.",
            note: "",
            stop: StopReason::Failed,
        };
        check(&door, &output, &vector);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_13_a_tool_that_throws_keeps_what_it_wrote() {
    let door = Door::new().await;
    let output = door.call("yields-ab-then-boom", "{}").await;
    let vector = Vector {
        content: "ab",
        note: "\n[tool error] boom",
        stop: StopReason::Failed,
    };
    check(&door, &output, &vector);
    assert_eq!(
        door.sink.seen("c1").phases,
        [Phase::Start, Phase::Delta, Phase::Delta, Phase::Stop]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_14_images_of_a_failed_tool_are_dropped() {
    let door = Door::new().await;
    let output = door.call("images-failed", "{}").await;
    let vector = Vector {
        content: "text",
        note: "",
        stop: StopReason::Failed,
    };
    check(&door, &output, &vector);
    assert!(output.images.is_empty());
    assert!(door.sink.seen("c1").images_streamed.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_15_images_without_text_follow_no_output_in_a_delta_of_their_own() {
    let door = Door::new().await;
    let output = door.call("images-only", "{}").await;
    let seen = door.sink.seen("c1");
    assert_eq!(seen.deltas, [Some("[no output]".to_owned()), None]);
    assert_eq!(seen.images_streamed, output.images);
    assert_eq!(output.images.len(), 1);
    assert!(output.images[0].starts_with("data:image/png;base64,"));
    assert_eq!(output.output, "[no output]");
    assert_eq!(output.stop_reason, StopReason::Completed);
    let [ModelMsg::ToolCallOutput { images, .. }] = seen.completes.as_slice() else {
        panic!("one complete output: {seen:?}");
    };
    assert_eq!(images.as_ref(), Some(&output.images));
}

struct SaysNo;

#[async_trait]
impl Approver for SaysNo {
    async fn decide(&self, _question: &Question) -> Answer {
        Answer::Deny
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_16_a_call_denied_by_the_user_has_no_partials() {
    let door = Door::with(|_, options| {
        options.approval_mode = ApprovalMode::AlwaysAsk;
        options.approver = Some(Arc::new(SaysNo));
    })
    .await;
    let output = door.exec("touch made").await;
    let seen = door.sink.seen("c1");
    assert!(seen.phases.is_empty(), "{seen:?}");
    assert_eq!(seen.completes.len(), 1);
    assert_eq!(output.output, "Tool call denied by user.");
    assert_eq!(output.stop_reason, StopReason::Aborted);
    assert!(!door.workspace.join("made").exists());
}
