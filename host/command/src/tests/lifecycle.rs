//! What ends when, and what is left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::doubles::{House, LONG, Notes, gone, is_alive, read_to_end, read_until};
use crate::{CommandError, CommandSpec, Status};

fn pid_in(text: &str) -> u32 {
    text.lines()
        .find_map(|line| line.trim().parse().ok())
        .expect("a pid was printed")
}

#[tokio::test]
async fn a_child_left_behind_does_not_hold_the_command_and_ends_with_it() {
    let house = House::new();
    let started = Instant::now();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("sleep 100 & echo $!; echo hello"))
        .await
        .unwrap();
    let (text, _) = read_to_end(&session).await;
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(text.ends_with("hello\n"));
    assert_eq!(session.status(), Status::Exited(0));
    gone(pid_in(&text)).await;
}

#[tokio::test]
async fn late_output_of_a_child_ends_with_the_command() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("(sleep 30; echo late) & echo early"))
        .await
        .unwrap();
    assert_eq!(read_to_end(&session).await.0, "early\n");
}

#[tokio::test]
async fn process_substitution_does_not_hold_the_command() {
    let house = House::new();
    let script = "exec > >(cat) 2>&1; echo hi";
    let session = house
        .sessions
        .spawn(CommandSpec::shell(script))
        .await
        .unwrap();
    assert_eq!(read_to_end(&session).await.0, "hi\n");
}

#[tokio::test]
async fn dropping_the_handle_of_a_session_that_was_not_kept_ends_the_command() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("sleep 100 & echo $!; wait"))
        .await
        .unwrap();
    let id = session.process_id().to_owned();
    let pid = pid_in(&read_until(&session, "\n").await);
    assert!(is_alive(pid));
    assert_eq!(house.sessions.list().len(), 1);
    drop(session);
    gone(pid).await;
    assert!(house.sessions.list().is_empty());
    assert!(matches!(
        house.sessions.attach(&id),
        Err(CommandError::NotFound { .. })
    ));
}

#[tokio::test]
async fn a_kept_session_survives_its_handle_and_is_found_by_its_id() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("read x; echo got $x"))
        .await
        .unwrap();
    let id = session.process_id().to_owned();
    assert!(house.sessions.attach(&id).is_err(), "not kept yet");
    session.keep(false);
    assert!(session.is_kept());
    drop(session);
    let session = house.sessions.attach(&id).unwrap();
    session.write_stdin(b"hi\n").await.unwrap();
    assert_eq!(read_to_end(&session).await.0, "got hi\n");
    drop(session);
    let error = house.sessions.attach(&id).unwrap_err();
    assert_eq!(error.code(), "not-found");
    assert_eq!(
        error.to_string(),
        format!("unknown process_id {id} (the session may have exited and been cleared)")
    );
}

#[tokio::test]
async fn a_kept_session_whose_end_nobody_saw_stays_until_somebody_did() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("exit 5"))
        .await
        .unwrap();
    let id = session.process_id().to_owned();
    session.keep(false);
    session.ended().await;
    drop(session);
    let session = house.sessions.attach(&id).unwrap();
    assert_eq!(session.status(), Status::Exited(5));
    assert!(session.read_output(10, LONG).await.unwrap().ended);
    drop(session);
    assert!(house.sessions.attach(&id).is_err());
}

#[tokio::test]
async fn after_dispose_everything_is_gone_and_spawn_says_so() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("echo $$; sleep 100"))
        .await
        .unwrap();
    let pid = pid_in(&read_until(&session, "\n").await);
    session.keep(false);
    house.sessions.dispose().await;
    gone(pid).await;
    assert!(house.sessions.list().is_empty());
    let error = house
        .sessions
        .spawn(CommandSpec::shell("true"))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "command session manager disposed");
    // A handle that is still held can tell the end.
    read_to_end(&session).await;
    assert_eq!(session.status(), Status::Signaled("SIGTERM".into()));
}

#[tokio::test]
async fn dropping_the_registry_ends_what_it_kept() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("echo $$; sleep 100"))
        .await
        .unwrap();
    let pid = pid_in(&read_until(&session, "\n").await);
    session.keep(false);
    drop(session);
    assert!(is_alive(pid));
    drop(house);
    gone(pid).await;
}

