//! The golden vectors of spec/environment.md section 6 as far as the close-out alone decides them, and its other rules.

use super::*;
use proptest::prelude::*;

fn close(
    max: i64,
    truncation: Truncation,
    deltas: &[&str],
    ending: Ending,
) -> (Vec<String>, Closing) {
    let mut close_out = CloseOut::new(max, truncation, None);
    let mut streamed: Vec<String> = deltas
        .iter()
        .map(|delta| close_out.write(delta).to_owned())
        .filter(|delta| !delta.is_empty())
        .collect();
    let closing = close_out.finish(ending);
    streamed.extend(closing.deltas.iter().cloned());
    assert_eq!(
        streamed.concat(),
        closing.output,
        "stream and complete differ"
    );
    (streamed, closing)
}

fn head(max: i64, deltas: &[&str], ending: Ending) -> (Vec<String>, Closing) {
    close(max, Truncation::Head, deltas, ending)
}

fn reported(stop_reason: StopReason, note: &str) -> Ending {
    Ending {
        returned: SelfReport {
            stop_reason: Some(stop_reason),
            note: (!note.is_empty()).then(|| note.to_owned()),
            images: Vec::new(),
        },
        ..Ending::default()
    }
}

fn vector(max: i64, body: &[&str], ending: Ending, deltas: &[&str], stop: StopReason) {
    let (streamed, closing) = head(max, body, ending);
    assert_eq!(streamed, deltas);
    assert_eq!(closing.stop_reason, stop);
}

#[test]
fn silence_is_no_output() {
    vector(
        16000,
        &[],
        Ending::default(),
        &["[no output]"],
        StopReason::Completed,
    );
}

#[test]
fn silence_of_a_failed_tool_is_no_output_too() {
    vector(
        16000,
        &[""],
        reported(StopReason::Failed, ""),
        &["[no output]"],
        StopReason::Failed,
    );
}

#[test]
fn a_note_comes_after_exactly_one_newline_even_after_a_newline() {
    vector(
        16000,
        &["a\nb\n"],
        reported(StopReason::Failed, "[exit code: 3]"),
        &["a\nb\n", "\n[exit code: 3]"],
        StopReason::Failed,
    );
}

#[test]
fn a_note_without_a_body_has_no_leading_newline() {
    vector(
        16000,
        &[],
        reported(StopReason::Failed, "[exit code: 3]"),
        &["[exit code: 3]"],
        StopReason::Failed,
    );
    vector(
        16000,
        &[],
        reported(StopReason::Failed, "[terminated by signal SIGKILL]"),
        &["[terminated by signal SIGKILL]"],
        StopReason::Failed,
    );
}

#[test]
fn the_truncation_marker_comes_before_the_tools_note_in_one_delta() {
    vector(
        5,
        &["hello world"],
        reported(StopReason::Failed, "[exit code: 1]"),
        &[
            "hello",
            "\n[output truncated: exceeded 5 chars]\n[exit code: 1]",
        ],
        StopReason::Failed,
    );
}

#[test]
fn a_timeout_keeps_the_output_and_is_failed() {
    vector(
        16000,
        &["begin\n"],
        Ending {
            timed_out: Some(200),
            ..Ending::default()
        },
        &["begin\n", "\n[tool timeout: exceeded 200ms]"],
        StopReason::Failed,
    );
}

#[test]
fn a_user_interrupt_beats_the_timeout() {
    vector(
        16000,
        &["begin\n"],
        Ending {
            timed_out: Some(200),
            interrupted: true,
            ..Ending::default()
        },
        &["begin\n", "\n[interrupted: tool aborted by user]"],
        StopReason::Aborted,
    );
}

#[test]
fn the_timeout_beats_a_self_reported_abort() {
    vector(
        16000,
        &[],
        Ending {
            timed_out: Some(200),
            ..reported(StopReason::Aborted, "")
        },
        &["[tool timeout: exceeded 200ms]"],
        StopReason::Failed,
    );
}

#[test]
fn a_completed_self_report_while_interrupted_is_aborted_and_keeps_its_note() {
    vector(
        16000,
        &["x"],
        Ending {
            interrupted: true,
            ..reported(StopReason::Completed, "[a note]")
        },
        &["x", "\n[a note]\n[interrupted: tool aborted by user]"],
        StopReason::Aborted,
    );
}

#[test]
fn a_throw_while_interrupted_is_aborted() {
    vector(
        16000,
        &[],
        Ending {
            interrupted: true,
            error: Some("boom".into()),
            ..Ending::default()
        },
        &["[interrupted: tool aborted by user]"],
        StopReason::Aborted,
    );
}

