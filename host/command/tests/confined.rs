//! Commands in the real sandbox: the sentences of spec/environment.md 3.2 and spec/sandbox.md 2b that need one.

mod support;

use std::time::{Duration, Instant};

use floe_command::{CommandSpec, Status};
use support::{LONG, Session, gone, processes_with, read_to_end, read_until};

/// A number of seconds that marks one test's processes.
fn mark(number: u32) -> String {
    format!("{}.{number}", 10_000 + std::process::id() % 10_000)
}

#[tokio::test]
async fn a_child_left_behind_does_not_hold_the_command_and_is_gone_with_it() {
    let session = Session::new();
    let mark = mark(1);
    let started = Instant::now();
    let (text, status) = session.run(&format!("sleep {mark} & echo hello")).await;
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!((text.as_str(), status), ("hello\n", Status::Exited(0)));
    gone(&mark).await;
}

#[tokio::test]
async fn daemons_in_sessions_of_their_own_are_gone_with_the_command() {
    let session = Session::new();
    let mark = mark(2);
    let script = format!("setsid nohup sleep {mark} >/dev/null 2>&1 & disown; exit 3");
    assert_eq!(session.run(&script).await.1, Status::Exited(3));
    gone(&mark).await;
    let command = session
        .start(&format!(
            "(setsid sh -c '(sleep {mark} &) ' &) ; echo up; sleep {mark}"
        ))
        .await;
    read_until(&command, "up\n").await;
    drop(command);
    gone(&mark).await;
}

#[tokio::test]
async fn a_kept_command_survives_its_handle_takes_input_and_ends_when_interrupted() {
    let session = Session::new();
    let command = session
        .start("trap 'echo INT; exit 9' INT; while read x; do echo got $x; done")
        .await;
    let id = command.process_id().to_owned();
    command.keep(false);
    drop(command);
    let command = session.commands.attach(&id).unwrap();
    command.write_stdin(b"hi\n").await.unwrap();
    assert_eq!(read_until(&command, "hi\n").await, "got hi\n");
    command.send_signal("SIGINT").unwrap();
    assert_eq!(read_to_end(&command).await, "INT\n");
    assert_eq!(command.status(), Status::Exited(9));
}

#[tokio::test]
async fn an_interrupt_ends_a_pipeline() {
    let session = Session::new();
    let command = session.start("echo up; sleep 100 | sleep 100").await;
    read_until(&command, "up\n").await;
    command.send_signal("SIGINT").unwrap();
    read_to_end(&command).await;
    assert_eq!(command.status(), Status::Signaled("SIGINT".into()));
}

#[tokio::test]
async fn a_child_of_a_thread_that_ended_lives_on() {
    // The threads that start commands end as soon as they are idle.
    let run = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_keep_alive(Duration::from_millis(10))
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let session = Session::new();
            let command = session.start("read x; echo alive").await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            assert_eq!(command.status(), Status::Running);
            command.write_stdin(b"\n").await.unwrap();
            assert_eq!(read_to_end(&command).await, "alive\n");
        });
    });
    run.join().unwrap();
}