#[tokio::test]
async fn exit_codes_and_signals_are_told_apart() {
    let house = House::new();
    let exited = |code| Status::Exited(code);
    let signaled = |name: &str| Status::Signaled(name.into());
    let cases = [
        ("exit 0", exited(0)),
        ("exit 255", exited(255)),
        ("no-such-program-here", exited(127)),
        ("touch f; ./f", exited(126)),
        ("exit 137", exited(137)),
        ("kill -9 $$", signaled("SIGKILL")),
        ("kill -TERM $$", signaled("SIGTERM")),
        ("kill -SYS $$", signaled("SIGSYS")),
        ("", exited(0)),
        ("   ", exited(0)),
    ];
    for (script, wanted) in cases {
        let session = house
            .sessions
            .spawn(CommandSpec::shell(script))
            .await
            .unwrap();
        read_to_end(&session).await;
        assert_eq!(session.status(), wanted, "{script}");
    }
}

#[tokio::test]
async fn a_script_reaches_bash_byte_for_byte() {
    let house = House::new();
    let script = "cat <<'END'\n! \\ $x `y` \"z\" ä\nEND\nprintf '%s\\n' '!!' \"a\\\\b\" $'t\\tt'";
    let session = house
        .sessions
        .spawn(CommandSpec::shell(script))
        .await
        .unwrap();
    assert_eq!(
        read_to_end(&session).await.0,
        "! \\ $x `y` \"z\" ä\n!!\na\\b\nt\tt\n"
    );
}

#[tokio::test]
async fn a_program_with_arguments_meets_no_shell() {
    let house = House::new();
    let spec = CommandSpec {
        command: "printf".into(),
        args: Some(vec!["%s|".into(), "$HOME".into(), "a b".into(), "*".into()]),
        ..CommandSpec::default()
    };
    let session = house.sessions.spawn(spec).await.unwrap();
    assert_eq!(read_to_end(&session).await.0, "$HOME|a b|*|");
    let nameless = CommandSpec {
        args: Some(vec![]),
        ..CommandSpec::default()
    };
    assert_eq!(
        house.sessions.spawn(nameless).await.unwrap_err().code(),
        "invalid-argument"
    );
}

#[tokio::test]
async fn a_working_directory_is_inside_the_workspace_or_refused() {
    let house = House::new();
    std::fs::create_dir(house.folder.path().join("sub dir")).unwrap();
    let canonical = house.folder.path().canonicalize().unwrap();
    let inside = canonical.join("sub dir").to_str().unwrap().to_owned();
    for directory in ["sub dir", "./sub dir/", "/workspace/sub dir", &inside] {
        let spec = CommandSpec {
            working_directory: Some(directory.into()),
            ..CommandSpec::shell("basename \"$PWD\"")
        };
        let session = house.sessions.spawn(spec).await.unwrap();
        assert_eq!(read_to_end(&session).await.0, "sub dir\n", "{directory}");
    }
    for (directory, code) in [
        ("..", "outside-workspace"),
        ("/etc", "outside-workspace"),
        ("", "outside-workspace"),
        ("nul\0", "outside-workspace"),
        ("nothing", "not-found"),
    ] {
        let spec = CommandSpec {
            working_directory: Some(directory.into()),
            ..CommandSpec::shell("true")
        };
        assert_eq!(
            house.sessions.spawn(spec).await.unwrap_err().code(),
            code,
            "{directory:?}"
        );
    }
}

#[tokio::test]
async fn the_end_of_a_command_that_was_kept_for_it_is_announced_once_with_its_last_output() {
    let notes = Arc::new(Notes::default());
    let house = House::with(|options| options.observer = Arc::clone(&notes) as _);
    let session = house
        .sessions
        .spawn(CommandSpec::shell("read x; seq 1 2000; exit 2"))
        .await
        .unwrap();
    session.keep(true);
    session.write_stdin(b"\n").await.unwrap();
    session.ended().await;
    assert!(
        notes.ended.lock().unwrap().is_empty(),
        "whoever holds it may be about to read of its end"
    );
    let id = session.process_id().to_owned();
    session.keep(true);
    drop(session);
    assert!(house.sessions.report_due().await);
    house.sessions.attach(&id).unwrap().keep(true);
    let ended = notes.ended.lock().unwrap().clone();
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].process_id, id);
    assert_eq!(ended[0].label, "read x; seq 1 2000; exit 2");
    assert_eq!(ended[0].status, Status::Exited(2));
    assert_eq!(ended[0].output.chars().count(), 4000);
    assert!(ended[0].output.ends_with("2000\n") && ended[0].output_cut);
    assert_eq!(house.sessions.take_reports(), ended);
    assert_eq!(house.sessions.take_reports(), [], "it is given once");
    assert!(!house.sessions.report_due().await);
}

