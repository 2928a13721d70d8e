//! `floe run`: a conversation from a script, and how it ends.

use crate::support::{Ended, Place};

fn play(place: &Place, script: &str, further: &[&str]) -> Ended {
    let script = place.file("script.yaml", script);
    let model = format!("script:{}", script.display());
    place.floe(&[&["run", "-m", "Go.", "--model", &model], further].concat())
}

const TWO_TURNS: &str = "turns:
  - text: I look.
    tool_calls:
      - {name: exec_command, arguments: {cmd: 'echo made > made; echo done'}}
  - expect: ['^done\\n$']
    text: It is there.
";

#[test]
fn a_conversation_prints_what_the_model_says_and_on_standard_error_what_ran_and_where_the_trace_is()
{
    let place = Place::new();
    let ended = play(&place, TWO_TURNS, &[]);
    ended.expect(0);
    assert_eq!(ended.stdout, "I look.\nIt is there.\n");
    assert_eq!(
        std::fs::read_to_string(place.workspace().join("made")).unwrap(),
        "made\n"
    );
    let trace = place.trace();
    for words in [
        "exec_command echo made > made; echo done",
        "2 turns, 1 call",
        trace.to_str().unwrap(),
        "floe trace verify",
    ] {
        assert!(
            ended.stderr.contains(words),
            "`{words}` is not in:\n{}",
            ended.stderr
        );
    }
}

#[test]
fn the_hash_that_a_run_prints_is_the_head_of_its_trace() {
    let place = Place::new();
    let ended = play(&place, TWO_TURNS, &[]);
    let hash = ended
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("Hash"))
        .unwrap()
        .trim();
    let trace = place.trace();
    place
        .floe(&["trace", "verify", trace.to_str().unwrap(), "--head", hash])
        .expect(0);
    place
        .floe(&[
            "trace",
            "verify",
            trace.to_str().unwrap(),
            "--head",
            &"0".repeat(64),
        ])
        .expect(1);
}

#[test]
fn with_json_every_message_is_a_line_and_the_deltas_of_an_output_make_its_complete_text() {
    let place = Place::new();
    let ended = play(&place, TWO_TURNS, &["--output", "json"]);
    let messages = ended.expect(0).json_lines();
    let of = |kind: &str| -> Vec<&serde_json::Value> {
        messages
            .iter()
            .map(|message| &message["payload"])
            .filter(|payload| payload["type"] == kind)
            .collect()
    };
    let deltas: String = of("partial_tool_call_output")
        .iter()
        .filter_map(|payload| payload["output"].as_str())
        .collect();
    let complete = of("tool_call_output");
    assert_eq!(complete.len(), 1);
    assert_eq!(complete[0]["output"], deltas.as_str());
    assert_eq!(of("approval_decision").len(), 1);
    assert_eq!(of("tool_list_ready").len(), 1);
}

#[test]
fn single_calls_that_fail_do_not_make_the_run_fail() {
    let script = "turns:\n  - tool_calls:\n      - {name: exec_command, arguments: {cmd: 'exit 3'}}\n      - {name: frobnicate}\n  - text: Well.\n";
    play(&Place::new(), script, &[]).expect(0);
}

#[test]
fn an_expectation_that_is_missed_ends_with_1_and_names_turn_position_pattern_and_output() {
    let script = "turns:\n  - tool_calls: [{name: exec_command, arguments: {cmd: echo something else}}]\n  - expect: ['^nothing$']\n    text: x\n";
    let ended = play(&Place::new(), script, &[]);
    ended.expect(1);
    for words in ["turn 2", "output 1", "^nothing$", "something else"] {
        assert!(
            ended.stderr.contains(words),
            "`{words}` is not in:\n{}",
            ended.stderr
        );
    }
}

#[test]
fn a_run_that_reaches_its_turns_ends_with_1() {
    let place = Place::new();
    place.config("max_turns: 1\n");
    play(&place, TWO_TURNS, &[]).expect(1);
}

#[test]
fn refusals_that_repeat_stop_the_run_with_3() {
    let call = "  - tool_calls: [{name: exec_command, arguments: {cmd: touch made}}]\n";
    let place = Place::new();
    let ended = play(
        &place,
        &format!("turns:\n{}", call.repeat(8)),
        &["--approve", "deny-all"],
    );
    ended.expect(3);
    assert!(!place.workspace().join("made").exists());
}

