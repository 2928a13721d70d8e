//! `floe run` and `floe call` with commands in the background.

use std::time::{Duration, Instant};

use crate::support::{Ended, Place, ended};

const BUILD: &str = "turns:
  - text: Starting.
    tool_calls:
      - {name: exec_command, arguments: {cmd: 'sleep 0.5; echo built; exit 3', run_in_background: true}}
  - expect: ['running in background with process_id proc-']
    text: I wait.
  - text: It failed.
";

const SERVER: &str = "turns:
  - text: Starting.
    tool_calls:
      - {name: exec_command, arguments: {cmd: 'touch up; sleep 3929.75', run_in_background: true}}
  - text: It runs.
";

fn arguments(place: &Place, script: &str, further: &[&str]) -> Vec<String> {
    let script = place.file("script.yaml", script);
    let model = format!("script:{}", script.display());
    ["run", "-m", "Go.", "--model", &model]
        .iter()
        .chain(further)
        .map(|word| word.to_string())
        .collect()
}

fn play(place: &Place, script: &str, further: &[&str]) -> Ended {
    let arguments = arguments(place, script, further);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    place.floe(&arguments)
}

#[test]
fn a_run_goes_on_when_a_command_in_the_background_has_ended_after_the_last_answer() {
    let place = Place::new();
    let ended = play(&place, BUILD, &[]);
    ended.expect(0);
    assert_eq!(ended.stdout, "Starting.\nI wait.\nIt failed.\n");
    for words in [
        "waiting for `sleep 0.5; echo built; exit 3`",
        "has ended: exit code 3",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    let trace = place.trace();
    let shown = place.floe(&["trace", "show", trace.to_str().unwrap()]);
    let event = shown.stdout.find("background_task_done").unwrap();
    let text = shown
        .stdout
        .find("user: [background_task_done]\\n")
        .unwrap();
    assert!(event < text, "{}", shown.stdout);
    place
        .floe(&["trace", "verify", trace.to_str().unwrap()])
        .expect(0);
}

#[test]
fn the_stream_has_the_report_as_the_model_reads_it() {
    let place = Place::new();
    let ended = play(&place, BUILD, &["--output", "json"]);
    let messages = ended.expect(0).json_lines();
    let report = messages
        .iter()
        .find(|message| message["payload"]["sender"] == "harness")
        .unwrap();
    let text = report["payload"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("[background_task_done]\nkind: command\nid: proc-"),
        "{text}"
    );
    assert!(
        text.contains("\nstatus: failed\ndetail: exit code 3\noutput:\nbuilt\n"),
        "{text}"
    );
    let event = messages
        .iter()
        .find(|message| message["payload"]["type"] == "background_task_done")
        .unwrap();
    assert_eq!(event["payload"]["detail"], "exit code 3");
    assert_eq!(event["payload"]["output"], "built\n");
}

#[test]
fn a_run_that_is_not_to_wait_ends_the_command_and_names_it() {
    let place = Place::new();
    let ended = play(&place, SERVER, &["--background-wait", "0"]);
    ended.expect(0);
    assert!(
        ended.stderr.contains("was still running and was ended"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("waiting for"), "{}", ended.stderr);
}

#[test]
fn an_interrupt_ends_the_wait_and_the_command() {
    let place = Place::new();
    let arguments = arguments(&place, SERVER, &[]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let child = place.spawn(&mut place.command(&arguments));
    let limit = Instant::now() + Duration::from_secs(60);
    while !place.workspace().join("up").exists() {
        assert!(Instant::now() < limit, "the command did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = ended(child.wait_with_output().unwrap());
    ended.expect(130);
}

#[test]
fn a_single_call_says_that_its_background_command_ends_with_it() {
    let place = Place::new();
    let arguments = r#"{"cmd":"sleep 3929.25","run_in_background":true}"#;
    let ended = place.floe(&["call", "exec_command", arguments]);
    ended.expect(0);
    assert!(
        ended.stdout.contains("it ends with this call"),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stderr.contains("was still running and was ended"),
        "{}",
        ended.stderr
    );
}
