//! `floe trace`: what a Session left behind, and what of it was changed.

use std::path::Path;

use crate::support::Place;

fn place_with_a_trace() -> Place {
    let place = Place::new();
    place
        .floe(&["call", "exec_command", r#"{"cmd":"echo hello"}"#])
        .expect(0);
    place
}

fn verify(place: &Place, trace: &Path) -> (i32, String) {
    let ended = place.floe(&["trace", "verify", trace.to_str().unwrap()]);
    (ended.status, ended.stdout)
}

#[test]
fn a_trace_is_listed_shown_and_verified_by_the_name_of_its_session() {
    let place = place_with_a_trace();
    let list = place
        .floe(&["trace", "list", "--output", "json"])
        .expect(0)
        .json();
    let session = list[0]["session"].as_str().unwrap().to_owned();
    assert!(
        place
            .floe(&["trace", "list"])
            .expect(0)
            .stdout
            .contains(&session)
    );
    let shown = place.floe(&["trace", "show", &session]);
    assert!(
        shown.expect(0).stdout.contains("echo hello"),
        "{}",
        shown.stdout
    );
    let verified = place.floe(&["trace", "verify", &session]);
    assert!(
        verified.expect(0).stdout.contains("end anchored"),
        "{}",
        verified.stdout
    );
}

#[test]
fn the_records_are_shown_as_they_are() {
    let place = place_with_a_trace();
    let trace = place.trace();
    let shown = place.floe(&["trace", "show", trace.to_str().unwrap(), "--output", "json"]);
    assert_eq!(
        shown.expect(0).stdout,
        std::fs::read_to_string(&trace).unwrap()
    );
}

#[test]
fn a_flipped_byte_in_any_record_is_found_with_file_and_line() {
    let place = place_with_a_trace();
    let trace = place.trace();
    let bytes = std::fs::read(&trace).unwrap();
    let mut start = 0;
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let mut changed = bytes.clone();
        let middle = start + line.len() / 2;
        changed[middle] = if changed[middle] == b'0' { b'1' } else { b'0' };
        std::fs::write(&trace, &changed).unwrap();
        let (status, output) = verify(&place, &trace);
        let place_of_fault = format!("{}:{}:", trace.display(), index + 1);
        assert!(
            status == 1 && output.contains(&place_of_fault),
            "{place_of_fault} is not in:\n{output}"
        );
        start += line.len();
    }
}

#[test]
fn removed_swapped_and_cut_off_records_are_named() {
    let place = place_with_a_trace();
    let trace = place.trace();
    let text = std::fs::read_to_string(&trace).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let write = |lines: &[&str]| std::fs::write(&trace, lines.concat()).unwrap();

    write(&[&lines[..1], &lines[2..]].concat());
    let (status, output) = verify(&place, &trace);
    assert!(status == 1 && output.contains("missing"), "{output}");

    let mut swapped = lines.clone();
    swapped.swap(1, 2);
    write(&swapped);
    let (status, output) = verify(&place, &trace);
    assert!(status == 1 && output.contains("reordered"), "{output}");

    write(&lines[..lines.len() - 1]);
    let (status, output) = verify(&place, &trace);
    assert!(status == 1 && output.contains("cut off"), "{output}");
}

#[test]
fn a_copy_without_a_head_says_that_its_end_is_not_anchored() {
    let place = place_with_a_trace();
    let copy = place.file("copy.jsonl", std::fs::read(place.trace()).unwrap());
    let (status, output) = verify(&place, &copy);
    assert!(
        status == 0 && output.contains("end not anchored"),
        "{output}"
    );
}

#[test]
fn a_session_that_does_not_exist_is_a_usage_error() {
    let place = Place::new();
    for command in ["show", "verify"] {
        place
            .floe(&["trace", command, "session-nothing"])
            .expect_usage(&["session-nothing"]);
        place
            .floe(&["trace", command, "missing.jsonl"])
            .expect_usage(&["missing.jsonl"]);
    }
    place.floe(&["trace", "list"]).expect(0);
}

#[test]
fn where_no_trace_can_be_written_only_tools_that_read_run() {
    let place = Place::new();
    let no_folder = place.file("no-folder", "").join("state");
    let call = |tool: &str, arguments: &str| {
        let mut command = place.command(&["call", tool, arguments]);
        crate::support::ended(command.env("FLOE_HOME", &no_folder).output().unwrap())
    };
    let refused = call("exec_command", r#"{"cmd":"touch made"}"#);
    refused.expect(1);
    assert!(
        refused.stdout.starts_with("[trace unavailable: "),
        "{}",
        refused.stdout
    );
    assert!(!place.workspace().join("made").exists());
    let read = call("list", "{}");
    assert!(read.expect(0).stderr.contains("Trace"), "{}", read.stderr);
}
