//! What is left of many commands, and what a flood costs. Alone in its process, whose descriptors, threads and memory
//! it measures.

mod support;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use floe_command::{CommandSpec, Status};
use support::{LONG, Session, processes_with};

/// How many commands there are.
const COMMANDS: usize = 10_000;
/// How many of them run at once; as many as [`run`] joins.
const LANES: usize = 4;
/// Every so many one leaves a daemon behind that has left its group and its parents.
const DAEMON_EACH: usize = 20;

/// By how much the memory of this process may grow, in KiB, after the first thousand commands.
const MEMORY: usize = 8 * 1024;

/// How much there is of what could be left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Inventory {
    descriptors: usize,
    threads: usize,
    /// The children of this process, ended ones that nobody collected among them.
    children: usize,
    /// What the daemons are.
    daemons: usize,
    mounts: usize,
    files: usize,
}

impl Inventory {
    fn take(folder: &Path, mark: &str) -> Inventory {
        Inventory {
            descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
            threads: of_status("Threads:"),
            children: children(),
            daemons: processes_with(mark),
            mounts: fs::read_to_string("/proc/self/mountinfo")
                .unwrap()
                .lines()
                .count(),
            files: files(folder),
        }
    }

    fn is_within(&self, before: &Inventory) -> bool {
        self.descriptors <= before.descriptors
            // The pool of threads that may block may have grown to the number of lanes.
            && self.threads <= before.threads + LANES
            && self.children == 0
            && self.daemons == 0
            && self.mounts <= before.mounts
            && self.files <= before.files
    }
}

fn of_status(field: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

fn children() -> usize {
    let own = format!(" {} ", std::process::id());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| {
            let rest = stat.rsplit(')').next().unwrap_or_default();
            rest.get(2..).is_some_and(|rest| rest.starts_with(&own))
        })
        .count()
}

fn files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => 1 + files(&entry.path()),
            _ => 1,
        })
        .sum()
}

/// Runs so many commands, a few at a time.
async fn run(session: &Session, commands: usize, mark: &str) {
    let lane = async |lane: usize| {
        for number in 0..commands / LANES {
            if number % DAEMON_EACH == lane {
                let script = format!("(setsid sleep 600.{mark} >/dev/null 2>&1 &) ; exit 3");
                let (text, status) = session.run(&script).await;
                assert_eq!((text.as_str(), status), ("", Status::Exited(3)));
                continue;
            }
            let command = session.commands.spawn(CommandSpec {
                command: "echo".to_owned(),
                args: Some(vec![number.to_string()]),
                ..CommandSpec::default()
            });
            let command = command.await.unwrap_or_else(|error| panic!("{error}"));
            let text = support::read_to_end(&command).await;
            assert_eq!(text, format!("{number}\n"));
            assert_eq!(command.status(), Status::Exited(0));
        }
    };
    tokio::join!(lane(0), lane(1), lane(2), lane(3));
}

#[tokio::test]
async fn ten_thousand_commands_leave_nothing_and_a_flood_costs_little_memory() {
    let session = Session::new();
    // A fraction of a second that no other process of this machine sleeps for.
    let mark = &std::process::id().to_string();
    let folder = session.workspace.parent().unwrap();
    run(&session, COMMANDS / 10, mark).await;
    let before = Inventory::take(folder, mark);
    let memory_before = of_status("VmRSS:");
    run(&session, COMMANDS - COMMANDS / 10, mark).await;
    assert!(session.commands.list().is_empty());
    let until = Instant::now() + LONG;
    loop {
        let now = Inventory::take(folder, mark);
        if now.is_within(&before) {
            break;
        }
        assert!(Instant::now() < until, "before {before:?}, now {now:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let grown = of_status("VmRSS:").saturating_sub(memory_before);
    assert!(grown < MEMORY, "grown by {grown} KiB");

    flood(&session).await;
}

/// Of a command that prints without end only so much is kept, and another one answers meanwhile.
async fn flood(session: &Session) {
    let memory_before = of_status("VmRSS:");
    let flood = session.start("yes").await;
    let other = session.start("while read x; do echo $x; done").await;
    let until = Instant::now() + Duration::from_secs(3);
    let mut slowest = Duration::ZERO;
    while Instant::now() < until {
        let asked = Instant::now();
        other.write_stdin(b"hi\n").await.unwrap();
        assert_eq!(other.read_output(1024, LONG).await.unwrap().text(), "hi\n");
        slowest = slowest.max(asked.elapsed());
    }
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let grown = of_status("VmRSS:").saturating_sub(memory_before);
    assert!(grown < 32 * 1024, "grown by {grown} KiB");
    let batch = flood.read_output(usize::MAX, LONG).await.unwrap();
    assert!(batch.text().starts_with("y\ny\n"));
    assert!(flood.read_output(usize::MAX, LONG).await.unwrap().dropped > 0);
}
