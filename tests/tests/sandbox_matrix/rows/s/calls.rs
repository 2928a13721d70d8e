//! Calls of the tools: programs that wait for a person, ids, time, interrupts, and room.

use std::time::{Duration, Instant};

use floe_environment::CallOutcome;
use floe_protocol::StopReason;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::doors::{self, Calls, process_id};
use super::{gone, mark};
use crate::row::Row;
use crate::stage::{LONG, Stage, eventually, processes_with};

/// What no row may wait longer for that should come at once.
const SOON: Duration = Duration::from_secs(20);

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "S21",
        "a program that waits for a person ends at once or comes back by its window, and is said to wait where it does",
        programs_that_ask,
    ),
    Row::new(
        "S22",
        "an id that ended, is unknown, or is another Session's is explained and reaches nothing",
        ids_reach_their_own,
    ),
    Row::new(
        "S28",
        "a call whose time is over ends all that it started, keeps what was printed and says so",
        time_is_over,
    ),
    Row::new(
        "S28",
        "a command that is to be killed is asked, has its say, and is made to end where it does not",
        asked_then_made,
    ),
    Row::new(
        "S29",
        "an interrupt ends a call at once with all that it started, and what was printed is kept",
        interrupted_call,
    ),
    Row::new(
        "S30",
        "of sixty-four sessions the 65th takes the place of one that ended, and of a busy one never without saying so",
        room_for_one_more,
    ),
];

fn programs_that_ask(stage: &Stage) {
    let session = stage.session();
    stage.put("repository/.keep", "");
    session.ok("cd repository && git init -q --template= . && git add .keep");
    // Each with what proves that it did not merely hang; `None`: it waits, and is known to.
    let cases: &[(&str, Option<&str>)] = &[
        ("cat", None),
        ("python3", None),
        ("read -p 'Continue? [y/N] ' answer", None),
        ("bash -c 'head -n 1; :' | cat", None),
        ("cd repository && git commit", Some("")),
        ("ssh -o ConnectTimeout=5 host.invalid", Some("ssh: ")),
        ("command -v sudo >/dev/null && sudo true; exit 1", Some("")),
        ("apt install no-such-package-of-floe", Some("")),
        (
            "command -v gh >/dev/null && gh auth login; exit 1",
            Some(""),
        ),
    ];
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        for (script, ends) in cases {
            let started = Instant::now();
            let window = if ends.is_some() { 30_000 } else { 1_000 };
            let output = door.exec_for(script, window).await;
            assert!(started.elapsed() < Duration::from_secs(31));
            match ends {
                Some(words) => {
                    assert!(!output.output.contains("process_id"), "{script}: {}", output.output);
                    assert!(output.output.contains(words), "{script}: {}", output.output);
                    assert_eq!(output.stop_reason, StopReason::Failed, "{script}: {}", output.output);
                }
                None => {
                    assert_eq!(output.stop_reason, StopReason::Completed, "{script}: {}", output.output);
                    let process = process_id(&output);
                    assert!(output.output.contains(WAITING), "{script}: {}", output.output);
                    let polled = door.input(&process, json!({"yield_time_ms": 500})).await;
                    assert!(polled.output.contains(WAITING), "{script}: {}", polled.output);
                    let more = json!({"eof": true, "yield_time_ms": 60_000});
                    let ended = door.input(&process, more).await.output;
                    assert!(!ended.contains("[process still"), "{script}: {ended}");
                }
            }
        }
        // One that is busy is not said to wait, though it has an input.
        let output = door.exec_for("sleep 100", 1_000).await.output;
        assert!(!output.contains(WAITING), "{output}");
        // `npm init` asks line after line; the answers are its file.
        let script = "command -v npm >/dev/null || exit 9; mkdir package && cd package && npm init --no-update-notifier";
        let arguments = json!({"cmd": script, "yield_time_ms": 20_000, "tty": true});
        let output = door.call("exec_command", &arguments.to_string()).await;
        if output.facts.clone().unwrap().exit_code != Some(9) {
            assert!(output.output.contains("package name:"), "{}", output.output);
            let process = process_id(&output);
            for _ in 0..30 {
                let more = json!({"chars": "\n", "yield_time_ms": 500});
                if !door.input(&process, more).await.output.contains("[process still") {
                    break;
                }
            }
            assert!(stage.has("package/package.json"));
        }
    });
}

/// How a result says that a program waits for input.
const WAITING: &str = "[the process seems to wait for input]";

