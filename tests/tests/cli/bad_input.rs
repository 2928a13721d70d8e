//! Bad input: each gives a message that names the thing, the place and the remedy, the right exit status, and nothing half-done.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::support::Place;

fn call_fails(arguments: &str, message: &str) {
    let place = Place::new();
    let ended = place.floe_reading(&["call", "exec_command", "-"], arguments.as_bytes());
    ended.expect(1);
    assert!(
        ended.stdout.contains(message),
        "`{message}` is not in:\n{}",
        ended.stdout
    );
}

#[test]
fn an_unknown_tool_fails() {
    let ended = Place::new().floe(&["call", "frobnicate", "{}"]);
    ended.expect(1);
    assert!(
        ended.stdout.starts_with("Unknown tool: frobnicate"),
        "{}",
        ended.stdout
    );
    assert_eq!(
        ended.stderr,
        "`floe tools --toolset all` lists the tools that there are.\n"
    );
}

#[test]
fn a_misspelt_option_is_named_with_what_it_resembles() {
    let ended = Place::new().floe(&["call", "list", "--worksapce", "."]);
    ended.expect(2);
    assert!(
        ended.stderr.contains("'--worksapce'") && ended.stderr.contains("'--workspace'"),
        "{}",
        ended.stderr
    );
}

#[test]
fn arguments_whose_quotes_the_shell_took_are_answered_with_how_to_quote() {
    let ended = Place::new().floe(&["call", "list", "{path:.}"]);
    ended.expect(1);
    assert!(ended.stderr.contains("single quotes"), "{}", ended.stderr);
}

#[test]
fn arguments_that_are_no_object_of_the_right_shape_fail_with_the_texts_of_the_contract() {
    call_fails("{\"cmd\": ", "JSON");
    call_fails("[1]", "Missing required argument \"cmd\" for exec_command.");
    call_fails("3", "Missing required argument \"cmd\" for exec_command.");
    call_fails(
        r#"{"cmd":["ls"]}"#,
        "Missing required argument \"cmd\" for exec_command.",
    );
    call_fails(
        r#"{"cmd":"ls","frob":1}"#,
        "Unknown argument \"frob\" for exec_command; it takes",
    );
}

#[test]
fn empty_arguments_fail() {
    let ended = Place::new().floe(&["call", "exec_command", ""]);
    ended.expect(1);
    assert_ne!(ended.stdout, "");
}

#[test]
fn arguments_of_10_megabytes_fail_with_the_limit() {
    let arguments = format!("{{\"cmd\":\"{}\"}}", "x".repeat(10_000_000));
    let message = format!(
        "Arguments of exec_command are too long: {} bytes (limit 4194304).",
        arguments.len()
    );
    call_fails(&arguments, &message);
}

#[test]
fn arguments_nested_10_000_deep_fail() {
    let arguments = format!("{{\"cmd\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    call_fails(&arguments, "JSON");
}

#[test]
fn a_file_of_arguments_that_is_missing_is_a_usage_error() {
    let place = Place::new();
    place
        .floe(&["call", "list", "@missing.json"])
        .expect_usage(&["missing.json"]);
    assert!(place.state().is_empty(), "{:?}", place.state());
}

#[test]
fn a_workspace_that_cannot_be_one_is_a_usage_error_and_leaves_nothing() {
    let place = Place::new();
    place.config("approve: allow-all\n");
    let a_file = place.file("a-file", "");
    let inside = place.home().join("inside");
    std::fs::create_dir_all(&inside).unwrap();
    let around = place.home().parent().unwrap().to_owned();
    let missing = place.workspace().join("missing");
    for (workspace, word) in [
        (missing.as_path(), "missing"),
        (a_file.as_path(), "a-file"),
        (std::path::Path::new("/"), "/"),
        (inside.as_path(), "FLOE_HOME"),
        (around.as_path(), "FLOE_HOME"),
    ] {
        let workspace = workspace.to_str().unwrap();
        place
            .floe(&["call", "list", "{}", "--workspace", workspace])
            .expect_usage(&[word]);
        place
            .floe(&[
                "run",
                "-m",
                "x",
                "--model",
                "script:missing",
                "--workspace",
                workspace,
            ])
            .expect(2);
    }
    assert!(place.state().is_empty(), "{:?}", place.state());
}

#[test]
fn a_workspace_that_cannot_be_read_is_a_usage_error() {
    if rustix::process::geteuid().is_root() {
        // Nothing is unreadable for root.
        return;
    }
    let place = Place::new();
    let closed = place.workspace().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o0)).unwrap();
    place
        .floe(&[
            "call",
            "list",
            "{}",
            "--workspace",
            closed.to_str().unwrap(),
        ])
        .expect_usage(&["closed"]);
}

#[test]
fn a_link_to_a_folder_is_a_workspace() {
    let place = Place::new();
    place.workspace_file("hello.txt", "");
    let link = place.workspace().with_file_name("link");
    symlink(place.workspace(), &link).unwrap();
    let ended = place.floe(&["call", "list", "{}", "--workspace", link.to_str().unwrap()]);
    assert!(ended.expect(0).stdout.contains("hello.txt"));
}

