//! Where a command runs, and scripts that are no scripts.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use floe_command::{CommandSpec, Status};
use floe_environment::{CallOutcome, Gate};
use floe_protocol::StopReason;
use floe_sandbox::{ConfinedCommand, Event};
use serde_json::json;

use super::bare;
use super::doors::{self, Calls, process_id};
use crate::row::Row;
use crate::stage::Stage;

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "S33",
        "a working directory that was removed meanwhile, and a removed Workspace, are named for what they are",
        removed_places,
    ),
    Row::new(
        "S34",
        "a working directory that is missing, no directory, closed or outside is refused in words, and odd names work",
        odd_places,
    ),
    Row::new("S35", "scripts of any length run", long_scripts),
    Row::new(
        "S36",
        "a script with a NUL is refused, a blank one does nothing, and half a character is no JSON",
        no_scripts,
    ),
];

fn removed_places(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        fs::create_dir(stage.workspace.join("place")).unwrap();
        let arguments = json!({"cmd": "read x; pwd -P; echo got $x", "workdir": "place", "yield_time_ms": 250});
        let process = process_id(&door.call("exec_command", &arguments.to_string()).await);
        // Under a running command, which lives on.
        fs::remove_dir(stage.workspace.join("place")).unwrap();
        let output = door.input(&process, json!({"chars": "on\n", "yield_time_ms": 60_000})).await;
        assert!(output.output.contains("got on\n"), "{}", output.output);
        // The next call in the default place does not mind; one in that place is told.
        assert_eq!(door.exec("echo ok").await.output, "ok\n");
        let arguments = json!({"cmd": "echo no", "workdir": "place"}).to_string();
        let output = door.call("exec_command", &arguments).await;
        assert_eq!(output.output, "[spawn error: The working directory \"place\" does not exist.]");
        assert_eq!(output.stop_reason, StopReason::Failed);

        fs::remove_dir_all(&stage.workspace).unwrap();
        let gone = "[spawn error: The Workspace no longer exists; it was removed after the Session began.]";
        assert_eq!(door.exec("echo no").await.output, gone);
        // Another folder in its place is another folder.
        fs::create_dir(&stage.workspace).unwrap();
        assert_eq!(door.exec("echo no").await.output, gone);
        for output in [door.call("exec_command", &arguments).await, door.exec("echo no").await] {
            assert!(!output.output.contains("bash"), "{}", output.output);
        }
    });
}

fn odd_places(stage: &Stage) {
    let session = stage.session();
    let closed = stage.workspace.join("closed");
    fs::create_dir(&closed).unwrap();
    stage.put("file", "");
    std::os::unix::fs::symlink("/etc", stage.workspace.join("out")).unwrap();
    std::os::unix::fs::symlink("nowhere", stage.workspace.join("dangling")).unwrap();
    std::os::unix::fs::symlink("inner/folder", stage.workspace.join("inwards")).unwrap();
    fs::create_dir_all(stage.workspace.join("inner/folder")).unwrap();
    // Root's capabilities stay outside the walls, so a mode holds for root where it owns nothing: whose else is it?
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&closed, Some(1), Some(1)).unwrap();
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let refusals = [
        (
            "no/such",
            "not-found",
            "The working directory \"no/such\" does not exist.",
        ),
        (
            "dangling",
            "not-found",
            "The working directory \"dangling\" does not exist.",
        ),
        (
            "file",
            "not-directory",
            "The working directory \"file\" is not a directory.",
        ),
        (
            "file/below",
            "not-directory",
            "The working directory \"file/below\" is not a directory.",
        ),
        (
            "closed",
            "denied",
            "The working directory \"closed\" may not be entered (permission denied).",
        ),
        (
            "/etc",
            "outside-workspace",
            "Path \"/etc\" is outside the Workspace.",
        ),
        (
            "..",
            "outside-workspace",
            "Path \"..\" is outside the Workspace.",
        ),
        (
            "inner/../..",
            "outside-workspace",
            "Path \"inner/../..\" is outside the Workspace.",
        ),
        (
            "out",
            "outside-workspace",
            "Path \"out\" is outside the Workspace.",
        ),
        (
            "",
            "outside-workspace",
            "Path \"\" is outside the Workspace.",
        ),
        (
            "inner\0x",
            "outside-workspace",
            "Path \"inner\0x\" is outside the Workspace.",
        ),
    ];
    let within = |place: &str| CommandSpec {
        working_directory: Some(place.into()),
        ..CommandSpec::shell("pwd -P")
    };
    for (place, code, message) in refusals {
        let error = stage.wait(session.try_start(within(place))).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (code, message));
    }
    let workspace = stage.workspace.to_str().unwrap();
    for name in ["line\nfeed", "é≤😀", " blank ", "-rf", "a'b\"c$d`e\\f", "*"] {
        fs::create_dir(stage.workspace.join(name)).unwrap();
        let outcome = session.run_spec(within(name));
        assert_eq!(
            (outcome.stdout, outcome.status),
            (format!("{workspace}/{name}\n"), Status::Exited(0))
        );
    }
    for (place, real) in [
        ("inwards", "/inner/folder"),
        ("./inner/./folder/", "/inner/folder"),
        ("inner/../inner", "/inner"),
        ("/workspace/inner", "/inner"),
        ("/workspace", ""),
        (&format!("{workspace}/inner"), "/inner"),
        (".", ""),
    ] {
        assert_eq!(
            session.run_spec(within(place)).text,
            format!("{workspace}{real}\n"),
            "{place}"
        );
    }
    // What is no UTF-8 can be no argument of a tool, but it is a place.
    let name = OsStr::from_bytes(b"not\xffutf8");
    fs::create_dir(stage.workspace.join(name)).unwrap();
    let outcome = session.run("cd not* && pwd -P | od -c | grep -o '377'");
    assert_eq!(
        (outcome.text.as_str(), outcome.status),
        ("377\n", Status::Exited(0))
    );
    let command = ConfinedCommand {
        working_directory: name.into(),
        ..bare(&session, "echo > here")
    };
    let child = session.sandbox.spawn(&command).unwrap();
    assert_eq!(child.control.wait(), Event::Exited(0));
    assert!(stage.workspace.join(name).join("here").exists());
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
}

