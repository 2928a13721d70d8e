//! What is sent to a running command.

use std::time::{Duration, Instant};

use floe_command::{CommandError, CommandSpec, Status};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::doors::{self, Calls, process_id};
use super::{gone, mark};
use crate::row::Row;
use crate::stage::{LONG, Stage, eventually, finish, processes_with, read_until};

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "S16",
        "Ctrl-C reaches the trap of a command, with pipes and in a terminal, and its code is told",
        interrupt_is_trapped,
    ),
    Row::new(
        "S17",
        "Ctrl-C reaches the whole foreground group, and a program that ignores it is told to run on",
        interrupt_reaches_the_group,
    ),
    Row::new(
        "S18",
        "an interrupt of the host's own group reaches neither the command nor what leads it",
        interrupt_of_the_host,
    ),
    Row::new(
        "S19",
        "Ctrl-C among other characters is refused and nothing of it is written",
        interrupt_among_others,
    ),
    Row::new("S20", "a line that is sent is read", line_is_read),
    Row::new(
        "S23",
        "input to a program that has closed its own goes nowhere and breaks nothing",
        closed_by_the_program,
    ),
    Row::new(
        "S24",
        "ten mebibytes to a program that does not read come back in time with the count, and what was taken arrives",
        nobody_reads,
    ),
    Row::new(
        "S25",
        "eof ends the input of a program, and Ctrl-D through a pipe is a character like any other",
        end_of_input,
    ),
];

/// While bash starts a program it can be interrupted in vain, and then interrupts itself for ever: so only once the
/// program runs and the shell has had the time to wait for it.
fn until_it_sleeps(mark: &str) {
    let sleeping = format!("sleep\0{mark}");
    eventually("it sleeps", || processes_with(&sleeping) > 0);
    std::thread::sleep(Duration::from_millis(20));
}

fn interrupt_is_trapped(stage: &Stage) {
    let session = stage.session();
    let sleep = mark();
    let script = &format!("trap 'echo INT; exit 9' INT; echo up; sleep {sleep}");
    stage.wait(async {
        for terminal in [false, true] {
            let command = session
                .try_start(CommandSpec {
                    terminal,
                    ..CommandSpec::shell(script)
                })
                .await
                .unwrap();
            read_until(&command, "up").await;
            until_it_sleeps(&sleep);
            command.send_signal("SIGINT").unwrap();
            let outcome = finish(&command).await;
            assert_eq!(outcome.status, Status::Exited(9), "terminal: {terminal}");
            let wanted = if terminal { "^CINT\r\n" } else { "INT\n" };
            assert!(outcome.text.ends_with(wanted), "{:?}", outcome.text);
        }
        let door = doors::open(stage, &session).await;
        for tty in [false, true] {
            let arguments = json!({"cmd": script, "yield_time_ms": 250, "tty": tty}).to_string();
            let process = process_id(&door.call("exec_command", &arguments).await);
            let more = json!({"chars": "\u{3}", "yield_time_ms": 60_000});
            let output = door.input(&process, more).await;
            assert!(
                output.output.ends_with("\n[exit code: 9]"),
                "{}",
                output.output
            );
            assert!(output.output.contains("INT"), "{}", output.output);
            assert_eq!(output.facts.unwrap().exit_code, Some(9));
        }
    });
}

