//! Standard input and signals.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::doubles::{House, LONG, Puppets, read_to_end, read_until, registry};
use crate::{CommandError, CommandSpec, Status};

#[tokio::test]
async fn what_is_written_to_stdin_is_read_by_the_program() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("read x; echo got $x"))
        .await
        .unwrap();
    session.write_stdin(b"hi\n").await.unwrap();
    assert_eq!(read_to_end(&session).await.0, "got hi\n");
}

#[tokio::test]
async fn closing_stdin_is_the_end_of_input_behind_what_was_written() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("cat; echo end"))
        .await
        .unwrap();
    let text = "line\n".repeat(50_000);
    session.write_stdin(text.as_bytes()).await.unwrap();
    session.close_stdin();
    let (output, dropped) = read_to_end(&session).await;
    assert_eq!(dropped, 0);
    assert_eq!(output, text + "end\n");
}

#[tokio::test]
async fn a_write_to_a_closed_input_is_ignored() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell(
            "exec 0<&-; echo closed; read -t 2 x <&1; sleep 60",
        ))
        .await
        .unwrap();
    read_until(&session, "closed\n").await;
    for _ in 0..3 {
        session.write_stdin(&[b'x'; 100_000]).await.unwrap();
    }
    session.close_stdin();
    session.write_stdin(b"more").await.unwrap();
    assert_eq!(session.status(), Status::Running);
}

#[tokio::test]
async fn a_write_to_a_command_that_has_ended_is_ignored() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("exit 4"))
        .await
        .unwrap();
    session.ended().await;
    session.write_stdin(b"x").await.unwrap();
    session.close_stdin();
    session.send_signal("SIGINT").unwrap();
    assert_eq!(session.status(), Status::Exited(4));
}

#[tokio::test]
async fn ten_mebibytes_to_a_program_that_does_not_read_return_in_time_with_the_count() {
    let house = House::with(|options| options.limits.input_wait = Duration::from_millis(200));
    let session = house
        .sessions
        .spawn(CommandSpec::shell("sleep 60"))
        .await
        .unwrap();
    let started = Instant::now();
    let data = vec![b'x'; 10 * 1024 * 1024];
    let Err(CommandError::InputBlocked { accepted, offered }) = session.write_stdin(&data).await
    else {
        panic!("it was taken");
    };
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(offered, data.len());
    assert!(
        (1024 * 1024..=3 * 1024 * 1024).contains(&accepted),
        "{accepted}"
    );
}

#[tokio::test]
async fn writes_of_several_callers_are_not_mixed() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("sleep 0.1; cat"))
        .await
        .unwrap();
    let (a, b) = ("a".repeat(300_000) + "\n", "b".repeat(300_000) + "\n");
    let (first, second) = tokio::join!(
        session.write_stdin(a.as_bytes()),
        session.write_stdin(b.as_bytes())
    );
    first.unwrap();
    second.unwrap();
    session.close_stdin();
    assert_eq!(read_to_end(&session).await.0, a + &b);
}

#[tokio::test]
async fn an_interrupt_reaches_the_group_and_a_trap_answers_it() {
    let house = House::new();
    let script = "trap 'echo INT; exit 9' INT; echo ready; sleep 100";
    let session = house
        .sessions
        .spawn(CommandSpec::shell(script))
        .await
        .unwrap();
    read_until(&session, "ready\n").await;
    session.send_signal("SIGINT").unwrap();
    assert_eq!(read_to_end(&session).await.0, "INT\n");
    assert_eq!(session.status(), Status::Exited(9));
}

#[tokio::test]
async fn an_interrupt_ends_a_pipeline_and_the_signal_is_told() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("echo ready; sleep 100 | sleep 100"))
        .await
        .unwrap();
    read_until(&session, "ready\n").await;
    session.send_signal("SIGINT").unwrap();
    read_to_end(&session).await;
    assert_eq!(session.status(), Status::Signaled("SIGINT".into()));
}

#[tokio::test]
async fn a_program_that_ignores_the_interrupt_goes_on_and_sigkill_ends_it() {
    let house = House::new();
    let script = "trap '' INT TERM; echo ready; while read -r x; do echo $x; done; sleep 100";
    let session = house
        .sessions
        .spawn(CommandSpec::shell(script))
        .await
        .unwrap();
    read_until(&session, "ready\n").await;
    session.send_signal("SIGINT").unwrap();
    session.send_signal("SIGTERM").unwrap();
    session.write_stdin(b"still here\n").await.unwrap();
    read_until(&session, "still here\n").await;
    session.send_signal("SIGKILL").unwrap();
    read_to_end(&session).await;
    assert_eq!(session.status(), Status::Signaled("SIGKILL".into()));
}

#[tokio::test]
async fn only_three_signals_can_be_sent() {
    let house = House::new();
    let session = house
        .sessions
        .spawn(CommandSpec::shell("sleep 60"))
        .await
        .unwrap();
    for name in ["SIGSTOP", "SIGUSR1", "9", "", "nonsense"] {
        let error = session.send_signal(name).unwrap_err();
        assert_eq!(error.code(), "invalid-argument");
        assert!(error.to_string().contains("use SIGINT, SIGTERM or SIGKILL"));
    }
    assert_eq!(
        session.resize_terminal(80, 24),
        Err(CommandError::NoTerminal)
    );
}

#[tokio::test]
async fn standard_streams_are_no_terminal() {
    let house = House::new();
    let script = "test -t 0 && echo 0; test -t 1 && echo 1; test -t 2 && echo 2; echo checked";
    let session = house
        .sessions
        .spawn(CommandSpec::shell(script))
        .await
        .unwrap();
    assert_eq!(read_to_end(&session).await.0, "checked\n");
}

#[tokio::test]
async fn what_was_written_arrives_before_the_end_of_input() {
    let puppets = Arc::new(Puppets::default());
    let (_folder, sessions) = registry(Arc::clone(&puppets) as _, |_| {});
    let session = sessions.spawn(CommandSpec::shell("x")).await.unwrap();
    let mut puppet = puppets.next();
    session.write_stdin(b"abc").await.unwrap();
    session.close_stdin();
    let read = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut puppet.stdin, &mut text).unwrap();
        (text, puppet)
    });
    let (text, puppet) = tokio::time::timeout(LONG, read).await.unwrap().unwrap();
    assert_eq!(text, "abc");
    drop(puppet);
}

#[tokio::test]
async fn a_command_that_is_blocked_on_its_input_is_known_to_wait_and_others_are_not() {
    let house = House::new();
    let asking = house
        .sessions
        .spawn(CommandSpec::shell("echo go; (read x; echo $x)"))
        .await
        .unwrap();
    let busy = house
        .sessions
        .spawn(CommandSpec::shell("sleep 60"))
        .await
        .unwrap();
    let wait = Duration::from_millis(50);
    let mut known = false;
    for _ in 0..200 {
        known = asking
            .read_output(1024, wait)
            .await
            .unwrap()
            .waiting_for_input;
        if known {
            break;
        }
    }
    assert!(known);
    assert!(
        !busy
            .read_output(1024, wait)
            .await
            .unwrap()
            .waiting_for_input
    );
    asking.write_stdin(b"x\n").await.unwrap();
    read_to_end(&asking).await;
    assert!(
        !asking
            .read_output(1024, wait)
            .await
            .unwrap()
            .waiting_for_input
    );
}
