//! What a call wants to reach beyond the sandbox, from the model's arguments to the person's keyboard, and what a person grants
//! on the command line.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Ended, Place};
use crate::terminal::Terminal;

const ASK: &str = "Let it?";

/// A folder that no command sees, with a file in it.
fn outside(place: &Place) -> PathBuf {
    place
        .file("data/table", "forty-two")
        .parent()
        .unwrap()
        .canonicalize()
        .unwrap()
}

fn exec(command: &str, widen: Option<Value>) -> String {
    json!({"cmd": command, "widen": widen}).to_string()
}

fn reading(folder: &Path) -> Value {
    json!({"reason": "the table is there", "read": [folder]})
}

fn at_a_terminal(place: &Place, arguments: &str, further: &[&str]) -> Terminal {
    let call = ["call", "exec_command", arguments];
    Terminal::floe(place, &[&call, further].concat(), &[("NO_COLOR", "1")])
}

/// A conversation of these calls, at a terminal.
fn run_at_a_terminal(place: &Place, calls: &[String]) -> Terminal {
    let turns: Vec<Value> = calls
        .iter()
        .map(|arguments| {
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            json!({"tool_calls": [{"name": "exec_command", "arguments": arguments}]})
        })
        .chain([json!({"text": "The end."})])
        .collect();
    let script = place.file("script.yaml", json!({ "turns": turns }).to_string());
    let model = format!("script:{}", script.display());
    Terminal::floe(
        place,
        &["run", "-m", "Go.", "--model", &model],
        &[("NO_COLOR", "1")],
    )
}

/// The decisions about widenings in the one Trace.
fn decisions(place: &Place) -> Vec<Value> {
    let trace = std::fs::read_to_string(place.trace()).unwrap();
    trace
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["payload"].clone())
        .filter(|payload| payload["type"] == "approval_decision" && payload["kind"] == "widening")
        .collect()
}

#[test]
fn without_a_person_a_widening_is_denied_with_3_whatever_the_approval_mode_and_says_what_to_do() {
    let place = Place::new();
    let outside = outside(&place);
    let arguments = exec(
        &format!("touch ran; cat {}/table", outside.display()),
        Some(reading(&outside)),
    );
    for mode in ["allow-all", "read-only", "always-ask"] {
        let ended = place.floe_reading(
            &["call", "exec_command", &arguments, "--approve", mode],
            b"y\ns\ny\n",
        );
        ended.expect(3);
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!told.contains("forty-two"), "{told}");
        if mode == "allow-all" {
            assert!(told.contains("only a person may allow"), "{told}");
            assert!(told.contains("--allow-read"), "{told}");
        }
    }
    assert!(!place.workspace().join("ran").exists());
}

#[test]
fn a_person_sees_what_is_wanted_and_why_and_lets_this_one_call() {
    let place = Place::new();
    let outside = outside(&place);
    let link = place.workspace().join("link");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let arguments = exec(
        &format!("cat {}/table", outside.display()),
        Some(
            json!({"reason": "the table is there", "read": [link.canonicalize().unwrap().parent().unwrap().join("data")]}),
        ),
    );
    let mut terminal = at_a_terminal(&place, &arguments, &[]);
    terminal.wait_for(ASK);
    terminal.press("\n");
    terminal.wait_for("Please type y or n");
    terminal.press("y\n");
    let (status, screen) = terminal.end();
    assert_eq!(status, 0, "{screen}");
    for words in [
        "asks to reach beyond the sandbox",
        &format!("| read   {}", outside.display()),
        "\"the table is there\" (its own claim, which nobody has checked)",
        "only a person may allow this",
        "forty-two",
    ] {
        assert!(screen.contains(words), "`{words}` is not in:\n{screen}");
    }
    let decisions = decisions(&place);
    assert_eq!(decisions.len(), 1);
    assert_eq!(decisions[0]["by"], "person");
    assert_eq!(decisions[0]["scope"], "once");
    assert_eq!(decisions[0]["widening"]["read"], json!([outside]));
    let trace = place.trace();
    let shown = place.floe(&["trace", "show", trace.to_str().unwrap()]);
    assert!(
        shown
            .expect(0)
            .stdout
            .contains("allow exec_command by person (allow-all), to read /"),
        "{}",
        shown.stdout
    );
}