fn interrupt_reaches_the_group(stage: &Stage) {
    let session = stage.session();
    let (first, second) = (mark(), mark());
    let ends = [
        format!("echo up; sleep {first} | sleep {first}"),
        format!("echo up; bash -c 'sleep {first}; echo not so'"),
        format!("echo up; (sleep {first}; echo not so); sleep {first}"),
        format!("set -m; sleep {second} & set +m; trap 'kill %1' EXIT; echo up; sleep {first}"),
    ];
    stage.wait(async {
        for script in ends {
            let command = session.start(&script).await;
            read_until(&command, "up\n").await;
            // A shell that has printed has yet to start what it waits for.
            tokio::task::block_in_place(|| {
                eventually("it sleeps", || {
                    processes_with(&format!("sleep\0{first}")) > 0
                });
            });
            command.send_signal("SIGINT").unwrap();
            let outcome = finish(&command).await;
            assert_eq!(
                outcome.status,
                Status::Signaled("SIGINT".into()),
                "{script}"
            );
            assert_eq!(outcome.text, "", "{script}");
        }
        tokio::task::block_in_place(|| {
            gone(&first);
            gone(&second);
        });
        // The terminal signals its foreground group itself.
        let spec = CommandSpec {
            terminal: true,
            ..CommandSpec::shell(format!(
                "echo up; sleep {first} | sleep {first}; echo not so"
            ))
        };
        let command = session.try_start(spec).await.unwrap();
        read_until(&command, "up\r\n").await;
        tokio::task::block_in_place(|| {
            eventually("both sleep", || {
                processes_with(&format!("sleep\0{first}")) == 2
            });
        });
        command.send_signal("SIGINT").unwrap();
        let outcome = finish(&command).await;
        assert_eq!(
            (outcome.text.as_str(), outcome.status),
            ("^C", Status::Signaled("SIGINT".into()))
        );

        let door = doors::open(stage, &session).await;
        let script = "trap '' INT; echo up; read line; echo \"got $line\"";
        let process = process_id(&door.exec_for(script, 250).await);
        for _ in 0..3 {
            let more = json!({"chars": "\u{3}", "yield_time_ms": 250});
            let output = door.input(&process, more).await.output;
            let told = format!("[process still running with process_id {process}");
            assert!(output.contains(&told), "{output}");
        }
        let more = json!({"chars": "on\n", "yield_time_ms": 60_000});
        assert_eq!(door.input(&process, more).await.output, "got on\n");
    });
}

fn interrupt_of_the_host(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        // With a handler of its own the host survives what a terminal sends to its group; what it started would not.
        let kind = tokio::signal::unix::SignalKind::interrupt();
        let mut interrupts = tokio::signal::unix::signal(kind).unwrap();
        for terminal in [false, true] {
            let command = session
                .try_start(CommandSpec {
                    terminal,
                    ..CommandSpec::shell("echo up; read line; exit 7")
                })
                .await
                .unwrap();
            read_until(&command, "up").await;
            rustix::process::kill_current_process_group(rustix::process::Signal::INT).unwrap();
            tokio::time::timeout(LONG, interrupts.recv()).await.unwrap();
            command.write_stdin(b"go on\n").await.unwrap();
            assert_eq!(finish(&command).await.status, Status::Exited(7));
        }
        // And one that is meant for the command ends with the command's code, whatever leads it.
        let sleep = mark();
        let script = format!("trap 'exit 3' INT; echo up; sleep {sleep}");
        let command = session.start(&script).await;
        read_until(&command, "up\n").await;
        until_it_sleeps(&sleep);
        command.send_signal("SIGINT").unwrap();
        assert_eq!(finish(&command).await.status, Status::Exited(3));
    });
}

fn interrupt_among_others(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        let process = process_id(&door.exec_for("read line; echo \"got [$line]\"", 250).await);
        for chars in ["abc\u{3}def", "\u{3}\n", "\u{3}\u{3}"] {
            let output = door.input(&process, json!({"chars": chars})).await.output;
            assert_eq!(
                output,
                "[input_command error: chars mixes U+0003 (Ctrl-C) with other content; send \"\\u0003\" alone to interrupt]"
            );
        }
        let more = json!({"chars": "x\n", "yield_time_ms": 60_000});
        assert_eq!(door.input(&process, more).await.output, "got [x]\n");
    });
}

fn line_is_read(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let command = session.start("read x; echo got $x").await;
        command.write_stdin(b"hi\n").await.unwrap();
        let outcome = finish(&command).await;
        assert_eq!(
            (outcome.text.as_str(), outcome.status),
            ("got hi\n", Status::Exited(0))
        );
    });
}

