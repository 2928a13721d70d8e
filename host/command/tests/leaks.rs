//! What is left of many commands, and what a flood costs. Alone in its process, whose descriptors, threads and memory
//! it measures.

mod support;

use std::fs;
use std::time::{Duration, Instant};

use floe_command::Status;
use support::{LONG, Session};

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
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

/// The children of this process, ended ones that nobody collected among them.
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

#[tokio::test]
async fn two_hundred_commands_leave_nothing_and_a_flood_costs_little_memory() {
    let session = Session::new();
    for _ in 0..5 {
        session.run("true").await;
    }
    let (descriptors_before, threads_before) = (descriptors(), of_status("Threads:"));
    for _ in 0..200 {
        assert_eq!(session.run("true").await.1, Status::Exited(0));
    }
    assert!(session.commands.list().is_empty());
    assert!(
        of_status("Threads:") <= threads_before + 1,
        "{} threads",
        of_status("Threads:")
    );
    for _ in 0..200 {
        if descriptors() <= descriptors_before && children() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(
        descriptors() <= descriptors_before,
        "{} descriptors, before {descriptors_before}",
        descriptors()
    );
    assert_eq!(children(), 0);

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
