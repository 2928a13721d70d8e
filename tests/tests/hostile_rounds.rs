//! A hundred rounds of misdeeds at the door leave nothing behind: the same threads and descriptors as after ten, and at most 8 MiB more
//! memory (decisions, "Checks"). A file of its own, so that no other test runs in its process.

use std::fs;
use std::time::{Duration, Instant};

mod door;
mod misdeeds;

use misdeeds::{MISDEEDS, Yard};

const MEBIBYTE: u64 = 1 << 20;
/// The calls that are made at once, half of them hostile.
const AT_ONCE: usize = 8;
/// The guests that there is room for: some still die behind their answers.
const ROOM: usize = 16;

/// What the process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holdings {
    threads: usize,
    descriptors: usize,
}

fn holdings() -> Holdings {
    let count = |folder| fs::read_dir(folder).map_or(0, Iterator::count);
    Holdings {
        threads: count("/proc/self/task"),
        descriptors: count("/proc/self/fd"),
    }
}

/// Has the allocator give large blocks back when they are freed. By default it keeps up to 64 MiB in each thread's heap for the next,
/// which says nothing of what the host holds.
fn keep_no_freed_memory() {
    for parameter in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: it takes no pointer, and both parameters take a number of bytes.
        assert_eq!(unsafe { libc::mallopt(parameter, 256 << 10) }, 1);
    }
}

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .unwrap();
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kibibytes * 1024
}

/// The holdings once they have stopped shrinking: guests die behind their answers.
async fn settled() -> Holdings {
    let mut last = holdings();
    let mut since = Instant::now();
    while since.elapsed() < Duration::from_millis(500) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = holdings();
        if now != last {
            last = now;
            since = Instant::now();
        }
    }
    last
}

/// Fills all memory that the pool keeps by design, which it may take long to use by chance: until ten times nothing came to it.
async fn saturate(yard: &Yard) {
    let mut most = 0;
    let mut unchanged = 0;
    while unchanged < 10 {
        yard.saturate(ROOM).await;
        let now = resident_bytes();
        unchanged = if now > most + MEBIBYTE {
            0
        } else {
            unchanged + 1
        };
        most = most.max(now);
    }
}

async fn round(yard: &Yard) {
    for some in MISDEEDS.chunks(AT_ONCE / 2) {
        let calls = some.iter().map(|misdeed| yard.check(misdeed));
        futures_util::future::join_all(calls).await;
    }
}

#[test]
fn a_hundred_rounds_leave_nothing_behind() {
    keep_no_freed_memory();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(4)
        .thread_keep_alive(Duration::from_secs(3600))
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let yard = Yard::new().await;
        saturate(&yard).await;
        for _ in 0..10 {
            round(&yard).await;
        }
        let (before, memory_before) = (settled().await, resident_bytes());
        let mut trail = Vec::new();
        for number in 10..100 {
            round(&yard).await;
            if number % 10 == 9 {
                trail.push(resident_bytes() / 1024);
            }
        }
        let (after, memory_after) = (settled().await, resident_bytes());
        assert_eq!(before, after);
        let grown = memory_after.saturating_sub(memory_before);
        assert!(
            grown <= 8 * MEBIBYTE,
            "{} KiB more than after ten rounds; KiB on the way: {trail:?}",
            grown / 1024
        );
    });
}