fn closed_by_the_program(stage: &Stage) {
    let session = stage.session();
    let one = vec![b'x'; 1024 * 1024];
    stage.wait(async {
        // Closed before anything comes; and after five characters of much more, while the rest is on its way.
        for (script, wanted) in [
            ("exec 0<&-; echo closed; until [ -e go ]; do sleep 0.01; done; echo alive; exit 4", "alive\n"),
            ("echo closed; head -c 5; echo; exec 0<&-; until [ -e go ]; do sleep 0.01; done; echo alive; exit 4", "xxxxx\nalive\n"),
        ] {
            let command = session.start(script).await;
            read_until(&command, "closed\n").await;
            let started = Instant::now();
            for _ in 0..3 {
                command.write_stdin(&one).await.unwrap();
            }
            assert!(started.elapsed() < Duration::from_secs(20));
            command.close_stdin();
            stage.put("go", "");
            let outcome = finish(&command).await;
            assert_eq!((outcome.text.as_str(), outcome.status), (wanted, Status::Exited(4)));
            // To one that has ended, too.
            command.write_stdin(b"late\n").await.unwrap();
            std::fs::remove_file(stage.workspace.join("go")).unwrap();
        }
    });
}

fn nobody_reads(stage: &Stage) {
    let session = stage.session();
    let data: Vec<u8> = (0..10 * 1024 * 1024_u32)
        .map(|at| (at % 251) as u8)
        .collect();
    stage.wait(async {
        let script = "until [ -e go ]; do sleep 0.01; done; sha256sum";
        let command = session.start(script).await;
        let started = Instant::now();
        let error = command.write_stdin(&data).await.unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(20));
        let CommandError::InputBlocked { accepted, offered } = error else {
            panic!("{error}");
        };
        assert_eq!(offered, data.len());
        assert!(
            (1024 * 1024..2 * 1024 * 1024).contains(&accepted),
            "{accepted}"
        );
        // What was taken is what arrives, and nothing else.
        command.close_stdin();
        stage.put("go", "");
        let digest = Sha256::digest(&data[..accepted]);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(finish(&command).await.text, format!("{digest}  -\n"));

        let door = doors::open(stage, &session).await;
        let process = process_id(&door.exec_for("echo up; exec sleep 100", 250).await);
        let three = "y".repeat(3 * 1024 * 1024);
        let output = door.input(&process, json!({"chars": three})).await.output;
        let words = "[input_command error: the program does not read its input: ";
        assert!(output.contains(words), "{output}");
        assert!(output.contains(" of 3145728 bytes were taken"), "{output}");
        assert!(
            output.contains(&format!("process_id {process}")),
            "{output}"
        );
    });
}

fn end_of_input(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        let process = process_id(&door.exec_for("cat; echo over", 250).await);
        let more = json!({"chars": "last words", "eof": true, "yield_time_ms": 60_000});
        assert_eq!(door.input(&process, more).await.output, "last wordsover\n");

        let process = process_id(&door.exec_for("wc -c", 250).await);
        let more = json!({"eof": true, "yield_time_ms": 60_000});
        assert_eq!(door.input(&process, more).await.output, "0\n");

        let process = process_id(&door.exec_for("head -c 3 | od -An -tx1", 250).await);
        let more = json!({"chars": "a\u{4}b", "yield_time_ms": 60_000});
        assert_eq!(door.input(&process, more).await.output, " 61 04 62\n");

        // A terminal understands the character.
        let arguments = json!({"cmd": "cat; echo over", "yield_time_ms": 250, "tty": true});
        let started = door.call("exec_command", &arguments.to_string()).await;
        let process = process_id(&started);
        let more = json!({"chars": "x\n", "eof": true, "yield_time_ms": 60_000});
        let output = door.input(&process, more).await.output;
        assert_eq!(output, "x\r\nx\r\nover\r\n");
    });
}
