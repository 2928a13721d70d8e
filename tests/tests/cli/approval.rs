//! The question at a terminal: what it shows, what answers it, and what does not.

use crate::support::Place;
use crate::terminal::Terminal;

const ASK: &str = "Allow it?";

fn call(command: &str) -> (Place, Terminal) {
    call_behind("", command)
}

/// The same, where these keys were pressed before it started.
fn call_behind(keys: &str, command: &str) -> (Place, Terminal) {
    let place = Place::new();
    let arguments = serde_json::json!({ "cmd": command }).to_string();
    let terminal = Terminal::floe_behind(
        keys,
        &place,
        &[
            "call",
            "exec_command",
            &arguments,
            "--approve",
            "always-ask",
        ],
        &[("NO_COLOR", "1")],
    );
    (place, terminal)
}

fn made(place: &Place) -> bool {
    place.workspace().join("made").exists()
}

#[test]
fn yes_runs_the_call_and_the_question_showed_all_that_matters() {
    let (place, mut terminal) = call("touch made # \u{1b}[2K\u{202e}");
    terminal.wait_for(ASK);
    assert!(!made(&place), "nothing runs before the answer");
    terminal.press("y\n");
    let (status, screen) = terminal.end();
    assert_eq!(status, 0, "{screen}");
    assert!(made(&place));
    let workspace = place.workspace().canonicalize().unwrap();
    for words in [
        "| touch made # \\x1b[2K\\u{202e}",
        workspace.to_str().unwrap(),
        "no network",
        "execute (commands)",
        "floe call",
        "always-ask",
    ] {
        assert!(screen.contains(words), "`{words}` is not in:\n{screen}");
    }
}

#[test]
fn no_denies_with_3() {
    let (place, mut terminal) = call("touch made");
    terminal.wait_for(ASK);
    terminal.press("n\n");
    let (status, screen) = terminal.end();
    assert_eq!(status, 3, "{screen}");
    assert!(screen.contains("Tool call denied by user."), "{screen}");
    assert!(!made(&place));
}

#[test]
fn enter_alone_never_allows() {
    let (place, mut terminal) = call("touch made");
    terminal.wait_for(ASK);
    terminal.press("\n");
    terminal.wait_for("Please type y or n");
    assert!(!made(&place));
    terminal.press("n\n");
    assert_eq!(terminal.end().0, 3);
    assert!(!made(&place));
}

#[test]
fn keys_typed_before_the_question_do_not_answer_it() {
    let (place, mut terminal) = call_behind("y\n", "touch made");
    terminal.wait_for(ASK);
    terminal.press("n\n");
    let (status, screen) = terminal.end();
    assert_eq!(status, 3, "{screen}");
    assert!(!made(&place));
}

#[test]
fn the_end_of_the_input_denies() {
    let (place, mut terminal) = call("touch made");
    terminal.wait_for(ASK);
    terminal.press("\u{4}");
    assert_eq!(terminal.end().0, 3);
    assert!(!made(&place));
}

#[test]
fn an_interrupt_at_the_question_denies_that_call() {
    let (place, mut terminal) = call("touch made");
    terminal.wait_for(ASK);
    terminal.press("\u{3}");
    let (status, screen) = terminal.end();
    assert_eq!(status, 3, "{screen}");
    assert!(!made(&place));
}

#[test]
fn an_interrupt_while_a_command_runs_ends_it_with_130() {
    let place = Place::new();
    let mut terminal = Terminal::floe(
        &place,
        &[
            "call",
            "exec_command",
            r#"{"cmd":"echo started; sleep 600"}"#,
        ],
        &[],
    );
    terminal.wait_for("started");
    terminal.press("\u{3}");
    assert_eq!(terminal.end().0, 130);
}

#[test]
fn a_question_without_an_answer_is_denied_after_the_configured_time() {
    let place = Place::new();
    place.config("approvals: {timeout_s: 1}\n");
    let arguments = [
        "call",
        "exec_command",
        r#"{"cmd":"touch made"}"#,
        "--approve",
        "always-ask",
    ];
    let terminal = Terminal::floe(&place, &arguments, &[]);
    assert_eq!(terminal.end().0, 3);
    assert!(!made(&place));
}

#[test]
fn an_answer_for_the_session_is_not_asked_again_for_the_very_same_call_and_for_no_other() {
    let place = Place::new();
    let call = |command: &str| {
        format!("  - tool_calls: [{{name: exec_command, arguments: {{cmd: '{command}'}}}}]\n")
    };
    let script = format!(
        "turns:\n{}{}{}  - text: The end.\n",
        call("echo one >> log"),
        call("echo one >> log"),
        call("echo two >> log")
    );
    let script = place.file("script.yaml", script);
    let model = format!("script:{}", script.display());
    let mut terminal = Terminal::floe(
        &place,
        &[
            "run",
            "-m",
            "x",
            "--model",
            &model,
            "--approve",
            "always-ask",
        ],
        &[("NO_COLOR", "1")],
    );
    terminal.wait_for(ASK);
    terminal.press("s\n");
    terminal.wait_for("| echo two >> log");
    terminal.wait_for(ASK);
    terminal.press("n\n");
    let (status, screen) = terminal.end();
    assert_eq!(status, 0, "{screen}");
    assert_eq!(screen.matches(ASK).count(), 2, "{screen}");
    assert_eq!(
        std::fs::read_to_string(place.workspace().join("log")).unwrap(),
        "one\none\n"
    );
}

#[test]
fn without_a_terminal_there_is_nobody_to_ask() {
    let place = Place::new();
    let ended = place.floe_reading(
        &[
            "call",
            "exec_command",
            r#"{"cmd":"touch made"}"#,
            "--approve",
            "always-ask",
        ],
        b"y\ny\ny\n",
    );
    ended.expect(3);
    assert!(!made(&place));
}