#[test]
fn a_throw_after_a_delta_keeps_the_delta() {
    vector(
        16000,
        &["ab"],
        Ending {
            error: Some("boom".into()),
            ..Ending::default()
        },
        &["ab", "\n[tool error] boom"],
        StopReason::Failed,
    );
}

#[test]
fn a_running_command_says_how_to_reach_it() {
    let note = "[process running with process_id proc-0a1b2c3d; use input_command to send input or poll for output]";
    vector(
        16000,
        &["x"],
        reported(StopReason::Completed, note),
        &["x", &format!("\n{note}")],
        StopReason::Completed,
    );
}

fn with_images(stop_reason: StopReason) -> Ending {
    Ending {
        returned: SelfReport {
            stop_reason: Some(stop_reason),
            note: None,
            images: vec!["data:image/png;base64,AA==".into()],
        },
        ..Ending::default()
    }
}

#[test]
fn images_of_a_failed_tool_are_dropped() {
    let (streamed, closing) = head(16000, &["no"], with_images(StopReason::Failed));
    assert_eq!(streamed, ["no"]);
    assert!(closing.images.is_empty());
}

#[test]
fn images_without_text_are_accompanied_by_no_output() {
    let (streamed, closing) = head(16000, &[], with_images(StopReason::Completed));
    assert_eq!(streamed, ["[no output]"]);
    assert_eq!(closing.images.len(), 1);
}

#[test]
fn an_unconfined_command_says_so_before_its_own_note() {
    vector(
        16000,
        &["x"],
        Ending {
            host_notes: vec![UNCONFINED.into()],
            ..reported(StopReason::Failed, "[exit code: 1]")
        },
        &[
            "x",
            "\n[UNCONFINED: ran without the sandbox]\n[exit code: 1]",
        ],
        StopReason::Failed,
    );
}

#[test]
fn head_tail_changes_nothing_up_to_the_budget() {
    let (_, closing) = close(10, Truncation::HeadTail, &["0123456789"], Ending::default());
    assert_eq!(closing.output, "0123456789");
    assert_eq!(closing.facts.truncated, None);
}

#[test]
fn head_tail_keeps_both_ends_and_the_marker_between_them() {
    let (streamed, closing) = close(
        10,
        Truncation::HeadTail,
        &["0123456789A"],
        Ending::default(),
    );
    assert_eq!(
        streamed,
        [
            "01234",
            "\n[output truncated: kept first 5 and last 5 of 11 chars]\n6789A"
        ]
    );
    assert_eq!(closing.facts.truncated, Some(true));
}

#[test]
fn head_tail_puts_the_exit_note_after_the_tail_as_a_delta_of_its_own() {
    let (streamed, _) = close(
        10,
        Truncation::HeadTail,
        &["0123456789A"],
        reported(StopReason::Failed, "[exit code: 3]"),
    );
    assert_eq!(
        streamed,
        [
            "01234",
            "\n[output truncated: kept first 5 and last 5 of 11 chars]\n6789A",
            "\n[exit code: 3]"
        ]
    );
}

#[test]
fn head_tail_adds_no_second_newline_beside_one() {
    let (_, closing) = close(
        10,
        Truncation::HeadTail,
        &["0123\n5\n789A"],
        Ending::default(),
    );
    assert_eq!(
        closing.output,
        "0123\n[output truncated: kept first 5 and last 5 of 11 chars]\n789A"
    );
}

struct Recorder(
    std::sync::Arc<std::sync::Mutex<String>>,
    Option<&'static str>,
);

impl KeepWhole for Recorder {
    fn record(&mut self, _recording: std::sync::Arc<dyn Recording>) {}
    fn append(&mut self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }
    fn finish(&mut self) -> Kept {
        self.1.map_or(Kept::Not("the disk is full".into()), |path| {
            Kept::At(path.into())
        })
    }
}

fn kept(truncation: Truncation, deltas: &[&str], path: Option<&'static str>) -> (String, Closing) {
    let whole = std::sync::Arc::default();
    let recorder = Recorder(std::sync::Arc::clone(&whole), path);
    let mut close_out = CloseOut::new(10, truncation, Some(Box::new(recorder)));
    for delta in deltas {
        close_out.write(delta);
    }
    let closing = close_out.finish(Ending::default());
    let text = whole.lock().unwrap().clone();
    (text, closing)
}