fn long_scripts(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        const KIB: usize = 1024;
        for length in [
            96 * KIB,
            96 * KIB + 1,
            127 * KIB,
            128 * KIB - 1,
            128 * KIB,
            129 * KIB,
            3 * KIB * KIB,
        ] {
            let end = "echo end $BASHPID $$ | tr -d '0-9 \\n'; exit 3";
            let script = format!(": {}\n{end}", "x".repeat(length - end.len() - 3));
            assert_eq!(script.len(), length);
            let output = door.exec(&script).await.output;
            assert_eq!(output, "end\n[exit code: 3]", "{length}");
        }
        // Its positional parameters and its way of naming itself are those of a short one, and it leaves no file.
        let long = format!("# {}\necho $# $-; ls -A /tmp", "x".repeat(200 * KIB));
        let short = "echo $# $-; ls -A /tmp";
        assert_eq!(
            door.exec(&long).await.output.replace("c\n", "\n"),
            door.exec(short).await.output.replace("c\n", "\n")
        );
    });
}

fn no_scripts(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        let cases = [
            (
                json!({"cmd": "echo a\0; touch made"}).to_string(),
                "[spawn error: The script of the command holds a NUL byte; remove it.]",
                StopReason::Failed,
                CallOutcome::Ran,
            ),
            (
                json!({"cmd": ""}).to_string(),
                "Missing required argument \"cmd\" for exec_command.",
                StopReason::Failed,
                CallOutcome::Gate(Gate::Schema),
            ),
            (
                json!({"cmd": " \t\n "}).to_string(),
                "[no output]",
                StopReason::Completed,
                CallOutcome::Ran,
            ),
            (
                json!({"cmd": "# nothing"}).to_string(),
                "[no output]",
                StopReason::Completed,
                CallOutcome::Ran,
            ),
        ];
        for (arguments, text, reason, end) in cases {
            let output = door.call("exec_command", &arguments).await;
            assert_eq!(
                (output.output.as_str(), output.stop_reason, output.end),
                (text, reason, end),
                "{arguments}"
            );
        }
        for half in [
            r#"{"cmd":"touch made \ud800"}"#,
            r#"{"cmd":"touch made \udc00x"}"#,
        ] {
            let output = door.call("exec_command", half).await;
            assert_eq!(
                output.end,
                CallOutcome::Gate(Gate::Json),
                "{}",
                output.output
            );
            let words = "Tool call \"exec_command\" failed: the arguments are not valid JSON (";
            assert!(output.output.starts_with(words), "{}", output.output);
        }
        // A whole one in halves is a character.
        let whole = r#"{"cmd":"printf %s \ud83d\ude00"}"#;
        assert_eq!(door.call("exec_command", whole).await.output, "😀");
    });
    assert!(!stage.has("made"));
}