#[test]
fn the_home_folder_is_no_workspace_unless_it_is_named() {
    let place = Place::new();
    let person = place.workspace().with_file_name("person");
    let mut command = place.command(&["call", "list", "{}"]);
    let unnamed = crate::support::ended(command.current_dir(&person).output().unwrap());
    unnamed.expect_usage(&["--workspace"]);
    place
        .floe(&[
            "call",
            "list",
            "{}",
            "--workspace",
            person.to_str().unwrap(),
        ])
        .expect(0);
}

#[test]
fn a_configuration_with_a_fault_names_file_line_key_and_remedy() {
    let place = Place::new();
    place.config("approve: allow-all\nshell:\n  netwrok: off\n");
    for command in [
        &["call", "list", "{}"][..],
        &["tools"],
        &["run", "-m", "x", "--model", "script:x"],
    ] {
        place.floe(command).expect_usage(&[
            "config.yaml:3",
            "shell.netwrok",
            "Did you mean `network`?",
        ]);
    }
    assert!(place.state().is_empty(), "{:?}", place.state());
}

#[test]
fn a_project_that_widens_names_file_line_key_and_remedy() {
    let place = Place::new();
    place.workspace_file(".floe/config.yaml", "shell:\n  extra_read: [/]\n");
    place.floe(&["call", "list", "{}"]).expect_usage(&[
        ".floe/config.yaml:2",
        "shell.extra_read",
        "A project may only narrow.",
    ]);
    assert!(place.state().is_empty(), "{:?}", place.state());
}

#[test]
fn config_check_names_every_fault_and_passes_a_sound_file() {
    let place = Place::new();
    place.floe(&["config", "check"]).expect(0);
    let reference = place.floe(&["config"]);
    place.config(&reference.expect(0).stdout);
    place.floe(&["config", "check"]).expect(0);
    place.config("modle: x\nmax_turns: some\n");
    let ended = place.floe(&["config", "check"]);
    ended.expect(2);
    assert!(
        ended.stderr.contains("config.yaml:1") && ended.stderr.contains("Did you mean `model`?"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_run_without_a_model_says_where_it_looked_and_how_to_set_one_up() {
    let place = Place::new();
    place.floe(&["run", "-m", "hello"]).expect_usage(&[
        "--model",
        "FLOE_MODEL",
        "config.yaml",
        "script:FILE",
        "openai:NAME",
    ]);
    assert!(place.state().is_empty(), "{:?}", place.state());
}

#[test]
fn a_model_that_cannot_be_opened_is_a_usage_error() {
    let place = Place::new();
    let broken = place.file("broken.yaml", "turns:\n  - text: a\n    tool_call: []\n");
    let broken = format!("script:{}", broken.display());
    for (model, words) in [
        ("script:missing.yaml", &["missing.yaml"][..]),
        (broken.as_str(), &["broken.yaml:3", "tool_call"]),
        ("openai:gpt", &["OPENAI_API_KEY"]),
        ("gpt", &["script:FILE", "openai:NAME"]),
        ("anthropic:claude", &["anthropic"]),
    ] {
        place
            .floe(&["run", "-m", "hello", "--model", model])
            .expect_usage(words);
    }
    assert!(place.state().is_empty(), "{:?}", place.state());
}

#[test]
fn an_agent_that_does_not_exist_or_is_not_complete_is_a_usage_error() {
    let place = Place::new();
    let script = place.file("s.yaml", "turns: [{text: hi}]\n");
    let model = format!("script:{}", script.display());
    let run = ["run", "-m", "hello", "--model", &model, "--agent"];
    place
        .floe(&[run.as_slice(), &["nobody"]].concat())
        .expect_usage(&["nobody", "system_config.yaml"]);
    place.floe(&[run.as_slice(), &["../x"]].concat()).expect(2);
    let config = "system_prompt: x\ntools:\n  builtin:\n    - name: list\n      description: d\n";
    place.file("state/agents/half/system_config.yaml", config);
    place
        .floe(&[run.as_slice(), &["half"]].concat())
        .expect_usage(&["system_config.yaml:4", "parameters"]);
}

#[test]
fn what_is_no_component_of_this_contract_is_refused_with_its_name_and_leaves_no_file() {
    let place = Place::new();
    let out = place.workspace().join("out");
    let garbage = place.file("garbage.wasm", "hello");
    let empty_component = place.file("empty.wasm", b"\0asm\x0d\0\x01\0");
    let truncated = place.file("truncated.wasm", b"\0asm\x0d\0\x01\0\x07\xff\xff");
    for module in [&garbage, &empty_component, &truncated] {
        let ended = place.floe(&[
            "precompile",
            "--out",
            out.to_str().unwrap(),
            module.to_str().unwrap(),
        ]);
        ended.expect(1);
        assert!(
            ended
                .stderr
                .contains(module.file_name().unwrap().to_str().unwrap()),
            "{}",
            ended.stderr
        );
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0);
    }
}

#[test]
fn usage_errors_end_with_2() {
    let place = Place::new();
    for arguments in [
        &["run"][..],
        &["call"],
        &["frobnicate"],
        &[],
        &["trace", "verify", "x", "--head", "zz"],
    ] {
        place.floe(arguments).expect(2);
    }
}
