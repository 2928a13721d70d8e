//! `shell`: what runs, what it prints, and what it may reach.

mod deciding;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use floe_protocol::Permission;
use floe_sandbox::WorkspaceMode;
use serde_json::json;

use crate::rig::{Answer, Rig, definition};

/// What a command prints is shown up to so many characters, and then its head and its tail.
const SHOWN: usize = 30_000;

async fn shell(rig: &Rig, command: &str) -> Answer {
    rig.call("shell", json!({ "command": command })).await
}

#[test]
fn shell_has_a_name_a_description_and_a_command_in_its_schema() {
    let definition = definition("shell");
    assert_eq!(definition.name, "shell");
    assert!(definition.description.contains("confined"));
    assert_eq!(definition.permission, Permission::Execute);
    assert_eq!(definition.parameters["required"], json!(["command"]));
    assert_eq!(
        definition.parameters["properties"]["command"]["type"],
        "string"
    );
}

#[tokio::test]
async fn echo_hello_prints_hello() {
    let rig = Rig::new();
    let answer = shell(&rig, "echo hello").await;
    assert_eq!(answer.completed(), "hello\n");
    assert_eq!(answer.facts.exit_code, Some(0));
}

#[tokio::test]
async fn a_missing_an_empty_and_a_wrongly_typed_command_are_errors() {
    let rig = Rig::new();
    for arguments in [
        json!({}),
        json!({"command": ""}),
        json!({"command": ["ls"]}),
        json!({"command": {"a": 1}}),
        json!({"command": null}),
    ] {
        let answer = rig.call("shell", arguments).await;
        assert_eq!(
            answer.failed(),
            "Missing required argument \"command\" for shell."
        );
    }
}

#[tokio::test]
async fn a_command_that_ends_with_another_code_than_0_has_failed_and_shows_it_with_both_outputs() {
    let rig = Rig::new();
    let answer = shell(&rig, "echo out; echo err >&2; exit 7").await;
    assert_eq!(answer.failed(), "out\n[stderr]\nerr\n\n[exit code: 7]");
    assert_eq!(answer.facts.exit_code, Some(7));
    let silent = shell(&rig, "exit 3").await;
    assert_eq!(silent.failed(), "[exit code: 3]");
}

#[tokio::test]
async fn a_command_that_succeeds_shows_both_outputs_too() {
    let rig = Rig::new();
    let answer = shell(&rig, "echo err >&2; printf out").await;
    assert_eq!(answer.completed(), "out\n[stderr]\nerr\n");
}

#[tokio::test]
async fn a_command_that_is_not_there_is_told_with_a_hint() {
    let rig = Rig::new();
    let answer = shell(&rig, "no-such-program-anywhere").await;
    let text = answer.failed();
    assert!(
        text.contains("[exit code: 127]\n[127: a command was not found;"),
        "{text}"
    );
    assert!(text.contains("no-such-program-anywhere"), "{text}");
}

#[tokio::test]
async fn a_key_in_the_environment_of_the_host_is_not_seen_and_path_and_home_are() {
    let rig = Rig::with(|options| {
        let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        options.command_environment.person_home = None;
        options.command_environment.host = vec![
            pair("PATH", "/usr/bin:/bin"),
            pair("OPENAI_API_KEY", "MARKER-key"),
            pair("AWS_SECRET_ACCESS_KEY", "MARKER-secret"),
            pair("GITHUB_TOKEN", "MARKER-token"),
            pair("DATABASE_URL", "MARKER-url"),
        ];
    });
    let answer = shell(
        &rig,
        "env; cat /proc/self/environ /proc/$PPID/environ | tr '\\0' '\\n'",
    )
    .await;
    let text = &answer.text;
    assert!(!text.contains("MARKER"), "{text}");
    assert!(text.contains("PATH=/usr/bin:/bin\n"), "{text}");
    assert!(text.contains("HOME=/floe/home"), "{text}");
}

#[test]
fn what_commands_inherit_names_no_key_secret_or_token() {
    let allowed = floe_command::EnvironmentOptions::default().allow;
    assert!(!allowed.is_empty());
    for name in allowed {
        for word in ["KEY", "SECRET", "TOKEN", "PASS", "CREDENTIAL", "AUTH"] {
            assert!(!name.contains(word), "{name}");
        }
        assert_ne!(name, "*");
    }
}

