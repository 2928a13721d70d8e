//! Commands in a terminal, in the real sandbox.

mod support;

use std::time::Duration;

use floe_command::{CommandHandle, CommandSpec, Status};

use support::{Session, gone, read_to_end, read_until};

async fn in_terminal(session: &Session, script: &str) -> CommandHandle {
    let spec = CommandSpec {
        terminal: true,
        ..CommandSpec::shell(script)
    };
    session
        .commands
        .spawn(spec)
        .await
        .unwrap_or_else(|error| panic!("{error}"))
}

async fn type_in(command: &CommandHandle, keys: &str) {
    command.write_stdin(keys.as_bytes()).await.unwrap();
}

/// An interactive shell whose prompt is known.
async fn shell(session: &Session) -> CommandHandle {
    let command = in_terminal(session, "PS1='ready> ' exec bash --norc --noprofile -i").await;
    let greeting = read_until(&command, "ready> ").await;
    for complaint in ["cannot set terminal process group", "no job control"] {
        assert!(!greeting.contains(complaint), "{greeting}");
    }
    command
}

#[tokio::test]
async fn an_interactive_shell_has_job_control_with_ctrl_z_fg_and_ctrl_c() {
    let session = Session::new();
    let command = shell(&session).await;
    type_in(&command, "bash -c 'echo up; exec cat'\n").await;
    read_until(&command, "\nup\r\n").await;
    type_in(&command, "hello\n").await;
    // Once as the terminal's echo and once from the program, which therefore is in the foreground.
    read_until(&command, "hello\r\nhello\r\n").await;
    type_in(&command, "\u{1a}").await;
    let text = read_until(&command, "ready> ").await;
    assert!(text.contains("Stopped"), "{text:?}");
    type_in(&command, "jobs\n").await;
    let text = read_until(&command, "ready> ").await;
    assert!(text.contains("Stopped") && text.contains("cat"), "{text:?}");
    type_in(&command, "fg\n").await;
    read_until(&command, "exec cat'\r\n").await;
    type_in(&command, "again\n").await;
    read_until(&command, "again\r\nagain\r\n").await;
    // Ctrl-C is for what is in the foreground: the program ends, and the shell does not.
    command.send_signal("SIGINT").unwrap();
    read_until(&command, "ready> ").await;
    type_in(&command, "echo status $?; exit 5\n").await;
    let text = read_to_end(&command).await;
    assert!(text.contains("status 130\r\n"), "{text:?}");
    assert_eq!(command.status(), Status::Exited(5));
}

#[tokio::test]
async fn a_terminal_is_dumb_of_80_columns_and_24_rows_and_tells_of_a_new_size() {
    let session = Session::new();
    let script = "echo $TERM; stty size; tty; trap 'stty size; exit' WINCH; echo armed; while :; do sleep 0.05; done";
    let command = in_terminal(&session, script).await;
    let text = read_until(&command, "armed\r\n").await;
    assert!(text.starts_with("dumb\r\n24 80\r\n/dev/pts/"), "{text:?}");
    command.resize_terminal(132, 50).unwrap();
    assert_eq!(read_to_end(&command).await, "50 132\r\n");
}

#[tokio::test]
async fn a_shell_in_a_dumb_terminal_sends_no_control_sequences_and_echoes_once() {
    let session = Session::new();
    let spec = CommandSpec {
        terminal: true,
        raw_output: true,
        ..CommandSpec::shell("PS1='ready> ' exec bash --norc --noprofile -i")
    };
    let command = session.commands.spawn(spec).await.unwrap();
    read_until(&command, "ready> ").await;
    type_in(&command, "echo o''ne\n").await;
    let text = read_until(&command, "one\r\nready> ").await;
    assert_eq!(text, "echo o''ne\r\none\r\nready> ");
    type_in(&command, "exit\n").await;
    assert!(!read_to_end(&command).await.contains('\u{1b}'));
}

#[tokio::test]
async fn ctrl_c_reaches_the_trap_of_a_program_in_a_terminal() {
    let session = Session::new();
    // A builtin, because bash can be interrupted in vain, and for ever, while it starts a program.
    let script = "trap 'echo INT; exit 9' INT; echo ready; read line";
    let command = in_terminal(&session, script).await;
    read_until(&command, "ready\r\n").await;
    command.send_signal("SIGINT").unwrap();
    assert_eq!(read_to_end(&command).await, "^CINT\r\n");
    assert_eq!(command.status(), Status::Exited(9));
}

#[tokio::test]
async fn a_pipeline_in_a_terminal_ends_as_a_whole() {
    let session = Session::new();
    let mark = format!("30{:05}.25", std::process::id() % 100_000);
    let script = format!("echo ready; sleep {mark} | sleep {mark}");
    let command = in_terminal(&session, &script).await;
    read_until(&command, "ready\r\n").await;
    // The shell has to have started both, or it is interrupted before it does.
    while support::processes_with(&format!("sleep\0{mark}")) < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    command.send_signal("SIGINT").unwrap();
    read_to_end(&command).await;
    assert_eq!(command.status(), Status::Signaled("SIGINT".into()));
    gone(&mark).await;
}

#[tokio::test]
async fn asking_a_terminal_to_end_reaches_its_foreground_and_then_ends_all() {
    let session = Session::new();
    let command = shell(&session).await;
    let program =
        "bash -c 'trap \"echo saved > saved; exit\" TERM; echo up; while :; do sleep 0.02; done'\n";
    type_in(&command, program).await;
    read_until(&command, "\nup\r\n").await;
    command.terminate();
    // An interactive shell ignores the request, and is killed when its time is over.
    command.ended().await;
    let saved = std::fs::read_to_string(session.workspace.join("saved")).unwrap();
    assert_eq!(saved, "saved\n");
}
