//! Starting commands: what a start depends on, what it costs, what many of them leave, and time.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use floe_command::{CommandSpec, Status};
use floe_sandbox::Streams;
use serde_json::json;

use super::bare;
use super::doors::{self, Calls, process_id};
use crate::row::Row;
use crate::stage::{Session, Stage, eventually, put};

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
        "S31",
        "two hundred commands of all kinds leave no process, descriptor, thread, mount, file or memory",
        nothing_is_left,
    ),
    Row::new(
        "S38",
        "variables of hundreds of kibibytes are not inherited and keep no command from starting",
        huge_variables,
    ),
    Row::new(
        "S45",
        "the profile is read once for a Session and not for every command, and its PATH holds",
        profile_is_read_once,
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

/// What this process holds of what commands could leave.
#[derive(Debug, PartialEq, Eq)]
struct Holdings {
    descriptors: usize,
    threads: usize,
    children: usize,
    mounts: usize,
    files: BTreeSet<String>,
}

impl Holdings {
    fn count(session: &Session<'_>) -> Holdings {
        let own = format!(" {} ", std::process::id());
        let is_ours = |stat: &String| {
            let parent = stat.rsplit(')').next().unwrap_or_default().get(2..);
            parent.is_some_and(|parent| parent.starts_with(&own))
        };
        let stats = fs::read_dir("/proc").unwrap().flatten();
        let stats = stats.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
        let listing = Command::new("find").arg(&session.folder).output().unwrap();
        Holdings {
            children: stats.filter(is_ours).count(),
            descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
            threads: fs::read_dir("/proc/self/task").unwrap().count(),
            mounts: fs::read_to_string("/proc/self/mountinfo")
                .unwrap()
                .lines()
                .count(),
            files: String::from_utf8(listing.stdout)
                .unwrap()
                .lines()
                .map(str::to_owned)
                .collect(),
        }
    }
}

/// What this process has in memory, in KiB.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4
}

fn nothing_is_left(stage: &Stage) {
    let session = stage.session();
    let round = |number: usize| {
        let spec = |script: &str| CommandSpec::shell(script);
        let ended =
            |spec: CommandSpec, status: Status| assert_eq!(session.run_spec(spec).status, status);
        match number % 8 {
            0 => ended(
                spec("sleep 100 & setsid sleep 100 & exit 3"),
                Status::Exited(3),
            ),
            1 => ended(
                spec(&format!("exit 4\n# {}", "x".repeat(200_000))),
                Status::Exited(4),
            ),
            2 => {
                let terminal = CommandSpec {
                    terminal: true,
                    ..spec("tty >/dev/null")
                };
                ended(terminal, Status::Exited(0));
            }
            3 => {
                let nowhere = CommandSpec {
                    working_directory: Some("no/such".into()),
                    ..spec("true")
                };
                stage.wait(session.try_start(nowhere)).unwrap_err();
            }
            4 => {
                let missing = CommandSpec {
                    command: "no-such-program".into(),
                    args: Some(Vec::new()),
                    ..CommandSpec::default()
                };
                stage.wait(session.try_start(missing)).unwrap_err();
            }
            // Given up in the middle.
            5 => drop(stage.wait(session.start("sleep 100 | sleep 100"))),
            6 => stage.wait(async {
                let command = session.start("cat").await;
                command.write_stdin(&[b'x'; 100_000]).await.unwrap();
                command.kill();
                assert_eq!(command.ended().await, Status::Signaled("SIGKILL".into()));
            }),
            _ => ended(spec("seq 10000"), Status::Exited(0)),
        }
    };
    for number in 0..40 {
        round(number);
    }
    let settled = |wanted: Option<&Holdings>| {
        let mut last = Holdings::count(&session);
        eventually("what ended is collected", || {
            let now = Holdings::count(&session);
            let still = now == last && wanted.is_none_or(|wanted| fits(&now, wanted));
            last = now;
            still
        });
        last
    };
    let (before, memory) = (settled(None), resident());
    for number in 0..200 {
        round(number);
    }
    assert!(session.commands.list().is_empty());
    let after = settled(Some(&before));
    assert!(fits(&after, &before), "{after:?}, before {before:?}");
    let grown = resident().saturating_sub(memory);
    assert!(grown < 8 * 1024, "grown by {grown} KiB");
}

/// The threads that block come and go.
fn fits(after: &Holdings, before: &Holdings) -> bool {
    after.descriptors <= before.descriptors
        && after.threads <= before.threads + 2
        && after.children <= before.children
        && after.mounts == before.mounts
        && after.files == before.files
}

fn huge_variables(stage: &Stage) {
    let session = stage.session_with(|setup| {
        for name in ["BIG", "LC_BIG", "LC_BIGGER"] {
            let value = "v".repeat(200 * 1024);
            setup
                .commands
                .environment
                .host
                .push((name.into(), value.into()));
        }
    });
    let outcome = session.run("env | grep -c BIG; env | wc -c");
    let numbers: Vec<usize> = outcome
        .stdout
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!((outcome.status, numbers[0]), (Status::Exited(0), 0));
    assert!(numbers[1] < 10_000, "{} bytes", numbers[1]);
    // One that the call gives is refused in words, and one that fits is there beside a long script.
    let with = |length: usize, script: &str| CommandSpec {
        environment: vec![("GIVEN".into(), "v".repeat(length))],
        ..CommandSpec::shell(script)
    };
    let refused = stage
        .wait(session.try_start(with(200 * 1024, "true")))
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the environment variable GIVEN has 204800 bytes (limit 131072); pass large values in files"
    );
    let script = format!("echo ${{#GIVEN}}\n# {}", "x".repeat(90_000));
    assert_eq!(session.run_spec(with(100 * 1024, &script)).text, "102400\n");
}

fn profile_is_read_once(stage: &Stage) {
    let profile = format!(
        "echo read >> {}/profile-log; sleep 0.2; export PATH=\"$HOME/tools/bin:$PATH\"",
        stage.workspace.display()
    );
    put(&stage.person.join(".profile"), &profile);
    put(&stage.person.join(".bash_profile"), ". ~/.profile\n");
    let person = stage.person.clone();
    let session =
        stage.session_with(|setup| setup.commands.environment.person_home = Some(person.clone()));
    let wanted = format!("{}/tools/bin:", person.display());
    for _ in 0..10 {
        let path = session.ok("echo $PATH");
        assert!(path.starts_with(&wanted), "{path}");
        // Without a slash twice or a place that the host had and the profile has lost.
        assert!(path.contains("/usr/local/bin"), "{path}");
    }
    assert_eq!(session.notes.warnings(), []);
    assert_eq!(stage.read("profile-log"), "read\n");
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