#[tokio::test]
async fn a_command_has_60_seconds_unless_it_asks_for_up_to_600() {
    let rig = Rig::new();
    let timeout = &definition("shell").parameters["properties"]["timeout_ms"];
    let told = timeout["description"].as_str().unwrap();
    assert!(told.contains("Default 60000, at most 600000"), "{told}");
    for (timeout_ms, is_taken) in [
        (json!(1), true),
        (json!(600_000), true),
        (json!("600000"), true),
        (json!(null), true),
        (json!(600_001), false),
        (json!(0), false),
        (json!(-1), false),
        (json!(1.5), false),
        (json!(9_007_199_254_740_992_u64), false),
        (json!("soon"), false),
    ] {
        let arguments = json!({"command": "true", "timeout_ms": timeout_ms});
        let answer = rig.call("shell", arguments).await;
        let is_refused = answer
            .text
            .starts_with("Invalid argument \"/timeout_ms\" for shell: ");
        assert_eq!(is_refused, !is_taken, "{timeout_ms}: {answer:?}");
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
    let rig = Rig::new();
    // Time enough for the sandbox to be built and the command to begin, on a busy machine too.
    let arguments = json!({"command": "sleep 1009 & echo begun; sleep 1010", "timeout_ms": 10_000});
    let answer = rig.call("shell", arguments).await;
    assert_eq!(answer.failed(), "begun\n\n[tool timeout: exceeded 10000ms]");
    until_gone(&["sleep 1009", "sleep 1010"]).await;
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_ends_with_it() {
    let rig = Rig::new();
    let answer = shell(&rig, "sleep 1011 & setsid sleep 1012 & echo done").await;
    assert_eq!(answer.completed(), "done\n");
    until_gone(&["sleep 1011", "sleep 1012"]).await;
}

/// Waits until no process of this machine has one of these command lines.
async fn until_gone(commands: &[&str]) {
    let is_there = || {
        let lines = fs::read_dir("/proc").unwrap().flatten();
        let mut lines = lines.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.any(|line| {
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            commands.contains(&line.trim_end())
        })
    };
    for _ in 0..3000 {
        if !is_there() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("one of {commands:?} still runs");
}

#[tokio::test]
async fn exactly_30_000_characters_are_shown_and_of_one_more_the_first_and_the_last() {
    let rig = Rig::new();
    let print = |count: usize| format!("head -c {count} /dev/zero | tr '\\0' x");
    let whole = shell(&rig, &print(SHOWN)).await;
    assert_eq!(whole.completed(), "x".repeat(SHOWN));
    assert_eq!(whole.facts.truncated, None);
    let cut = shell(&rig, &print(SHOWN + 1)).await;
    let marker = "\n[output truncated: kept first 15000 and last 15000 of 30001 chars]\n";
    assert!(cut.completed().contains(marker), "{}", cut.text.len());
    assert_eq!(cut.facts.truncated, Some(true));
}

#[tokio::test]
async fn an_output_of_many_mib_is_shown_by_head_and_tail_and_kept_whole() {
    let rig = Rig::new();
    let answer = shell(
        &rig,
        "echo begin; head -c 3000000 /dev/zero | tr '\\0' 'x' | fold -w 100; echo; echo end",
    )
    .await;
    let text = answer.completed();
    assert!(
        text.starts_with("begin\nxxx") && text.contains("\nend\n"),
        "{}",
        text.len()
    );
    assert!(text.chars().count() < SHOWN + 500, "{}", text.len());
    let kept = answer.facts.full_output.clone().unwrap();
    assert!(
        text.contains(&format!("[full output: {kept}]")),
        "{}",
        &text[text.len() - 300..]
    );
    let counted = shell(&rig, &format!("wc -c < {kept}")).await;
    let size: usize = counted.completed().trim().parse().unwrap();
    assert!(size > 3_000_000, "{size}");
    let found = rig
        .call("grep", json!({"pattern": "^end$", "path": kept}))
        .await;
    assert!(found.completed().contains("end"), "{found:?}");
}

#[tokio::test]
async fn a_read_only_sandbox_lets_commands_read_and_lets_none_write() {
    let rig = Rig::with(|options| options.policy.workspace = WorkspaceMode::ReadOnly);
    rig.write("a", "kept\n");
    assert_eq!(shell(&rig, "cat a; ls").await.completed(), "kept\na\n");
    for command in [
        "echo x > a",
        "touch made",
        "rm a",
        "mv a b",
        "mkdir d",
        "ln -s a l",
        "chmod 777 a",
    ] {
        shell(&rig, command).await.failed();
    }
    assert_eq!(shell(&rig, "cat a; ls").await.completed(), "kept\na\n");
    // What a command needs for itself it may write.
    shell(&rig, "echo x > /tmp/x && cat /tmp/x")
        .await
        .completed();
}

#[tokio::test]
async fn a_shell_reads_its_command_as_a_shell_does() {
    let rig = Rig::new();
    for (command, printed) in [
        ("echo 'a; b > c && d | e'", "a; b > c && d | e\n"),
        ("printf '%s\\n' a b | sort -r | head -1", "b\n"),
        ("false || echo or", "or\n"),
        ("true && echo and", "and\n"),
        ("echo one\necho two", "one\ntwo\n"),
        ("X=1 sh -c 'echo $X'", "1\n"),
        ("echo \"$(echo inner)\" `echo tick`", "inner tick\n"),
        ("cat <(echo substituted)", "substituted\n"),
        ("echo x | tee made && cat made", "x\nx\n"),
        ("echo both 2>&1", "both\n"),
    ] {
        assert_eq!(shell(&rig, command).await.completed(), printed, "{command}");
    }
    let long = "é".repeat(200);
    let answer = shell(&rig, &format!("echo {long}")).await;
    assert_eq!(answer.completed(), format!("{long}\n"));
}

#[tokio::test]
async fn no_way_of_writing_a_command_leads_out_of_the_walls() {
    let rig = Rig::new();
    let outside = rig.outside();
    fs::write(outside.join("secret"), "MARKER").unwrap();
    symlink(outside.join("secret"), rig.path("link")).unwrap();
    let secret = outside.join("secret").display().to_string();
    for command in [
        format!("cat {secret}"),
        "cat link".to_owned(),
        "cat ../outside/secret".to_owned(),
        format!("cat < {secret}"),
        format!("find {} -type f -exec cat {{}} +", outside.display()),
        format!("cat /proc/self/root{secret}"),
        format!("GIT_PAGER='cat {secret}' git -p --no-optional-locks help -a"),
        format!("python3 -c 'print(open(\"{secret}\").read())'"),
        format!("ln {secret} hard && cat hard"),
        format!("awk 1 {secret} & wait"),
    ] {
        let answer = shell(&rig, &command).await;
        assert!(!answer.text.contains("MARKER"), "{command}: {answer:?}");
    }
    for command in [
        format!("echo x > {secret}"),
        format!("rm -f {secret}"),
        format!("find {} -delete", outside.display()),
        format!("tee {secret} < /dev/null"),
        "echo x > link".to_owned(),
    ] {
        shell(&rig, &command).await;
        assert_eq!(
            fs::read(outside.join("secret")).unwrap(),
            b"MARKER",
            "{command}"
        );
    }
}

#[tokio::test]
async fn the_folder_of_a_command_lies_in_the_workspace() {
    let rig = Rig::new();
    fs::create_dir_all(rig.path("d/e")).unwrap();
    rig.write("file", "");
    rig.outside();
    symlink("../outside", rig.path("out")).unwrap();
    let inside = |workdir: &str| {
        rig.call(
            "shell",
            json!({"command": "basename \"$PWD\"", "workdir": workdir}),
        )
    };
    for (workdir, name) in [
        ("d", "d"),
        ("./d/e/", "e"),
        ("d/../d/e", "e"),
        ("/workspace/d", "d"),
        (".", "workspace"),
    ] {
        assert_eq!(
            inside(workdir).await.completed(),
            format!("{name}\n"),
            "{workdir}"
        );
    }
    let host = rig.path("d").canonicalize().unwrap();
    assert_eq!(inside(host.to_str().unwrap()).await.completed(), "d\n");
    for workdir in ["..", "../outside", "/etc", "/", "a\0b", "", "out"] {
        let answer = inside(workdir).await;
        assert!(
            answer.failed().contains("outside the Workspace"),
            "{workdir:?}: {answer:?}"
        );
    }
    for workdir in ["none", "file", "~", "..%2f.."] {
        inside(workdir).await.failed();
    }
}
