//! How commands are ended in the real sandbox: asked first, then all of it.

mod support;

use std::time::{Duration, Instant};

use floe_command::Status;

use support::{Session, gone, read_to_end, read_until};

/// An argument of `sleep` that no other process of this machine has.
fn mark(number: u32) -> String {
    format!("31{:05}.{number}5", std::process::id() % 100_000)
}

#[tokio::test]
async fn what_ignores_the_request_to_end_is_killed_after_a_second_with_all_it_started_and_its_output_stays()
 {
    let session = Session::new();
    let mark = mark(1);
    let script = format!("trap '' TERM; (setsid sleep {mark} &); echo begun; sleep {mark}");
    let command = session.start(&script).await;
    read_until(&command, "begun\n").await;
    let asked = Instant::now();
    command.terminate();
    assert_eq!(command.ended().await, Status::Signaled("SIGKILL".into()));
    assert!(asked.elapsed() >= Duration::from_secs(1), "it had its time");
    gone(&mark).await;
    assert_eq!(read_to_end(&command).await, "");
}

#[tokio::test]
async fn the_programs_of_a_shell_that_goes_at_once_have_the_rest_of_the_second() {
    let session = Session::new();
    let inner =
        "trap 'sleep 0.3; echo saved > saved; exit' TERM; echo up; while :; do sleep 0.02; done";
    let command = session
        .start(&format!("bash -c \"{inner}\"; echo never"))
        .await;
    read_until(&command, "up\n").await;
    command.terminate();
    assert_eq!(command.ended().await, Status::Signaled("SIGTERM".into()));
    let saved = std::fs::read_to_string(session.workspace.join("saved")).unwrap();
    assert_eq!(saved, "saved\n");
    assert!(!read_to_end(&command).await.contains("never"));
}

#[tokio::test]
async fn the_end_of_a_session_gives_its_commands_a_second_as_well() {
    let session = Session::new();
    let script = "trap 'echo saved > saved; exit' TERM; echo up; while :; do sleep 0.02; done";
    let command = session.start(script).await;
    read_until(&command, "up\n").await;
    command.keep(true);
    drop(command);
    session.commands.dispose().await;
    let saved = std::fs::read_to_string(session.workspace.join("saved")).unwrap();
    assert_eq!(saved, "saved\n");
    assert_eq!(session.commands.take_reports(), [], "no end is reported");
}

#[tokio::test]
async fn a_command_that_ends_by_itself_waits_for_nothing() {
    let session = Session::new();
    let mark = mark(2);
    let started = Instant::now();
    let (text, status) = session.run(&format!("sleep {mark} & echo done")).await;
    assert_eq!((&*text, status), ("done\n", Status::Exited(0)));
    assert!(started.elapsed() < Duration::from_secs(20));
    gone(&mark).await;
}

#[tokio::test]
async fn a_stopped_command_hears_that_it_is_to_end() {
    let session = Session::new();
    let script = "trap 'echo bye; exit 4' TERM; echo up; kill -STOP $$; sleep 300";
    let command = session.start(script).await;
    read_until(&command, "up\n").await;
    command.terminate();
    // Stopped before or after it was asked: it goes on, hears of it, and ends by itself.
    let status = command.ended().await;
    assert!(
        [Status::Exited(4), Status::Signaled("SIGKILL".into())].contains(&status),
        "{status:?}"
    );
}
