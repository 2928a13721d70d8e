//! A tool asks the person at a terminal: what the question shows, what answers it, and what does not. And the plan that a run ends with.

use serde_json::{Value, json};

use crate::support::Place;
use crate::terminal::Terminal;

/// The line that waits for an answer to a question with choices.
const ANSWER: &str = "then Enter (Ctrl-C interrupts): ";
const ALLOW: &str = "[n] no: ";

fn which() -> Value {
    json!({
        "header": "Database",
        "question": "Which database?",
        "options": [{"label": "sqlite", "description": "in memory"}, {"label": "postgres"}],
        "default": "sqlite",
    })
}

fn ask(place: &Place, arguments: &Value) -> Terminal {
    ask_behind("", place, arguments)
}

/// The same, where these keys were pressed before it started.
fn ask_behind(keys: &str, place: &Place, arguments: &Value) -> Terminal {
    let arguments = arguments.to_string();
    let line = ["call", "ask_clarification", &arguments];
    Terminal::floe_behind(keys, place, &line, &[("NO_COLOR", "1")])
}

/// `floe run` of a script at a terminal.
fn run(place: &Place, script: &str, flags: &[&str]) -> Terminal {
    let script = place.file("script.yaml", script);
    let model = format!("script:{}", script.display());
    let mut line = vec!["run", "-m", "go", "--model", &model];
    line.extend(flags);
    Terminal::floe(place, &line, &[("NO_COLOR", "1")])
}

#[test]
fn a_number_chooses_and_the_question_showed_all_there_is_to_choose() {
    let place = Place::new();
    let mut terminal = ask(&place, &which());
    terminal.wait_for(ANSWER);
    terminal.press("2\n");
    let (status, screen) = terminal.end();
    assert_eq!(status, 0, "{screen}");
    for words in [
        "ask_clarification asks you",
        "| Database",
        "| Which database?",
        "[1] sqlite (suggested)",
        "in memory",
        "[2] postgres",
        "asked by   you, with floe call",
        "The person chose: postgres",
    ] {
        assert!(screen.contains(words), "`{words}` is not in:\n{screen}");
    }
}

#[test]
fn enter_alone_chooses_nothing_not_even_what_is_suggested() {
    let place = Place::new();
    let mut terminal = ask(&place, &which());
    terminal.wait_for(ANSWER);
    terminal.press("\n");
    terminal.wait_for("Nothing is chosen by Enter alone");
    terminal.press("sqlite\n");
    let (status, screen) = terminal.end();
    assert_eq!(status, 0, "{screen}");
    assert!(screen.contains("The person chose: sqlite"), "{screen}");
}

#[test]
fn several_are_chosen_and_words_are_passed_on() {
    let place = Place::new();
    let mut several = which();
    several["multi_select"] = json!(true);
    let mut terminal = ask(&place, &several);
    terminal.wait_for(ANSWER);
    terminal.press("1,2\n");
    let (_, screen) = terminal.end();
    assert!(
        screen.contains("The person chose: sqlite, postgres"),
        "{screen}"
    );
    let mut terminal = ask(&place, &json!({"question": "Where to?"}));
    terminal.wait_for("Type your answer");
    terminal.press("to the north\n");
    let (status, screen) = terminal.end();
    assert_eq!(status, 0, "{screen}");
    assert!(
        screen.contains("The person answered: to the north"),
        "{screen}"
    );
}

#[test]
fn characters_that_hide_or_reverse_are_written_out_on_the_question() {
    let place = Place::new();
    let arguments = json!({
        "question": "Delete\u{1b}[2J nothing\u{202e}?",
        "options": [{"label": "no\u{200b}", "description": "\u{9b}1A"}, {"label": "yes\r"}],
    });
    let mut terminal = ask(&place, &arguments);
    terminal.wait_for(ANSWER);
    terminal.press("1\n");
    let (_, screen) = terminal.end();
    for words in [
        "| Delete\\x1b[2J nothing\\u{202e}?",
        "[1] no\\u{200b}",
        "\\x9b1A",
    ] {
        assert!(screen.contains(words), "`{words}` is not in:\n{screen:?}");
    }
}