#[tokio::test]
async fn an_end_before_keep_is_announced_and_a_kill_never() {
    let notes = Arc::new(Notes::default());
    let house = House::with(|options| options.observer = Arc::clone(&notes) as _);
    let early = house
        .sessions
        .spawn(CommandSpec::shell("true"))
        .await
        .unwrap();
    early.ended().await;
    early.keep(true);
    drop(early);
    assert_eq!(notes.ended.lock().unwrap().len(), 1);
    let killed = house
        .sessions
        .spawn(CommandSpec::shell("sleep 100"))
        .await
        .unwrap();
    killed.keep(true);
    killed.kill();
    assert_eq!(killed.ended().await, Status::Signaled("SIGKILL".into()));
    house.sessions.dispose().await;
    assert_eq!(notes.ended.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn two_hundred_commands_leave_no_task_behind() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("true"))
        .await
        .unwrap();
    read_to_end(&session).await;
    drop(session);
    for _ in 0..200 {
        let session = house
            .sessions
            .spawn(CommandSpec::shell("true"))
            .await
            .unwrap();
        read_to_end(&session).await;
    }
    assert!(house.sessions.list().is_empty());
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    for _ in 0..1000 {
        if tasks() <= 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The hourly sweep is the one that stays.
    assert!(tasks() <= 1, "{} tasks are left", tasks());
}

#[tokio::test]
async fn a_command_that_is_asked_to_end_may_say_goodbye_also_when_its_handle_is_gone() {
    let house = House::new();
    let script = "trap 'echo bye > bye; exit 3' TERM; echo up; while :; do sleep 0.02; done";
    let session = house
        .sessions
        .spawn(CommandSpec::shell(script))
        .await
        .unwrap();
    read_until(&session, "up\n").await;
    session.terminate();
    drop(session);
    let limit = Instant::now() + LONG;
    while !house.sessions.list().is_empty() {
        assert!(Instant::now() < limit, "it is forgotten when it has ended");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let said = std::fs::read_to_string(house.folder.path().join("bye")).unwrap();
    assert_eq!(said, "bye\n");
}

#[tokio::test]
async fn a_command_that_ignores_the_request_to_end_is_killed_a_second_later_with_its_output_kept() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell(
            "trap '' TERM; echo $$; printf kept; sleep 300",
        ))
        .await
        .unwrap();
    let pid = pid_in(&read_until(&session, "\n").await);
    session.keep(true);
    session.terminate();
    session.terminate();
    assert_eq!(session.ended().await, Status::Signaled("SIGKILL".into()));
    assert_eq!(read_to_end(&session).await.0, "kept");
    gone(pid).await;
    drop(session);
    assert_eq!(
        house.sessions.take_reports(),
        [],
        "a killed one has no report"
    );
}

#[tokio::test]
async fn a_report_is_left_out_where_a_read_told_the_end_before_it_was_taken() {
    let house = House::new();
    let background = async |script: &str| {
        let session = house
            .sessions
            .spawn(CommandSpec::shell(script))
            .await
            .unwrap();
        session.keep(true);
        session.process_id().to_owned()
    };
    let (read, unread) = (background("echo read").await, background("exit 4").await);
    assert!(house.sessions.report_due().await);
    let session = house.sessions.attach(&read).unwrap();
    assert_eq!(read_to_end(&session).await.0, "read\n");
    drop(session);
    while !house.sessions.awaited().is_empty() {
        tokio::task::yield_now().await;
    }
    let reports = house.sessions.take_reports();
    assert_eq!(reports.len(), 1);
    assert_eq!(
        (&reports[0].process_id, &reports[0].status),
        (&unread, &Status::Exited(4))
    );
}

#[tokio::test]
async fn a_poll_that_is_given_up_leaves_the_report_to_come() {
    let notes = Arc::new(Notes::default());
    let house = House::with(|options| options.observer = Arc::clone(&notes) as _);
    let session = house
        .sessions
        .spawn(CommandSpec::shell("read x"))
        .await
        .unwrap();
    session.keep(true);
    let given_up = tokio::time::timeout(Duration::from_millis(20), session.read_output(9, LONG));
    assert!(given_up.await.is_err());
    session.close_stdin();
    session.ended().await;
    assert_eq!(house.sessions.take_reports(), []);
    drop(session);
    assert!(house.sessions.report_due().await);
    assert_eq!(house.sessions.take_reports().len(), 1);
    assert_eq!(notes.ended.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn who_waits_for_a_report_is_told_when_none_will_come() {
    let house = House::new();
    assert!(!house.sessions.report_due().await);
    let session = house
        .sessions
        .spawn(CommandSpec::shell("sleep 300"))
        .await
        .unwrap();
    session.keep(true);
    let sessions = Arc::clone(&house.sessions);
    let waiting = tokio::spawn(async move { sessions.report_due().await });
    tokio::task::yield_now().await;
    session.kill();
    assert!(!waiting.await.unwrap());
}
