//! How much of the machine a command may take.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use floe_command::{CommandSpec, Status};
use floe_sandbox::Excess;

use crate::row::Row;
use crate::stage::{Setup, Stage, eventually, finish, processes_with, read_until};

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "E31",
        "too much in the temporary folder or at home ends the command with its reason",
        full_temporary_folder,
    ),
    Row::new(
        "E31",
        "no file grows beyond its limit, and shared memory has its own",
        large_files,
    ),
    Row::new(
        "E31",
        "a disk with too little free space ends the command with its reason",
        full_disk,
    ),
    Row::new(
        "E32",
        "a fork bomb is capped, leaves the host able to start processes, and is gone soon",
        fork_bomb,
    )
    .alone(),
    Row::new(
        "E33",
        "too much memory, in one process or in several, ends the command and not the host",
        too_much_memory,
    ),
];

/// Runs a script in a Session of its own until it is stopped, and returns why. Nothing of it is left.
fn stopped(stage: &Stage, change: impl FnOnce(&mut Setup), script: &str) -> Status {
    let mark = format!("9{}", stage.folder.file_name().unwrap().display());
    let session = stage.session_with(change);
    let outcome = session.run(&format!("(setsid sleep {mark}0 &)\n{script}\nsleep {mark}"));
    eventually("all of it is gone", || {
        processes_with(&format!("sleep\0{mark}")) == 0
    });
    assert_eq!(session.ok("echo next"), "next\n");
    outcome.status
}

fn full_temporary_folder(stage: &Stage) {
    for (place, script) in [
        ("$TMPDIR", "head -c 4G /dev/zero > f"),
        ("/var/tmp", "head -c 4G /dev/zero > f"),
        (
            "$HOME/deep/er",
            "for ((i = 0; i < 1000; i++)); do head -c 4M /dev/zero > $i; done",
        ),
        (
            "/tmp",
            "exec 3> f; rm f; for i in {1..64}; do head -c 4M /dev/zero; done >&3",
        ),
        ("/tmp", "i=0; while :; do : > $((i++)); done"),
    ] {
        let few = |setup: &mut Setup| {
            setup.sandbox.policy.limits.tmp_mb = 8;
            // A fast machine writes much before anybody looks; the end must come from the look, not from this.
            setup.sandbox.policy.limits.file_mb = 4096;
        };
        let session = stage.session_with(few);
        let outcome = session.run(&format!("mkdir -p {place}; cd {place}; {script}"));
        if script.contains("rm f") {
            // Nobody can see what has no name; it is bounded by the limit of one file.
            assert_ne!(outcome.status, Status::Running);
            continue;
        }
        let expected = Status::Stopped(Excess::Temporary { limit_mb: 8 });
        assert_eq!(outcome.status, expected, "{place}: {script}");
    }
}

fn large_files(stage: &Stage) {
    let session = stage.session_with(|setup| {
        setup.sandbox.policy.limits.file_mb = 4;
        setup.sandbox.policy.limits.shared_memory_mb = 4;
    });
    session.all_refused(&[
        "head -c 64M /dev/zero > f || exit 1",
        "head -c 64M /dev/zero > /workspace/g || exit 1",
        "truncate -s 1T h || exit 1",
        "fallocate -l 64M i || exit 1",
        "dd if=/dev/zero of=j bs=1M count=1 seek=100 2>/dev/null || exit 1",
        "head -c 64M /dev/zero > /tmp/f || exit 1",
        "for i in 1 2 3; do head -c 3M /dev/zero > /dev/shm/$i || exit 1; done",
        "ulimit -f unlimited",
        "ulimit -n 1000000",
        "ulimit -c unlimited",
    ]);
    for entry in fs::read_dir(&stage.workspace).unwrap().flatten() {
        assert!(entry.metadata().unwrap().len() <= 4 << 20, "{entry:?}");
    }
    session.ok("head -c 3M /dev/zero > small; head -c 3M /dev/zero > /dev/shm/small");
}

fn full_disk(stage: &Stage) {
    let most = u64::MAX / 1024 / 1024;
    let status = {
        let session = stage.session_with(|setup| setup.sandbox.policy.limits.free_mb = most);
        session
            .run("while :; do head -c 64k /dev/zero > f; done")
            .status
    };
    assert_eq!(
        status,
        Status::Stopped(Excess::DiskSpace { limit_mb: most })
    );
    // The text is what the note of a call says.
    let Status::Stopped(excess) = status else {
        unreachable!()
    };
    assert!(excess.to_string().contains("free_mb"), "{excess}");
}

fn fork_bomb(stage: &Stage) {
    let session = stage.session_with(|setup| setup.sandbox.policy.limits.pids = 32);
    for bomb in [
        ":(){ :|:& };:",
        "f() { (setsid sleep 600 &) ; f; }; f",
        "python3 -c 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass'",
    ] {
        stage.wait(async {
            // What other tests run beside it is not to suffer more than it must.
            let script = "echo up; exec nice -n 19 bash -c \"$0\" 2>/dev/null";
            let arguments = ["-c", script, bomb].map(str::to_owned);
            let command = session.try_start(CommandSpec {
                command: "bash".into(),
                args: Some(arguments.into()),
                ..CommandSpec::default()
            });
            let command = command.await.unwrap_or_else(|error| panic!("{error}"));
            read_until(&command, "up\n").await;
            for _ in 0..5 {
                // The host goes on starting processes.
                assert!(Command::new("true").status().unwrap().success());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let started = Instant::now();
            command.kill();
            finish(&command).await;
            assert!(started.elapsed() < Duration::from_secs(5), "{bomb}");
        });
        eventually("the bomb is gone", || children() <= 1);
        assert_eq!(session.ok("echo on"), "on\n");
    }
}

/// The processes that come from this one, all levels together: what leads a command is its child, and what is in its
/// sandbox goes with that. The one that holds the Session's network stays.
fn children() -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let parents: Vec<(u32, u32)> = all
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?;
            Some((pid, parent.parse().ok()?))
        })
        .collect();
    let mut ours = vec![std::process::id()];
    let mut at = 0;
    while at < ours.len() {
        let parent = ours[at];
        ours.extend(
            parents
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(pid, _)| *pid),
        );
        at += 1;
    }
    ours.len() - 1
}

fn too_much_memory(stage: &Stage) {
    let little = |setup: &mut Setup| setup.sandbox.policy.limits.memory_mb = 64;
    let expected = Status::Stopped(Excess::Memory { limit_mb: 64 });
    for script in [
        "python3 -c 'x = bytearray(8 << 30)'",
        "head -c 500M /dev/zero | tail",
        "for i in 1 2 3 4; do python3 -c 'import time; x = b\"x\" * (30 << 20); time.sleep(600)' & done; wait",
        "for i in 1 2 3 4; do setsid python3 -c 'import time; x = b\"x\" * (30 << 20); time.sleep(600)' & done; disown -a",
    ] {
        assert_eq!(stopped(stage, little, script), expected, "{script}");
    }
    // Where memory runs out all the same, a command goes before the host.
    let own: i32 = fs::read_to_string("/proc/self/oom_score_adj")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let session = stage.session();
    let score: i32 = session
        .ok("cat /proc/self/oom_score_adj")
        .trim()
        .parse()
        .unwrap();
    assert!(score >= (own + 500).min(1000), "{score}");
    session.all_refused(&[
        "echo -1000 > /proc/self/oom_score_adj",
        "echo 0 > /proc/self/oom_score_adj",
    ]);
}
