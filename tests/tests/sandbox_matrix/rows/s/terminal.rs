//! Commands in a terminal of their own.

use floe_command::{CommandHandle, CommandSpec, Status};

use super::{gone, mark};
use crate::row::Row;
use crate::stage::{LONG, Session, Stage, eventually, finish, processes_with, read_until};

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "S26",
        "a terminal has 80 columns and 24 rows, echoes input once, ends lines with CR LF and asks for no pasting mode",
        what_a_terminal_is,
    ),
    Row::new(
        "S27",
        "job control works in a terminal: stop, go on in the foreground and in the background, interrupt",
        job_control,
    ),
    Row::new(
        "S16",
        "Ctrl-C ends a program in a terminal that has been sent more than it will ever read",
        interrupt_behind_much_input,
    ),
    Row::new(
        "S27",
        "a terminal ends with everything in it, and nothing outside is its session",
        terminal_ends,
    ),
];

async fn start_in_terminal(session: &Session<'_>, script: &str, raw_output: bool) -> CommandHandle {
    let spec = CommandSpec {
        terminal: true,
        raw_output,
        ..CommandSpec::shell(script)
    };
    session
        .try_start(spec)
        .await
        .unwrap_or_else(|error| panic!("{error}"))
}

fn what_a_terminal_is(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let script = "test -t 0 && test -t 1 && test -t 2 && stty size; echo $TERM; read x; echo got $x; exit 6";
        let command = start_in_terminal(&session, script, true).await;
        assert_eq!(read_until(&command, "dumb\r\n").await, "24 80\r\ndumb\r\n");
        command.write_stdin(b"hi\n").await.unwrap();
        let outcome = finish(&command).await;
        assert_eq!(outcome.text, "hi\r\ngot hi\r\n");
        assert_eq!(outcome.status, Status::Exited(6));

        // A shell that edits lines: its own echo and the terminal's are one, and the bytes ask for nothing.
        let command = start_in_terminal(&session, "PS1='> ' bash --norc --noprofile -i", true).await;
        let mut text = read_until(&command, "> ").await;
        command.write_stdin(b"echo $((40 + 2))\n").await.unwrap();
        text += &read_until(&command, "42\r\n> ").await;
        command.write_stdin(b"exit 8\n").await.unwrap();
        let outcome = finish(&command).await;
        text += &outcome.text;
        assert_eq!(outcome.status, Status::Exited(8));
        assert_eq!(text, "> echo $((40 + 2))\r\n42\r\n> exit 8\r\nexit\r\n");

        // A new size is told to the program at once.
        let script = "trap 'stty size; exit' WINCH; echo up; while :; do sleep 0.05; done";
        let command = start_in_terminal(&session, script, false).await;
        read_until(&command, "up\r\n").await;
        command.resize_terminal(132, 43).unwrap();
        assert_eq!(finish(&command).await.text, "43 132\r\n");
    });
}

fn job_control(stage: &Stage) {
    let (session, mark) = (stage.session(), mark());
    let runs = || processes_with(&format!("sleep\0{mark}"));
    stage.wait(async {
        let shell =
            start_in_terminal(&session, "PS1='> ' exec bash --norc --noprofile -i", false).await;
        let mut text = read_until(&shell, "> ").await;
        let type_in =
            async |characters: &str| shell.write_stdin(characters.as_bytes()).await.unwrap();
        let started = || tokio::task::block_in_place(|| eventually("it sleeps", || runs() > 0));
        type_in(&format!("sleep {mark}\n")).await;
        started();
        type_in("\u{1a}").await;
        text += &read_until(&shell, "Stopped").await;
        text += &read_until(&shell, "> ").await;
        type_in("bg\n").await;
        text += &read_until(&shell, "> ").await;
        type_in("jobs -r | wc -l\n").await;
        text += &read_until(&shell, "\r\n1\r\n").await;
        type_in("fg\n").await;
        text += &read_until(&shell, &format!("sleep {mark}\r\n")).await;
        // The shell says what it brings to the foreground before it does; a Ctrl-C until then is the shell's own.
        loop {
            shell.send_signal("SIGINT").unwrap();
            let batch = shell
                .read_output(4096, std::time::Duration::from_millis(200))
                .await
                .unwrap();
            text += &batch.text();
            if runs() == 0 {
                break;
            }
        }
        type_in("echo code $?; exit 5\n").await;
        let outcome = finish(&shell).await;
        text += &outcome.text;
        assert_eq!(outcome.status, Status::Exited(5), "{text}");
        for complaint in ["process group", "no job control", "ioctl"] {
            assert!(!text.contains(complaint), "{text}");
        }
    });
    gone(&mark);
}

fn terminal_ends(stage: &Stage) {
    let (session, mark) = (stage.session(), mark());
    stage.wait(async {
        // What ignores the hangup of its terminal, and what has none any more.
        let script = format!("trap '' HUP; (setsid sleep {mark} &); sleep {mark} & tty; exit 2");
        let command = start_in_terminal(&session, &script, false).await;
        let outcome = finish(&command).await;
        assert_eq!(outcome.status, Status::Exited(2));
        assert!(outcome.text.starts_with("/dev/pts/"), "{}", outcome.text);
        tokio::task::block_in_place(|| gone(&mark));

        let script = format!("echo up; sleep {mark}");
        let command = start_in_terminal(&session, &script, false).await;
        read_until(&command, "up\r\n").await;
        command.kill();
        assert_eq!(command.ended().await, Status::Signaled("SIGKILL".into()));
        let rest = command.read_output(1000, LONG).await.unwrap();
        assert!(rest.ended, "{rest:?}");
        tokio::task::block_in_place(|| gone(&mark));

        // Through a pipe there is none to open.
        let command = session.start("exec 3<>/dev/tty && echo has one").await;
        let outcome = finish(&command).await;
        assert_eq!(outcome.stdout, "");
        assert!(outcome.stderr.contains("/dev/tty"), "{}", outcome.stderr);
    });
}

fn interrupt_behind_much_input(stage: &Stage) {
    let (session, mark) = (stage.session(), mark());
    stage.wait(async {
        // With and without an end of line in what waits, and for the job of a shell that has a group of its own, after
        // which the shell ends in its own way.
        let plain = format!("echo up; exec sleep {mark}");
        let job = format!("bash --norc --noprofile -i -c 'echo up; sleep {mark}; exit'");
        for script in [&plain, &job] {
            for line in ["more\n", "more"] {
                let command = start_in_terminal(&session, script, false).await;
                read_until(&command, "up\r\n").await;
                tokio::task::block_in_place(|| {
                    eventually("it sleeps", || {
                        processes_with(&format!("sleep\0{mark}")) > 0
                    });
                });
                let much = line.repeat(100_000);
                // Some of it waits in the terminal, some in the queue, and for some there is no room.
                let _ = command.write_stdin(much.as_bytes()).await;
                command.send_signal("SIGINT").unwrap();
                let end = tokio::time::timeout(LONG, command.ended()).await.unwrap();
                let killed = Status::Signaled("SIGKILL".into());
                assert!(end != killed, "{script} {line:?}");
                if script == &plain {
                    assert_eq!(end, Status::Signaled("SIGINT".into()), "{line:?}");
                }
                tokio::task::block_in_place(|| gone(&mark));
            }
        }
    });
}