#[test]
fn no_ends_the_call_and_enter_alone_lets_nothing() {
    let place = Place::new();
    let outside = outside(&place);
    let arguments = exec("touch ran", Some(reading(&outside)));
    let mut terminal = at_a_terminal(&place, &arguments, &[]);
    terminal.wait_for(ASK);
    terminal.press("\n");
    terminal.wait_for("Please type y or n");
    terminal.press("n\n");
    let (status, screen) = terminal.end();
    assert_eq!(status, 3, "{screen}");
    assert!(screen.contains("Tool call denied by user."), "{screen}");
    assert!(!place.workspace().join("ran").exists());
}

#[test]
fn what_is_let_for_the_session_is_not_asked_again_and_what_is_wider_is() {
    let place = Place::new();
    let outside = outside(&place);
    let cat = format!("cat {}/table >> seen", outside.display());
    let calls = [
        exec(&cat, Some(reading(&outside))),
        exec(
            &cat,
            Some(json!({"reason": "only that", "read": [outside.join("table")]})),
        ),
        exec(&cat, None),
        exec(
            "touch wider",
            Some(json!({"reason": "to write", "write": [&outside]})),
        ),
    ];
    let mut terminal = run_at_a_terminal(&place, &calls);
    terminal.wait_for(ASK);
    terminal.press("s\n");
    terminal.wait_for("| change ");
    terminal.wait_for(ASK);
    terminal.press("n\n");
    let (status, screen) = terminal.end();
    assert_eq!(status, 0, "{screen}");
    assert_eq!(screen.matches(ASK).count(), 2, "{screen}");
    let seen = std::fs::read_to_string(place.workspace().join("seen")).unwrap();
    assert_eq!(
        seen, "forty-twoforty-two",
        "a call that does not ask is given nothing"
    );
    assert!(!place.workspace().join("wider").exists());
    let verdicts: Vec<(Value, Value)> = decisions(&place)
        .into_iter()
        .map(|decision| (decision["decision"].clone(), decision["scope"].clone()))
        .collect();
    assert_eq!(
        verdicts,
        [
            (json!("allow"), json!("session")),
            (json!("allow"), json!("session")),
            (json!("deny"), json!("once")),
        ]
    );
}

#[test]
fn a_widening_that_is_refused_three_times_stops_the_run_with_3() {
    let place = Place::new();
    let outside = outside(&place);
    let calls: Vec<String> = ["ls", "ls -l", "ls -a", "touch ran"]
        .iter()
        .map(|command| exec(command, Some(reading(&outside))))
        .collect();
    let mut terminal = run_at_a_terminal(&place, &calls);
    for shown in ["| ls\r", "| ls -l", "| ls -a"] {
        terminal.wait_for(shown);
        terminal.wait_for(ASK);
        terminal.press("n\n");
    }
    let (status, screen) = terminal.end();
    assert_eq!(status, 3, "{screen}");
    assert!(!place.workspace().join("ran").exists());
}