#[test]
fn in_plan_mode_no_command_runs() {
    let place = Place::new();
    let ended = play(
        &place,
        "turns:\n  - tool_calls: [{name: exec_command, arguments: {cmd: touch made}}]\n  - text: x\n",
        &["--mode", "plan"],
    );
    ended.expect(0);
    assert!(!place.workspace().join("made").exists());
    assert!(
        ended.stderr.contains("Tool call denied by policy."),
        "{}",
        ended.stderr
    );
}

#[test]
fn an_agent_brings_its_tools_and_its_turns() {
    let place = Place::new();
    place.file(
        "state/agents/reader/system_config.yaml",
        "system_prompt: Read.\nmax_turns: 5\ntools:\n  builtin:\n    - {name: list, description: Lists., parameters: {type: object}, permission: read-only}\n    - {name: frobnicate, description: x, parameters: {type: object}}\n",
    );
    let ended = play(
        &place,
        "turns:\n  - tool_calls: [{name: exec_command, arguments: {cmd: touch made}}, {name: list}]\n  - {expect: ['^Unknown tool: exec_command', null], text: x}\n",
        &["--agent", "reader"],
    );
    ended.expect(0);
    assert!(
        ended.stderr.contains("frobnicate"),
        "a name that nothing provides is told: {}",
        ended.stderr
    );
}

#[test]
fn the_model_may_be_named_by_the_environment_or_the_configuration() {
    let place = Place::new();
    let script = place.file("script.yaml", "turns: [{text: hello}]\n");
    let model = format!("script:{}", script.display());
    let by_environment = place
        .command(&["run", "-m", "x"])
        .env("FLOE_MODEL", &model)
        .output()
        .unwrap();
    assert_eq!(
        crate::support::ended(by_environment).expect(0).stdout,
        "hello\n"
    );
    place.config(&format!("model: {model}\n"));
    assert_eq!(place.floe(&["run", "-m", "x"]).expect(0).stdout, "hello\n");
}

#[test]
fn the_example_project_is_fixed_and_its_trace_verifies() {
    let place = Place::new();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap();
    let mut command = std::process::Command::new(root.join("examples/run.sh"));
    command.arg(crate::support::binary());
    place.prepare(&mut command);
    command.env("TMPDIR", place.workspace());
    let ended = crate::support::ended(command.output().unwrap());
    ended.expect(0);
    for words in [
        "The check passes.",
        "check: the report is as expected",
        "verified",
    ] {
        let all = format!("{}{}", ended.stdout, ended.stderr);
        assert!(all.contains(words), "`{words}` is not in:\n{all}");
    }
}

#[test]
fn a_slow_login_shell_does_not_use_up_the_first_commands_time() {
    let place = Place::new();
    place.file("person/.bash_profile", "sleep 1\n");
    place.file(
        "state/agents/hasty/system_config.yaml",
        "system_prompt: x\ntools:\n  builtin:\n    - name: exec_command\n      description: Runs.\n      permission: execute\n      \
         timeoutMs: 500\n      parameters: {type: object, properties: {cmd: {type: string}}, required: [cmd]}\n",
    );
    let script = "turns:\n  - tool_calls: [{name: exec_command, arguments: {cmd: 'echo begin; sleep 60'}}]\n  \
                  - expect: ['^begin\\n']\n    text: ok\n";
    play(&place, script, &["--agent", "hasty"]).expect(0);
}

#[test]
fn what_to_type_about_a_plan_names_the_model_and_rejecting_it_needs_none() {
    let place = Place::new();
    let turns = "turns:\n- tool_calls: [{name: plan_exit, arguments: {plan: '1. Make it.'}}]\n";
    let model = format!("script:{}", place.file("plan.yaml", turns).display());
    let ended = place.floe(&["run", "-m", "go", "--mode", "plan", "--model", &model]);
    ended.expect(0);
    let (_, hint) = ended.stderr.split_once("floe run --resume ").unwrap();
    let (id, hint) = hint.split_once(' ').unwrap();
    assert!(
        hint.starts_with(&format!("--model {model} --mode build")),
        "{hint}"
    );
    let ended = place.floe(&["run", "--resume", id, "--reject"]);
    ended.expect(0);
    assert!(
        ended.stderr.contains("The plan is rejected"),
        "{}",
        ended.stderr
    );
    place.floe(&["trace", "verify", id]).expect(0);
}