fn ids_reach_their_own(stage: &Stage) {
    let (session, other) = (stage.session(), stage.session());
    let unknown = |id: &str| {
        format!(
            "[input_command error: unknown process_id {id} (the session may have exited and been cleared)]"
        )
    };
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        let elsewhere = doors::open(stage, &other).await;
        // One that ended: its end is told once, then its id is nobody's.
        let ended = process_id(&door.exec_for("read x; exit 3", 250).await);
        let output = door
            .input(&ended, json!({"chars": "\n", "yield_time_ms": 60_000}))
            .await;
        assert_eq!(output.output, "[exit code: 3]");
        let output = door.input(&ended, json!({})).await;
        assert!(
            output.output.starts_with(&unknown(&ended)),
            "{}",
            output.output
        );
        assert_eq!(output.stop_reason, StopReason::Failed);
        // One that never was, and things that are no ids.
        for id in [
            "proc-00000000",
            "proc-",
            "1",
            "../proc-1",
            "proc-0000000g\n",
        ] {
            let output = door.input(id, json!({"chars": "x"})).await;
            assert!(output.output.starts_with(&unknown(id)), "{}", output.output);
        }
        let output = door.call("input_command", r#"{"process_id":""}"#).await;
        assert_eq!(
            output.output,
            "Missing required argument \"process_id\" for input_command."
        );
        // Another Session's.
        let theirs = process_id(&elsewhere.exec_for("read x; echo got $x", 250).await);
        for more in [
            json!({"chars": "stolen\n"}),
            json!({"kill": true}),
            json!({"chars": "\u{3}"}),
        ] {
            let output = door.input(&theirs, more).await;
            assert!(
                output.output.starts_with(&unknown(&theirs)),
                "{}",
                output.output
            );
        }
        let output = elsewhere
            .input(&theirs, json!({"chars": "mine\n", "yield_time_ms": 60_000}))
            .await;
        assert_eq!(output.output, "got mine\n");
        // One that a call is still waiting for.
        let cancel = CancellationToken::new();
        let arguments = json!({"cmd": "echo up; sleep 100"}).to_string();
        let waiting = door.start("waits", "exec_command", &arguments, &cancel);
        door.sink.until_streamed("waits", "up").await;
        let list = session.commands.list();
        let [held] = list.as_slice() else {
            panic!("{list:?}")
        };
        let output = door.input(&held.process_id, json!({"kill": true})).await;
        assert!(
            output.output.starts_with(&unknown(&held.process_id)),
            "{}",
            output.output
        );
        cancel.cancel();
        waiting.await;
        // Ids are drawn, not counted: no two share more than chance lets them.
        let mut ids = Vec::new();
        for _ in 0..16 {
            ids.push(process_id(&door.exec_for("sleep 100", 250).await));
        }
        let mut numbers: Vec<u32> = ids
            .iter()
            .map(|id| u32::from_str_radix(&id[5..], 16).unwrap())
            .collect();
        numbers.sort_unstable();
        let apart = numbers.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(apart.clone().all(|gap| gap > 8), "{numbers:x?}");
        assert!(
            numbers.last().unwrap() - numbers[0] > 1 << 28,
            "{numbers:x?}"
        );
        session.commands.dispose().await;
        let output = door.input(&ids[0], json!({})).await;
        assert!(
            output.output.starts_with(&unknown(&ids[0])),
            "{}",
            output.output
        );
    });
}

fn time_is_over(stage: &Stage) {
    let (session, mark) = (stage.session(), mark());
    stage.wait(async {
        let door = doors::open_timed(stage, &session, "waits", 5_000).await;
        let script = format!(
            "echo before; trap 'touch asked' TERM; bash -c 'trap \"\" TERM; (setsid sleep {mark} &); sleep {mark}' & wait; wait; sleep {mark}"
        );
        let started = Instant::now();
        let output = door.call("waits", &json!({"cmd": script}).to_string()).await;
        let took = started.elapsed();
        assert!(took >= Duration::from_millis(4_900) && took < SOON, "{took:?}");
        assert_eq!(output.output, "before\n\n[tool timeout: exceeded 5000ms]");
        assert_eq!(output.stop_reason, StopReason::Failed);
    });
    gone(&mark);
    assert!(stage.has("asked"), "it was ended without being asked");
    eventually("nothing is registered", || {
        session.commands.list().is_empty()
    });
}

fn asked_then_made(stage: &Stage) {
    let (session, mark) = (stage.session(), mark());
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        let polite = format!("trap 'echo bye; exit 5' TERM; echo up; setsid sleep {mark} & read x");
        let stubborn = format!("trap 'echo no' TERM INT HUP; echo up; setsid sleep {mark} & while :; do read x; done # {mark}");
        for (script, last_words) in [(polite, "bye\n"), (stubborn, "no\n")] {
            let process = process_id(&door.exec_for(&script, 1000).await);
            let started = Instant::now();
            let output = door.input(&process, json!({"kill": true})).await;
            assert!(started.elapsed() < SOON);
            assert_eq!(
                output.output,
                format!("{last_words}\n[process {process} killed (SIGTERM to the process group, SIGKILL after a grace period)]")
            );
            tokio::task::block_in_place(|| gone(&mark));
            let output = door.input(&process, json!({"kill": true})).await.output;
            assert!(output.contains("unknown process_id"), "{output}");
        }
        // One whose end nobody has seen yet: its last words are, and how it ended.
        let process = process_id(&door.exec_for("read x; echo over; exit 6", 250).await);
        let command = session.commands.attach(&process).unwrap();
        command.write_stdin(b"\n").await.unwrap();
        command.ended().await;
        drop(command);
        let output = door.input(&process, json!({"kill": true})).await.output;
        assert_eq!(
            output,
            format!("over\n\n[process {process} had already exited (exit code 6); session removed]")
        );
    });
}