#[test]
fn keys_typed_before_the_question_do_not_answer_it() {
    let place = Place::new();
    let mut terminal = ask_behind("1\n", &place, &which());
    terminal.wait_for(ANSWER);
    terminal.press("2\n");
    let (_, screen) = terminal.end();
    assert!(screen.contains("The person chose: postgres"), "{screen}");
}

#[test]
fn an_interrupt_at_a_question_interrupts_and_chooses_nothing() {
    let place = Place::new();
    let mut terminal = ask(&place, &which());
    terminal.wait_for(ANSWER);
    terminal.press("\u{3}");
    let (status, screen) = terminal.end();
    assert_eq!(status, 130, "{screen}");
    assert!(!screen.contains("The person"), "{screen}");
}

#[test]
fn the_end_of_the_input_is_no_answer() {
    let place = Place::new();
    let mut terminal = ask(&place, &which());
    terminal.wait_for(ANSWER);
    terminal.press("\u{4}");
    let (status, screen) = terminal.end();
    assert_eq!(status, 1, "{screen}");
    assert!(
        screen.contains("ended the input without an answer"),
        "{screen}"
    );
}

#[test]
fn a_question_nobody_answers_in_the_configured_time_fails_and_chooses_nothing() {
    let place = Place::new();
    place.config("approvals: {timeout_s: 1}\n");
    let (status, screen) = ask(&place, &which()).end();
    assert_eq!(status, 1, "{screen}");
    assert!(screen.contains("Nobody answered within 1 s."), "{screen}");
    assert!(!screen.contains("The person chose"), "{screen}");
}

#[test]
fn without_a_terminal_the_model_is_told_at_once_to_state_an_assumption() {
    let place = Place::new();
    let arguments = which().to_string();
    let ended = place.floe_reading(&["call", "ask_clarification", &arguments], b"1\n1\n");
    ended.expect(1);
    for words in [
        "[CLARIFICATION NEEDED] Which database?",
        "Options: sqlite, postgres",
        "Nobody can be asked",
        "Make a reasonable assumption",
    ] {
        assert!(ended.stdout.contains(words), "{}", ended.stdout);
    }
}

#[test]
fn the_answer_of_a_run_goes_to_the_model_and_into_the_trace() {
    let place = Place::new();
    let script = format!(
        "turns:\n- tool_calls: [{{name: ask_clarification, arguments: {}}}]\n- expect: ['^The person chose: postgres$']\n  text: Thanks.\n",
        which()
    );
    let mut terminal = run(&place, &script, &[]);
    terminal.wait_for(ANSWER);
    terminal.press("postgres\n");
    let (status, screen) = terminal.end();
    assert_eq!(status, 0, "{screen}");
    assert!(screen.contains("asked by   the model script:"), "{screen}");
    let trace = std::fs::read_to_string(place.trace()).unwrap();
    let events: Vec<Value> = trace
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["payload"].take())
        .filter(|payload| {
            payload["type"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("question"))
        })
        .collect();
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(events[0]["text"], "Which database?");
    assert_eq!(events[1]["source"], "user");
    assert_eq!(events[1]["selected"], json!(["postgres"]));
}

#[test]
fn questions_of_tools_and_of_the_door_come_one_after_the_other() {
    let place = Place::new();
    let question = which();
    let script = format!(
        "turns:\n- tool_calls:\n  - {{name: ask_clarification, arguments: {question}}}\n  - {{name: exec_command, arguments: {{cmd: touch made}}}}\n- text: Done.\n"
    );
    let mut terminal = run(&place, &script, &["--approve", "read-only"]);
    let (question_card, door_card) = ("[2] postgres", "| touch made");
    let first = terminal.wait_for_any(&[ANSWER, ALLOW]);
    let not_yet = [door_card, question_card][first];
    assert!(!terminal.shown().contains(not_yet), "{}", terminal.shown());
    terminal.press(["2\n", "y\n"][first]);
    terminal.wait_for([ALLOW, ANSWER][first]);
    terminal.press(["y\n", "2\n"][first]);
    let (status, screen) = terminal.end();
    assert_eq!(status, 0, "{screen}");
    assert!(place.workspace().join("made").exists());
    assert!(screen.contains("The person chose: postgres"), "{screen}");
}

