//! A host that is killed at any moment leaves no process behind. Each host here is a process of its own that runs several
//! Sessions full of commands that do what they can to survive; what comes from it is known by a mark.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use floe_command::CommandSpec;
use support::{LONG, Session};

/// How many hosts are killed, and how many of them live at once.
const ROUNDS: u64 = 200;
const LANES: u64 = 2;

/// Every so many is killed while it starts, the others when all their commands run.
const EARLY_EACH: u64 = 4;

/// No host is killed later than this, in microseconds after it started or after its commands did.
const LATEST: u64 = 80_000;

/// What carries the mark: of commands in their environment, of helpers it is their program's name.
const MARK: &str = "FLOE_TEST_MARK";

/// How many Sessions a host has.
const SESSIONS: usize = 2;

/// What the commands of a Session do, each for ever.
const COMMANDS: [&str; 6] = [
    // A daemon: out of its group, its session and its parents' hands, without streams.
    "(setsid setsid bash -c 'cd /; exec sleep 600' <&- >&- 2>&- &) ; exec sleep 600",
    // Twenty levels deep.
    "deep() { if [ $1 -gt 0 ]; then (deep $(($1 - 1)); true); else sleep 600; fi; }; deep 20",
    // Hops from process to process.
    "hop() { sleep 0.01; (hop &); }; hop & exec sleep 600",
    "trap '' TERM INT HUP; while :; do sleep 600; done",
    "while :; do echo y; sleep 0.01; done",
    "read x",
];

/// A host to be killed: says when all its commands run, and goes on starting short ones.
#[test]
#[ignore = "a part of the test below"]
fn a_host_that_will_be_killed() {
    let Ok(mark) = std::env::var(MARK) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let sessions: [Session; SESSIONS] = std::array::from_fn(|_| Session::new());
        let command = async |session: &Session, script: &str| {
            let spec = CommandSpec {
                environment: vec![(MARK.to_owned(), mark.clone())],
                ..CommandSpec::shell(script)
            };
            session.commands.spawn(spec).await.unwrap()
        };
        let mut handles = Vec::new();
        for session in &sessions {
            for script in COMMANDS {
                handles.push(command(session, script).await);
            }
        }
        println!("ready");
        std::io::stdout().flush().unwrap();
        let until = Instant::now() + LONG;
        while Instant::now() < until {
            for session in &sessions {
                let short = command(session, "sleep 0.01 & wait").await;
                support::read_to_end(&short).await;
            }
        }
    });
}

/// A test's own random numbers: their seed is told where the test fails.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[test]
fn hosts_killed_at_two_hundred_random_moments_leave_no_process() {
    let seed = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_nanos() as u64
        | 1;
    let lanes: Vec<_> = (0..LANES)
        .map(|lane| {
            std::thread::spawn(move || {
                let mut random = Random(seed.wrapping_add(lane * 2));
                (lane..ROUNDS)
                    .step_by(LANES as usize)
                    .map(|round| kill_one(round, &mut random))
                    .max()
            })
        })
        .collect();
    let slowest = lanes.into_iter().map(|lane| lane.join().unwrap()).max();
    println!("seed {seed}, slowest end {slowest:?}");
}

/// Starts a host and kills it; how long it took until all that came from it was gone.
fn kill_one(round: u64, random: &mut Random) -> Duration {
    let folder = tempfile::Builder::new()
        .prefix("floe-chaos-")
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .unwrap();
    // The kernel keeps fifteen characters of a program's name.
    let mark = format!("fl{}-{round}", std::process::id());
    let helper = folder.path().join(&mark);
    // Not a copy: a program cannot be executed while a process that was forked meanwhile holds it open for writing.
    fs::hard_link(support::HELPER, &helper).unwrap();
    let mut host = host(folder.path(), &helper, &mark);
    if !round.is_multiple_of(EARLY_EACH) {
        let lines = BufReader::new(host.stdout.take().unwrap()).lines();
        let ready = lines.map_while(Result::ok).any(|line| line == "ready");
        assert!(ready, "the host has ended: {:?}", host.wait());
        assert!(!marked(&mark).is_empty());
    }
    let moment = Duration::from_micros(random.below(LATEST));
    std::thread::sleep(moment);
    host.kill().unwrap();
    let killed = Instant::now();
    let status = host.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "the host has ended by itself");
    loop {
        let left = marked(&mark);
        if left.is_empty() {
            break;
        }
        assert!(
            killed.elapsed() < LONG,
            "killed after {moment:?} in round {round}, left: {left:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let took = killed.elapsed();
    folder.close().unwrap();
    took
}

fn host(folder: &Path, helper: &Path, mark: &str) -> Child {
    Command::new("/proc/self/exe")
        .args(["--exact", "a_host_that_will_be_killed"])
        .args(["--include-ignored", "--nocapture"])
        .env("TMPDIR", folder)
        .env(support::HELPER_VARIABLE, helper)
        .env(MARK, mark)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The processes that bear `mark`, with their names. What has ended and waits for the machine's init to notice is none.
fn marked(mark: &str) -> Vec<(u32, String)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
            if rest.trim_start().starts_with(['Z', 'X']) {
                return None;
            }
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let entry = format!("{MARK}={mark}");
            let is_marked = name == mark
                || environment
                    .split(|&byte| byte == 0)
                    .any(|e| e == entry.as_bytes());
            is_marked.then(|| (pid, name.to_owned()))
        })
        .collect()
}