#[tokio::test]
async fn exit_codes_and_signals_are_told_apart() {
    let session = Session::new();
    let signaled = |name: &str| Status::Signaled(name.into());
    let cases = [
        ("exit 0", Status::Exited(0)),
        ("exit 255", Status::Exited(255)),
        ("no-such-program-here 2>/dev/null", Status::Exited(127)),
        ("/etc/passwd 2>/dev/null", Status::Exited(126)),
        ("exit 137", Status::Exited(137)),
        ("kill -9 $$", signaled("SIGKILL")),
        ("kill -SYS $$", signaled("SIGSYS")),
        ("", Status::Exited(0)),
        ("   ", Status::Exited(0)),
    ];
    for (script, wanted) in cases {
        assert_eq!(
            session.run(script).await,
            (String::new(), wanted),
            "{script:?}"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_run_says_so_clearly() {
    let session = Session::new();
    let refusal = |spec: CommandSpec| {
        let commands = std::sync::Arc::clone(&session.commands);
        async move { commands.spawn(spec).await.unwrap_err() }
    };
    let error = refusal(CommandSpec::shell("echo a\0b")).await;
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (
            "nul-byte",
            "The script of the command holds a NUL byte; remove it."
        )
    );
    let missing = CommandSpec {
        working_directory: Some("no/such".into()),
        ..CommandSpec::shell("true")
    };
    let error = refusal(missing).await;
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (
            "not-found",
            "The working directory \"no/such\" does not exist."
        )
    );
    let outside = CommandSpec {
        working_directory: Some("/etc".into()),
        ..CommandSpec::shell("true")
    };
    assert_eq!(
        refusal(outside).await.to_string(),
        "Path \"/etc\" is outside the Workspace."
    );
    let program = CommandSpec {
        command: "no-such-program".into(),
        args: Some(vec![]),
        ..CommandSpec::default()
    };
    assert!(
        refusal(program)
            .await
            .to_string()
            .contains("no-such-program")
    );
}

#[tokio::test]
async fn a_broken_pipe_ends_a_program_and_signals_are_as_a_shell_expects_them() {
    let session = Session::new();
    assert_eq!(
        session.run("yes | head -1; echo ${PIPESTATUS[@]}").await.0,
        "y\n141 0\n"
    );
    // The host's own, whatever started it.
    let niceness = std::process::Command::new("nice").output().unwrap();
    let niceness = String::from_utf8(niceness.stdout).unwrap();
    let (text, _) = session
        .run("grep -E 'Sig(Blk|Ign)' /proc/self/status; umask; nice")
        .await;
    let values: Vec<&str> = text.split_ascii_whitespace().collect();
    assert_eq!(
        values,
        [
            "SigBlk:",
            "0000000000000000",
            "SigIgn:",
            "0000000000000000",
            "0022",
            niceness.trim()
        ]
    );
}

#[tokio::test]
async fn standard_streams_are_no_terminal_and_the_environment_is_hardened() {
    let session = Session::new();
    assert_eq!(
        session
            .run("test -t 0 || test -t 1 || test -t 2; echo $?")
            .await
            .0,
        "1\n"
    );
    let script = "printf '%s|%s|%s|%s' $GIT_EDITOR $GIT_TERMINAL_PROMPT $PAGER $TERM";
    let spec = CommandSpec {
        environment: vec![
            ("PAGER".into(), "less".into()),
            ("TERM".into(), "xterm".into()),
        ],
        ..CommandSpec::shell(script)
    };
    let command = session.commands.spawn(spec).await.unwrap();
    assert_eq!(read_to_end(&command).await, "true|0|cat|dumb");
    assert_eq!(command.confinement(), "native");
}

#[tokio::test]
async fn home_and_tmp_are_the_sandboxs_and_nothing_of_the_host_leaks() {
    let session = Session::with(|_, options| {
        options.environment.person_home = None;
        options
            .environment
            .host
            .push(("FLOE_TEST_SECRET".into(), "hunter2".into()));
    });
    let (text, _) = session
        .run("echo $HOME $TMPDIR; env | grep -c hunter2")
        .await;
    assert_eq!(text, "/floe/home /tmp\n0\n");
}

#[tokio::test]
async fn a_terminal_echoes_input_once_has_its_size_and_takes_ctrl_c_and_ctrl_d() {
    let session = Session::new();
    let spec = |script: &str| CommandSpec {
        terminal: true,
        ..CommandSpec::shell(script)
    };
    let command = session
        .commands
        .spawn(spec(
            "stty size; read x; echo got $x; cat; stty size; echo ready; sleep 100",
        ))
        .await
        .unwrap();
    assert_eq!(read_until(&command, "\n").await, "24 80\r\n");
    command.write_stdin(b"hi\n").await.unwrap();
    assert_eq!(read_until(&command, "got hi\r\n").await, "hi\r\ngot hi\r\n");
    command.resize_terminal(100, 30).unwrap();
    command.close_stdin();
    // A Ctrl-C while `stty` still runs would be that program's alone: a shell goes on when its child did.
    let text = read_until(&command, "ready\r\n").await;
    assert!(text.ends_with("30 100\r\nready\r\n"), "{text:?}");
    command.send_signal("SIGINT").unwrap();
    read_to_end(&command).await;
    assert_eq!(command.status(), Status::Signaled("SIGINT".into()));
}

#[tokio::test]
async fn after_dispose_no_process_is_left() {
    let session = Session::new();
    let mark = mark(3);
    let command = session
        .start(&format!("echo up; setsid sleep {mark}"))
        .await;
    read_until(&command, "up\n").await;
    command.keep(false);
    session.commands.dispose().await;
    gone(&mark).await;
    let error = session
        .commands
        .spawn(CommandSpec::shell("true"))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "command session manager disposed");
}