#[test]
fn the_path_of_the_whole_output_is_the_line_after_the_marker() {
    let (whole, closing) = kept(
        Truncation::HeadTail,
        &["012", "3456", "789", "A", "B"],
        Some("/floe/outputs/x.txt"),
    );
    assert_eq!(whole, "0123456789AB");
    assert_eq!(
        closing.output,
        "01234\n[output truncated: kept first 5 and last 5 of 12 chars]\n[full output: /floe/outputs/x.txt]\n789AB"
    );
    assert_eq!(
        closing.facts.full_output.as_deref(),
        Some("/floe/outputs/x.txt")
    );
}

#[test]
fn a_whole_output_that_could_not_be_kept_changes_no_outcome() {
    let (_, closing) = kept(Truncation::HeadTail, &["0123456789A"], None);
    assert_eq!(closing.stop_reason, StopReason::Completed);
    assert!(
        closing
            .output
            .contains("\n[full output not kept: the disk is full]\n")
    );
    assert_eq!(closing.facts.full_output, None);
}

#[test]
fn in_head_mode_the_path_is_a_fact_and_not_a_note() {
    let (whole, closing) = kept(
        Truncation::Head,
        &["01234", "56789A"],
        Some("/floe/outputs/x.txt"),
    );
    assert_eq!(whole, "0123456789A");
    assert_eq!(
        closing.output,
        "0123456789\n[output truncated: exceeded 10 chars]"
    );
    assert!(closing.facts.full_output.is_some());
}

#[test]
fn an_output_that_fits_is_not_kept_apart() {
    let (whole, closing) = kept(
        Truncation::HeadTail,
        &["0123456789"],
        Some("/floe/outputs/x.txt"),
    );
    assert_eq!(whole, "");
    assert_eq!(closing.facts.full_output, None);
}

#[test]
fn what_a_ring_dropped_is_told_in_place_where_the_end_is_not_kept() {
    let mut close_out = CloseOut::new(0, Truncation::Head, None);
    close_out.write("a\n");
    assert_eq!(
        close_out.dropped(7),
        "[... 7 chars of earlier output dropped ...]\n"
    );
    assert_eq!(close_out.dropped(0), "");
    close_out.write("b");
    let closing = close_out.finish(Ending::default());
    assert_eq!(
        closing.output,
        "a\n[... 7 chars of earlier output dropped ...]\nb"
    );
}

#[test]
fn what_a_ring_dropped_is_told_on_a_line_of_its_own() {
    let mut close_out = CloseOut::new(0, Truncation::Head, None);
    close_out.write("open");
    assert_eq!(
        close_out.dropped(7),
        "\n[... 7 chars of earlier output dropped ...]\n"
    );
}

#[test]
fn what_a_ring_dropped_is_counted_where_the_end_is_kept() {
    let mut close_out = CloseOut::new(10, Truncation::HeadTail, None);
    close_out.write("0123456");
    assert_eq!(close_out.dropped(1000), "");
    close_out.write("wxyz");
    let closing = close_out.finish(Ending::default());
    assert_eq!(
        closing.output,
        "01234\n[output truncated: kept first 5 and last 4 of 1011 chars]\nwxyz"
    );
}

#[test]
fn progress_is_told_only_where_the_output_no_longer_streams() {
    let mut close_out = CloseOut::new(10, Truncation::HeadTail, None);
    close_out.write("0123");
    assert_eq!(close_out.silent_progress(), None);
    close_out.write("456");
    assert_eq!(close_out.silent_progress(), Some(7));
}

proptest! {
    #[test]
    fn the_stream_equals_the_complete_output_for_every_chunking_and_ending(
        deltas in proptest::collection::vec("[a-b\u{20ac}\u{1f600}\n]{0,6}", 0..10),
        max in -1i64..16,
        head_tail in any::<bool>(),
        interrupted in any::<bool>(),
        timed_out in any::<bool>(),
        error in any::<bool>(),
        note in proptest::option::of("[a-z]{0,4}"),
    ) {
        let truncation = if head_tail { Truncation::HeadTail } else { Truncation::Head };
        let ending = Ending {
            returned: SelfReport { stop_reason: None, note, images: vec![] },
            error: error.then(|| "boom".into()),
            timed_out: timed_out.then_some(5),
            interrupted,
            ..Ending::default()
        };
        let borrowed: Vec<&str> = deltas.iter().map(String::as_str).collect();
        // `close` itself asserts that both are equal.
        let (_, closing) = close(max, truncation, &borrowed, ending);
        prop_assert!(!closing.output.is_empty());
        prop_assert!(closing.deltas.iter().all(|delta| !delta.is_empty()));
    }
}