#[test]
fn what_cannot_be_let_is_told_to_the_model_and_nobody_is_asked() {
    let place = Place::new();
    place.workspace_file(".git/hooks/pre-commit", "");
    place.config("toolset: default\n");
    let refused = |widen: Value| -> Ended {
        let ended = place.floe(&["call", "exec_command", &exec("touch ran", Some(widen))]);
        assert!(!place.workspace().join("ran").exists());
        ended
    };
    let hooks = place.workspace().join(".git/hooks");
    for (widen, status, words) in [
        (json!({"reason": "r", "read": ["data"]}), 1, "/widen/read/0"),
        (
            json!({"reason": "r", "read": ["data"]}),
            1,
            "must be absolute",
        ),
        (
            json!({"reason": "r", "read": ["/no/such/path"]}),
            1,
            "nothing is there",
        ),
        (
            json!({"reason": "r", "hosts": ["crates.io", "https://x/"]}),
            1,
            "/widen/hosts/1",
        ),
        (json!({"reason": "r"}), 1, "names no path and no host"),
        (json!({"read": ["/etc"]}), 1, "reason"),
        (
            json!({"reason": "r", "write": [hooks]}),
            3,
            "which is protected",
        ),
        (
            json!({"reason": "r", "read": [place.home()]}),
            3,
            "Floe keeps its own files",
        ),
        (
            json!({"reason": "r", "write": [place.home().join("config.yaml")]}),
            3,
            "Floe keeps its own files",
        ),
    ] {
        let ended = refused(widen.clone());
        ended.expect(status);
        let told = format!("{}{}", ended.stdout, ended.stderr);
        assert!(told.contains(words), "{widen}: {told}");
    }
}

#[test]
fn what_commands_have_anyway_runs_without_a_question() {
    let place = Place::new();
    let widen = json!({"reason": "r", "read": ["/usr/bin", place.workspace()], "write": [place.workspace()]});
    place
        .floe(&["call", "exec_command", &exec("touch ran", Some(widen))])
        .expect(0);
    assert!(place.workspace().join("ran").exists());
}

#[test]
fn paths_on_the_command_line_are_granted_for_one_run() {
    let place = Place::new();
    let outside = outside(&place);
    let folder = outside.to_str().unwrap();
    let read = exec(&format!("cat {folder}/table"), None);
    let write = exec(&format!("echo more >> {folder}/table"), None);
    place.floe(&["call", "exec_command", &read]).expect(1);
    let ended = place.floe(&["call", "exec_command", &read, "--allow-read", folder]);
    assert_eq!(ended.expect(0).stdout.trim_end(), "forty-two");
    place
        .floe(&["call", "exec_command", &write, "--allow-read", folder])
        .expect(1);
    place
        .floe(&["call", "exec_command", &write, "--allow-write", folder])
        .expect(0);
    let text = std::fs::read_to_string(outside.join("table")).unwrap();
    assert_eq!(text, "forty-twomore\n");
    place.floe(&["call", "exec_command", &read]).expect(1);
    // What is granted so is no widening any more.
    let asked = exec(&format!("cat {folder}/table"), Some(reading(&outside)));
    place
        .floe(&["call", "exec_command", &asked, "--allow-read", folder])
        .expect(0);
}

#[test]
fn a_path_that_is_not_there_or_is_floes_own_is_an_error_of_usage() {
    let place = Place::new();
    place.config("toolset: default\n");
    let call = ["call", "exec_command", r#"{"cmd":"touch ran"}"#];
    for flag in ["--allow-read", "--allow-write"] {
        place
            .floe(&[&call[..], &[flag, "/no/such/path"]].concat())
            .expect_usage(&[flag, "/no/such/path", "is there"]);
        let home = place.home();
        place
            .floe(&[&call[..], &[flag, home.to_str().unwrap()]].concat())
            .expect_usage(&[flag, "Floe keeps its own files"]);
    }
    assert!(!place.workspace().join("ran").exists());
}

#[test]
fn a_program_that_prints_permission_denied_is_taken_at_no_word() {
    let place = Place::new();
    let ended = place.floe(&[
        "call",
        "exec_command",
        &exec(
            "echo 'cat: /etc/shadow: Permission denied' >&2; exit 1",
            None,
        ),
    ]);
    ended.expect(1);
    assert_eq!(
        ended.stdout,
        "cat: /etc/shadow: Permission denied\n\n[exit code: 1]\n"
    );
    assert!(decisions(&place).is_empty());
}