fn interrupted_call(stage: &Stage) {
    let (session, mark) = (stage.session(), mark());
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        let script = format!("trap 'touch asked' TERM; (setsid sleep {mark} &); echo begin; while :; do sleep 0.1; done # {mark}");
        let cancel = CancellationToken::new();
        let running = door.start("c1", "exec_command", &json!({"cmd": script}).to_string(), &cancel);
        door.sink.until_streamed("c1", "begin").await;
        let asked = Instant::now();
        cancel.cancel();
        let output = tokio::time::timeout(LONG, running).await.unwrap().unwrap();
        assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
        assert_eq!(output.end, CallOutcome::Interrupted);
        assert_eq!(output.stop_reason, StopReason::Aborted);
        assert!(output.output.starts_with("begin\n"), "{}", output.output);
        tokio::task::block_in_place(|| {
            gone(&mark);
            eventually("nothing is registered", || session.commands.list().is_empty());
        });
        // It was asked before it was ended.
        assert!(stage.has("asked"));

        // A poll that is interrupted leaves the process as it is.
        let process = process_id(&door.exec_for(&format!("echo up; sleep {mark}"), 250).await);
        let cancel = CancellationToken::new();
        let arguments = json!({"process_id": process, "yield_time_ms": 120_000}).to_string();
        let polling = door.start("c2", "input_command", &arguments, &cancel);
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
        let output = tokio::time::timeout(LONG, polling).await.unwrap().unwrap();
        assert_eq!(output.stop_reason, StopReason::Aborted);
        let output = door.input(&process, json!({"yield_time_ms": 250})).await.output;
        assert!(output.contains(&format!("[process still running with process_id {process}")), "{output}");
    });
}

fn room_for_one_more(stage: &Stage) {
    let mark = mark();
    let full = stage.session();
    let script = format!("sleep {mark}");
    stage.wait(async {
        let door = doors::open(stage, &full).await;
        let mut ids = Vec::new();
        for _ in 0..64 {
            let command = full.start(&script).await;
            command.keep(false);
            ids.push(command.process_id().to_owned());
        }
        // All are busy: nobody loses anything, and the model is told what to do.
        let output = door.exec("echo no").await;
        assert_eq!(output.stop_reason, StopReason::Failed);
        let words = "[spawn error: all 64 command sessions are in use ";
        assert!(output.output.starts_with(words), "{}", output.output);
        tokio::task::block_in_place(|| {
            eventually("all run", || {
                processes_with(&format!("sleep\0{mark}")) == 64
            });
        });
        // Three have ended, and whose end nobody has seen. The one that was named first makes room.
        for id in [&ids[40], &ids[7], &ids[20]] {
            let command = full.commands.attach(id).unwrap();
            command.kill();
            command.ended().await;
        }
        assert_eq!(door.exec("echo yes").await.output, "yes\n");
        let output = door.input(&ids[40], json!({})).await.output;
        assert!(output.contains("unknown process_id"), "{output}");
        for id in [&ids[7], &ids[20]] {
            let output = door.input(id, json!({})).await.output;
            assert_eq!(output, "[terminated by signal SIGKILL]");
        }
        let alive = full.commands.list();
        assert_eq!(alive.len(), 61);
    });
    drop(full);
    gone(&mark);

    // A small one whose sessions count as idle at once: the one that was left alone for longest goes, and is named.
    let small = stage.session_with(|setup| {
        setup.commands.limits.sessions = 3;
        setup.commands.limits.evictable_after = Duration::ZERO;
    });
    stage.wait(async {
        let door = doors::open(stage, &small).await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(process_id(&door.exec_for(&script, 250).await));
        }
        door.input(&ids[0], json!({"yield_time_ms": 250})).await;
        let output = door.exec("echo yes").await.output;
        let note = format!("[process {} ended to make room: it was still running and had not been used for 0 minutes]", ids[1]);
        assert!(output.starts_with("yes\n") && output.contains(&note), "{output}");
        let output = door.input(&ids[1], json!({})).await.output;
        assert!(output.contains("unknown process_id"), "{output}");
        for id in [&ids[0], &ids[2]] {
            let output = door.input(id, json!({"yield_time_ms": 250})).await.output;
            assert!(output.contains("[process still running"), "{output}");
        }
    });
}
