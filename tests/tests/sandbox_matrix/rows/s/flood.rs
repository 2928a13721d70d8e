//! More output than anybody reads.

use std::time::{Duration, Instant};

use floe_command::Status;
use floe_environment::ToolCallOutput;
use futures_util::future::join_all;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::doors::{self, Calls, process_id};
use super::{gone, mark};
use crate::row::Row;
use crate::stage::{LONG, Stage, finish, read_until};

/// The host may grow by this much while commands print without end, in KiB.
const MAY_GROW: usize = 32 * 1024;

/// An answer that comes within this is none that anybody waited for. The table says 200 ms, of a machine that does
/// nothing else.
const ANSWER: Duration = Duration::from_secs(5);

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "S7",
        "floods cost the host little memory, come back on time with head, tail and count, and others answer meanwhile",
        floods_are_bounded,
    )
    .alone(),
    Row::new(
        "S8",
        "the last line and the exit code of two hundred thousand lines are in the result",
        the_reason_is_told,
    ),
    Row::new(
        "S9",
        "one line of fifty mebibytes is cut, and what follows it arrives",
        one_huge_line,
    ),
    Row::new(
        "S13",
        "of a flood that nobody keeps up with nothing is lost that is not counted",
        nothing_uncounted,
    ),
    Row::new(
        "S47",
        "twenty sessions that are asked at once answer while others flood",
        everybody_is_served,
    ),
];

/// What this process has in memory, in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.unwrap().split_ascii_whitespace().nth(1).unwrap();
    kib.parse().unwrap()
}

fn floods_are_bounded(stage: &Stage) {
    let (session, mark) = (stage.session(), mark());
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        // Whatever is made once is there.
        door.exec("seq 100000").await;
        let other = session.start("while read x; do echo $x; done").await;
        let before = resident();

        let floods = [
            format!("yes; sleep {mark}"),
            format!("cat /dev/zero; sleep {mark}"),
            format!("yes | head -c 2G; sleep {mark}"),
            format!("yes '\u{1b}[31m' >&2; sleep {mark}"),
        ];
        let mut running = Vec::new();
        for (number, script) in floods.iter().enumerate() {
            let arguments = json!({"cmd": script, "yield_time_ms": 3000}).to_string();
            let id = format!("flood-{number}");
            running.push(door.start(&id, "exec_command", &arguments, &CancellationToken::new()));
        }
        let (mut most, started) = (before, Instant::now());
        let all = join_all(running);
        tokio::pin!(all);
        let outputs: Vec<ToolCallOutput> = loop {
            tokio::select! {
                outputs = &mut all => break outputs.into_iter().map(Option::unwrap).collect(),
                () = async {
                    let asked = Instant::now();
                    other.write_stdin(b"hi\n").await.unwrap();
                    assert_eq!(other.read_output(1024, LONG).await.unwrap().text(), "hi\n");
                    assert!(asked.elapsed() < ANSWER, "{:?}", asked.elapsed());
                    most = most.max(resident());
                    tokio::time::sleep(Duration::from_millis(20)).await;
                } => {}
            }
        };
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{:?}",
            started.elapsed()
        );

        for (output, printed) in outputs.iter().zip(["y\n", "", "y\n", "\n"]) {
            let told = &output.output;
            let process = process_id(output);
            assert!(
                told.contains(&format!("\n[process running with process_id {process};"))
                    || printed.is_empty()
            );
            assert!(told.starts_with(&printed.repeat(4000)), "{told}");
            if printed.is_empty() {
                continue;
            }
            let (_, rest) = told
                .split_once("\n[output truncated: kept first 8000 and last 8000 of ")
                .unwrap();
            let (count, rest) = rest.split_once(" chars]\n").unwrap();
            assert!(count.parse::<u64>().unwrap() > 16_000, "{count}");
            assert!(rest.contains(&printed.repeat(3900)), "{rest}");
        }
        // Nobody reads, and it goes on for as long again.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        most = most.max(resident());
        let grown = most.saturating_sub(before);
        assert!(grown < MAY_GROW, "grown by {grown} KiB from {before}");
        for output in &outputs {
            let killed = door.input(&process_id(output), json!({"kill": true})).await;
            assert!(killed.output.contains(" killed ("), "{}", killed.output);
        }
    });
    gone(&mark);
}