const PLANS: &str = "turns:
- tool_calls: [{name: exec_command, arguments: {cmd: touch made}}]
- tool_calls: [{name: plan_exit, arguments: {plan: '1. Make it.'}}]
- text: This is not asked for.
";

#[test]
fn a_run_in_plan_mode_prints_the_plan_changes_nothing_and_ends_well() {
    let place = Place::new();
    let script = place.file("script.yaml", PLANS);
    let model = format!("script:{}", script.display());
    let ended = place.floe(&["run", "-m", "go", "--model", &model, "--mode", "plan"]);
    ended.expect(0);
    assert_eq!(ended.stdout, "1. Make it.\n");
    assert!(
        ended.stderr.contains("waits for your decision"),
        "{}",
        ended.stderr
    );
    assert!(!place.workspace().join("made").exists());
    let trace = place.trace();
    place
        .floe(&["trace", "verify", trace.to_str().unwrap()])
        .expect(0);
    let records = std::fs::read_to_string(trace).unwrap();
    assert!(records.contains(r#""type":"plan_proposed""#), "{records}");
    assert!(!records.contains(r#""kind":"plan""#), "nobody has decided");
}

#[test]
fn a_plan_at_a_terminal_is_printed_as_well_and_nobody_is_asked() {
    let place = Place::new();
    let (status, screen) = run(&place, PLANS, &["--mode", "plan", "--approve", "read-only"]).end();
    assert_eq!(status, 0, "{screen}");
    assert!(screen.contains("1. Make it."), "{screen}");
    assert!(!place.workspace().join("made").exists());
}

#[test]
fn programs_read_the_plan_from_its_event() {
    let place = Place::new();
    let script = place.file("script.yaml", PLANS);
    let model = format!("script:{}", script.display());
    let flags = ["--mode", "plan", "--output", "json"];
    let mut line = vec!["run", "-m", "go", "--model", &model];
    line.extend(flags);
    let ended = place.floe(&line);
    ended.expect(0);
    let plans: Vec<Value> = ended
        .json_lines()
        .into_iter()
        .filter(|message| message["payload"]["type"] == "plan_proposed")
        .collect();
    assert_eq!(plans.len(), 1);
    assert_eq!(plans[0]["payload"]["plan"], "1. Make it.");
}

/// Runs a script that ends with a plan, and gives the Session's name as the hint on standard error names it.
fn planned(place: &Place) -> String {
    let script = place.file("script.yaml", PLANS);
    let model = format!("script:{}", script.display());
    let ended = place.floe(&["run", "-m", "go", "--model", &model, "--mode", "plan"]);
    ended.expect(0);
    let (_, hint) = ended.stderr.split_once("floe run --resume ").unwrap();
    hint.split_whitespace().next().unwrap().to_owned()
}

/// Goes on with it by another script.
fn resume(place: &Place, id: &str, turns: &str, flags: &[&str]) -> crate::support::Ended {
    let script = place.file("next.yaml", format!("turns:\n{turns}"));
    let model = format!("script:{}", script.display());
    let mut line = vec!["run", "--resume", id, "--model", &model];
    line.extend(flags);
    place.floe(&line)
}

fn decisions_on_plans(place: &Place) -> Vec<Value> {
    let trace = std::fs::read_to_string(place.trace()).unwrap();
    trace
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["payload"].take())
        .filter(|payload| payload["kind"] == "plan")
        .collect()
}

#[test]
fn an_approved_plan_is_carried_out_by_the_same_session_in_build_mode() {
    let place = Place::new();
    let id = planned(&place);
    let turns = "- expect: ['\\A\\[plan_exit\\]\\n1\\. Make it\\.\\z']
  tool_calls: [{name: exec_command, arguments: {cmd: touch made}}]
- text: Made.
";
    let ended = resume(&place, &id, turns, &["--mode", "build"]);
    ended.expect(0);
    assert_eq!(ended.stdout, "Made.\n");
    assert!(place.workspace().join("made").exists());
    let decisions = decisions_on_plans(&place);
    assert_eq!(decisions.len(), 1, "{decisions:?}");
    assert_eq!(decisions[0]["decision"], "allow");
    assert_eq!(decisions[0]["by"], "person");
    place.floe(&["trace", "verify", &id]).expect(0);
    let records = std::fs::read_to_string(place.trace()).unwrap();
    assert_eq!(records.matches(r#""type":"session_meta""#).count(), 1);
    // It is decided on once, and the mode is kept.
    resume(&place, &id, "- text: x\n", &["--mode", "build"]).expect_usage(&["No plan of", &id]);
    let turns = "- tool_calls: [{name: exec_command, arguments: {cmd: touch again}}]\n- text: x\n";
    resume(&place, &id, turns, &["-m", "on"]).expect(0);
    assert!(place.workspace().join("again").exists());
}

#[test]
fn a_plan_that_is_rejected_or_sent_back_leaves_the_session_in_plan_mode() {
    let place = Place::new();
    let id = planned(&place);
    let another = "- tool_calls: [{name: plan_exit, arguments: {plan: '2. Make less.'}}]\n";
    let ended = resume(&place, &id, another, &["--revise", "Less of it."]);
    ended.expect(0);
    assert_eq!(ended.stdout, "2. Make less.\n");
    let ended = resume(&place, &id, "- text: never\n", &["--reject"]);
    ended.expect(0);
    assert_eq!(ended.stdout, "");
    let tries = "- tool_calls: [{name: exec_command, arguments: {cmd: touch made}}]
- expect: ['denied by policy']
  text: No.
";
    let ended = resume(&place, &id, tries, &["-m", "on"]);
    ended.expect(0);
    assert_eq!(ended.stdout, "No.\n");
    assert!(!place.workspace().join("made").exists());
    let decided: Vec<Value> = decisions_on_plans(&place)
        .into_iter()
        .map(|mut decision| decision["decision"].take())
        .collect();
    assert_eq!(decided, ["deny", "deny"]);
    let records = std::fs::read_to_string(place.trace()).unwrap();
    assert!(records.contains("Less of it."), "{records}");
    place.floe(&["trace", "verify", &id]).expect(0);
}

#[test]
fn what_cannot_go_on_is_said_before_anything_is_written() {
    let place = Place::new();
    let id = planned(&place);
    let before = std::fs::read(place.trace()).unwrap();
    let turns = "- text: x\n";
    resume(&place, &id, turns, &[]).expect_usage(&["-m TEXT", "--mode build"]);
    resume(&place, &id, turns, &["--mode", "plan"]).expect_usage(&["-m TEXT"]);
    resume(&place, &id, turns, &["-m", "x", "--mode", "build"]).expect_usage(&["keeps its mode"]);
    resume(&place, "session-1999", turns, &["--reject"]).expect_usage(&["session-1999"]);
    let other = tempfile::tempdir().unwrap();
    let elsewhere = ["--reject", "--workspace", other.path().to_str().unwrap()];
    resume(&place, &id, turns, &elsewhere).expect_usage(&["worked in", "Workspace"]);
    place
        .floe(&["run", "--reject"])
        .expect_usage(&["--resume <ID>"]);
    assert_eq!(std::fs::read(place.trace()).unwrap(), before);
    // Somebody changed what the model was told.
    let changed = String::from_utf8(before)
        .unwrap()
        .replace("1. Make it.", "1. Break it.");
    std::fs::write(place.trace(), changed).unwrap();
    resume(&place, &id, turns, &["--mode", "build"]).expect_usage(&["does not verify"]);
}