#[tokio::test]
async fn dropping_a_spawn_that_is_under_way_leaves_no_process() {
    let session = Session::new();
    let mark = mark(4);
    for wait in [0, 1, 3, 6, 12, 25] {
        let spawn = session
            .commands
            .spawn(CommandSpec::shell(format!("sleep {mark}")));
        let _ = tokio::time::timeout(Duration::from_millis(wait), spawn).await;
    }
    // What was started late ends late.
    tokio::time::sleep(Duration::from_millis(200)).await;
    gone(&mark).await;
    assert_eq!(processes_with(&mark), 0);
    assert!(session.commands.list().is_empty());
}

#[tokio::test]
async fn a_short_command_ends_a_long_wait() {
    let session = Session::new();
    let started = Instant::now();
    let command = session.start("sleep 0.005").await;
    assert!(command.read_output(1024, LONG).await.unwrap().ended);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_prompt_is_given_and_known_to_wait_for_input() {
    let session = Session::new();
    for terminal in [false, true] {
        let spec = CommandSpec {
            terminal,
            ..CommandSpec::shell("printf 'Name: '; read x; echo hello $x")
        };
        let command = session.commands.spawn(spec).await.unwrap();
        assert_eq!(read_until(&command, "Name: ").await, "Name: ");
        let mut known = false;
        for _ in 0..200 {
            known = command
                .read_output(1024, Duration::from_millis(50))
                .await
                .unwrap()
                .waiting_for_input;
            if known {
                break;
            }
        }
        assert!(known, "terminal: {terminal}");
        command.write_stdin(b"Ada\n").await.unwrap();
        let text = read_to_end(&command).await;
        let status = command.status();
        assert!(
            text.contains("hello Ada"),
            "terminal {terminal}: {text:?}, {status:?}"
        );
    }
}

#[tokio::test]
async fn what_commands_leave_for_others_to_obey_is_told_at_their_end_once() {
    let session = Session::new();
    let nothing = session.start("true").await;
    read_to_end(&nothing).await;
    assert_eq!(nothing.left_behind(), None);
    let command = session
        .start("mkdir .vscode; git init -q s; cp /bin/true s/.git/hooks/post-merge")
        .await;
    read_to_end(&command).await;
    let left = command.left_behind().unwrap();
    assert!(
        left.starts_with(r#"the git repository "s/.git" (hook post-merge), ".vscode" appeared"#),
        "{left}"
    );
    session.run("mkdir .idea").await;
    let told = |name: &str| {
        let warnings = session.notes.warnings();
        warnings
            .iter()
            .filter(|warning| warning.contains(name))
            .count()
    };
    assert_eq!((told(".vscode"), told(".idea")), (1, 1));
    session.commands.dispose().await;
    assert_eq!((told(".vscode"), told(".idea")), (1, 1));
}

#[tokio::test]
async fn a_command_reaches_neither_a_canary_nor_a_listener_nor_a_process_nor_a_secret_of_the_host()
{
    use std::os::unix::fs::PermissionsExt;
    let session = Session::with(|_, options| {
        options.environment.person_home = None;
        let secret = ("HOST_SECRET".into(), "do-not-tell".into());
        options.environment.host.push(secret);
    });
    let outside = tempfile::tempdir().unwrap();
    std::fs::set_permissions(outside.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let canary = outside.path().join("canary");
    std::fs::write(&canary, "the canary lives").unwrap();
    std::fs::set_permissions(&canary, PermissionsExt::from_mode(0o666)).unwrap();
    std::os::unix::fs::symlink(outside.path(), session.workspace.join("link")).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();

    let script = format!(
        "for f in {canary} link/canary /proc/*/root{canary}; do cat $f; echo evil >> $f; rm -f $f; chmod 600 $f; done
        exec 3<>/dev/tcp/127.0.0.1/{port} && echo hello >&3
        env; cat /proc/*/environ /proc/*/cmdline; ls -d /proc/[0-9]*; kill -0 {host} && echo sees-the'-host'; true",
        canary = canary.display(),
        port = listener.local_addr().unwrap().port(),
        host = std::process::id(),
    );
    let (text, status) = session.run(&script).await;
    assert_eq!(status, Status::Exited(0));
    for told in ["the canary lives", "do-not-tell", "sees-the-host"] {
        assert!(!text.contains(told), "{told}: {text}");
    }
    assert_eq!(std::fs::read(&canary).unwrap(), b"the canary lives");
    let mode = std::fs::metadata(&canary).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o666);
    let nobody_came = listener.accept().unwrap_err();
    assert_eq!(nobody_came.kind(), std::io::ErrorKind::WouldBlock);
}