fn the_reason_is_told(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        let script = "seq 1 200000; echo 'error: THE REASON' >&2; exit 1";
        let output = door.exec(script).await;
        let whole = (1..=200_000).map(|line| format!("{line}\n")).collect::<String>() + "error: THE REASON\n";
        let facts = output.facts.unwrap();
        let full = facts.full_output.unwrap();
        let wanted = format!(
            "{}\n[output truncated: kept first 8000 and last 8000 of {} chars]\n[full output: {full}]\n{}\n[exit code: 1]",
            &whole[..8000],
            whole.len(),
            &whole[whole.len() - 8000..],
        );
        assert_eq!(output.output, wanted);
        assert_eq!(facts.exit_code, Some(1));
        assert_eq!(door.sink.seen("c1").text(), wanted);
        let kept = full.strip_prefix("/floe/outputs/").unwrap();
        let kept = std::fs::read_to_string(door.outputs.join(kept)).unwrap();
        assert!(kept == whole, "{} of {} bytes are kept", kept.len(), whole.len());
    });
}

fn one_huge_line(stage: &Stage) {
    const LENGTH: usize = 50 * 1024 * 1024;
    let session = stage.session();
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        let output = door.exec(r"head -c 50M /dev/zero | tr '\0' x; echo; echo ok").await;
        let full = output.facts.unwrap().full_output.unwrap();
        let wanted = format!(
            "{}\n[output truncated: kept first 8000 and last 8000 of {} chars]\n[full output: {full}]\n{}\nok\n",
            "x".repeat(8000),
            LENGTH + 4,
            "x".repeat(8000 - 4),
        );
        assert_eq!(output.output, wanted);
    });
    // And the session goes on.
    assert_eq!(session.ok("echo ok"), "ok\n");
}

fn nothing_uncounted(stage: &Stage) {
    let session = stage.session();
    let whole: String = (1..=600_000).map(|line| format!("{line}\n")).collect();
    stage.wait(async {
        // Nobody reads before the end.
        let command = session.start("seq 600000").await;
        assert_eq!(command.ended().await, Status::Exited(0));
        let outcome = finish(&command).await;
        assert_eq!(
            outcome.text.len() as u64 + outcome.dropped,
            whole.len() as u64
        );
        assert_eq!(outcome.text.len(), 1024 * 1024);
        let (head, tail) = outcome.text.split_at(256 * 1024);
        assert!(whole.starts_with(head), "the head is the first output");
        assert!(whole.ends_with(tail), "the tail is the last");

        // Somebody reads a little at a time: each piece is where the count says that it is.
        let command = session.start("seq 600000").await;
        let mut at = 0;
        loop {
            let batch = command.read_output(2000, LONG).await.unwrap();
            at += batch.dropped as usize;
            let piece = batch.text();
            assert!(whole[at..].starts_with(&piece), "at {at}");
            at += piece.len();
            if batch.ended {
                break;
            }
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        assert_eq!(at, whole.len());

        // Both channels at once.
        let command = session.start("seq 300000 & seq 300000 >&2; wait").await;
        assert_eq!(command.ended().await, Status::Exited(0));
        let outcome = finish(&command).await;
        let each = (1..=300_000)
            .map(|line: u32| line.to_string().len() as u64 + 1)
            .sum::<u64>();
        assert_eq!(outcome.text.len() as u64 + outcome.dropped, 2 * each);
    });
}

fn everybody_is_served(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let unread = session.start("yes unread").await;
        let drained = session.start("yes drained").await;
        let mut others = Vec::new();
        for _ in 0..20 {
            others.push(
                session
                    .start("echo up; while read x; do echo $x; done")
                    .await,
            );
        }
        for other in &others {
            read_until(other, "up\n").await;
        }
        let drain = async {
            loop {
                let batch = drained.read_output(64 * 1024, LONG).await.unwrap();
                assert!(!batch.ended);
            }
        };
        let rounds = async {
            for round in 0..10 {
                let line = format!("{round}\n");
                let asked = Instant::now();
                join_all(others.iter().map(async |other| {
                    other.write_stdin(line.as_bytes()).await.unwrap();
                    assert_eq!(read_until(other, "\n").await, line);
                }))
                .await;
                assert!(
                    asked.elapsed() < ANSWER,
                    "round {round}: {:?}",
                    asked.elapsed()
                );
            }
        };
        tokio::select! {
            () = rounds => {}
            () = drain => unreachable!("a flood does not end"),
        }
        assert_eq!(unread.status(), Status::Running);
    });
}
