//! A hundred rounds of misdeeds in a row leave nothing behind: the same threads and descriptors as after ten, and at most 8 MiB more
//! memory (decisions, "Checks"). A file of its own, so that no other test runs in its process.

use std::fs;
use std::time::{Duration, Instant};

use floe_tests::misdeeds::{Bench, MISDEEDS};

const MEBIBYTE: u64 = 1 << 20;
/// Fewer than the calls that are made at once, so that some have to wait.
const ROOM: u32 = 8;

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

/// Anonymous memory, without what the allocator merely keeps for the next call: of strings as long as these guests hand over it
/// keeps tens of megabytes, in whichever thread freed them last.
fn resident_bytes() -> u64 {
    // SAFETY: it takes no pointer, and may be called at any time on any thread.
    unsafe { libc::malloc_trim(0) };
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

async fn round(bench: &Bench) {
    for some in MISDEEDS.chunks(8) {
        let calls = some.iter().map(|misdeed| bench.check(misdeed));
        futures_util::future::join_all(calls).await;
    }
}

#[test]
fn a_hundred_rounds_leave_nothing_behind() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(4)
        .thread_keep_alive(Duration::from_secs(3600))
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let bench = Bench::with_room_for(ROOM);
        bench.saturate(4 * ROOM as usize).await;
        for _ in 0..10 {
            round(&bench).await;
        }
        let (before, memory_before) = (settled().await, resident_bytes());
        let mut trail = Vec::new();
        for number in 10..100 {
            round(&bench).await;
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
