//! Commands and time: threads that end, windows, and clocks that jump.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use floe_sandbox::Streams;
use serde_json::json;

use super::bare;
use super::doors::{self, Calls, process_id};
use crate::row::Row;
use crate::stage::{Stage, eventually};

/// What no row may wait longer for that should come at once.
const SOON: Duration = Duration::from_secs(20);

pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "S6",
        "a command outlives the thread that started it",
        outlives_its_thread,
    ),
    Row::new(
        "S15",
        "a command that ends at once does not wait out its window",
        window_is_not_waited_out,
    ),
    Row::new(
        "S48",
        "windows and waits keep their length while the wall clock jumps by days",
        wall_clock_jumps,
    ),
];

fn outlives_its_thread(stage: &Stage) {
    let session = stage.session();
    let command = bare(&session, "while read x; do echo $x; done; exit 5");
    let started = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                (
                    session.sandbox.spawn(&command).unwrap(),
                    rustix::thread::gettid(),
                )
            })
            .join()
            .unwrap()
    });
    let (child, thread) = started;
    let task = format!("/proc/self/task/{}", thread.as_raw_nonzero());
    eventually("the thread is gone", || !Path::new(&task).exists());
    let Streams::Pipes { stdin, stdout, .. } = child.streams else {
        panic!("no pipes");
    };
    let (mut stdin, mut stdout) = (File::from(stdin), BufReader::new(File::from(stdout)));
    for _ in 0..50 {
        stdin.write_all(b"there?\n").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "there?\n");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(child.control.try_event(), None);
    drop(stdin);
    assert_eq!(child.control.wait(), floe_sandbox::Event::Exited(5));
}

fn window_is_not_waited_out(stage: &Stage) {
    let session = stage.session();
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        let started = Instant::now();
        assert_eq!(
            door.exec_for("sleep 0.005; echo ok", 60_000).await.output,
            "ok\n"
        );
        let process = process_id(&door.exec_for("read x; sleep 0.005", 250).await);
        let more = json!({"chars": "\n", "yield_time_ms": 120_000});
        assert_eq!(door.input(&process, more).await.output, "[no output]");
        assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    });
}

/// Every second look at the wall clock is a day later, every other a day earlier.
const JUMPING: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>
static long jump(void) {
    static int looks;
    return __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED) % 2 ? 86400 : -86400;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += jump();
    return result;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *out) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (out) *out = exact.tv_sec;
    return exact.tv_sec;
}
"#;

fn wall_clock_jumps(stage: &Stage) {
    const LIBRARY: &str = "LD_PRELOAD";
    if std::env::var_os(LIBRARY).is_some() {
        return while_it_jumps(stage);
    }
    let place = stage.place("clock");
    let (source, library) = (place.join("jumping.c"), place.join("jumping.so"));
    fs::write(&source, JUMPING).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .output()
        .expect("a C compiler, as for the build itself");
    assert!(compiled.status.success(), "{compiled:?}");
    // This row once more, in a host of such a world.
    let output = Command::new(std::env::current_exe().unwrap())
        .args(std::env::args_os().skip(1))
        .env(LIBRARY, &library)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn while_it_jumps(stage: &Stage) {
    let (one, other) = (SystemTime::now(), SystemTime::now());
    let apart = one
        .duration_since(other)
        .or_else(|_| other.duration_since(one))
        .unwrap();
    assert!(apart > Duration::from_secs(3600), "the clock does not jump");
    let session = stage.session();
    stage.wait(async {
        let door = doors::open(stage, &session).await;
        let started = Instant::now();
        let output = door.exec_for("echo up; sleep 100", 700).await;
        let took = started.elapsed();
        assert!(
            took >= Duration::from_millis(600) && took < SOON,
            "a window: {took:?}"
        );
        let process = process_id(&output);
        let started = Instant::now();
        door.input(&process, json!({"yield_time_ms": 700})).await;
        let took = started.elapsed();
        assert!(
            took >= Duration::from_millis(600) && took < SOON,
            "a poll: {took:?}"
        );
        let started = Instant::now();
        let command = session.start("sleep 100").await;
        let batch = command
            .read_output(1000, Duration::from_millis(500))
            .await
            .unwrap();
        let took = started.elapsed();
        assert!(
            !batch.ended && took >= Duration::from_millis(450) && took < SOON,
            "a read: {took:?}"
        );
        assert_eq!(door.exec("echo done").await.output, "done\n");
        // Nor has a session grown so old by it that it was swept.
        assert!(session.commands.attach(&process).is_ok());
    });
}
