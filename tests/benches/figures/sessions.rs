//! What many commands and loud ones cost: how soon one answers while another floods, what a flood costs the host in memory, and 64
//! at once.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use floe_command::{CommandHandle, CommandOptions, CommandSessions, CommandSpec, Status};
use floe_sandbox::{Sandbox, SandboxOptions};
use floe_workspace::Workspace;
use tempfile::TempDir;

use crate::figures::{Effort, Figures, Goal};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// How many commands a Session may have.
const MOST: usize = 64;

/// What a command prints to see what that costs, in MiB.
const FLOOD: u64 = 2048;

pub(crate) fn measure(figures: &mut Figures<'_>) {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let house = tokio.block_on(async { House::new() });
    // First, so that no memory of what was measured before is used anew.
    flood(figures, &tokio, &house);
    polls(figures, &tokio, &house);
    all_at_once(figures, &tokio, &house);
    tokio.block_on(house.commands.dispose());
}

/// A Session's commands.
struct House {
    commands: Arc<CommandSessions>,
    _folder: TempDir,
}

impl House {
    fn new() -> House {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let make = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir(&path).expect("a folder");
            path.canonicalize().expect("its path")
        };
        let path = make("workspace");
        let workspace = Workspace::open(&path).expect("a Workspace");
        let opened = workspace.fd().try_clone_to_owned().expect("a descriptor");
        let mut options =
            SandboxOptions::new(opened, path, make("home"), make("tmp"), make("outputs"));
        options.helper = env!("CARGO_BIN_EXE_sandbox-helper").into();
        let sandbox = Sandbox::new(options).expect("a sandbox");
        let mut options = CommandOptions::new(workspace);
        options.environment.person_home = None;
        House {
            commands: CommandSessions::new(Arc::new(sandbox), options),
            _folder: folder,
        }
    }

    async fn start(&self, script: &str) -> CommandHandle {
        let started = self.commands.spawn(CommandSpec::shell(script)).await;
        started.expect("it runs")
    }
}

/// A line to the command, and its answer.
async fn ask(command: &CommandHandle) {
    command.write_stdin(b"hi\n").await.expect("it reads");
    let answer = command.read_output(1024, LONG).await.expect("it runs");
    assert_eq!(answer.text(), "hi\n");
}

fn polls(figures: &mut Figures<'_>, tokio: &tokio::runtime::Runtime, house: &House) {
    let goal = Goal::NinetiethPercentile(Duration::from_millis(5));
    let [echo, flood] = tokio.block_on(async {
        let echo = house.start("while read x; do echo $x; done").await;
        [echo, house.start("yes").await]
    });
    let what = "a poll of a command that floods";
    figures.measure(what, goal, Effort::LONG, |count| {
        tokio.block_on(async {
            let mut samples = Vec::new();
            for _ in 0..count {
                let start = Instant::now();
                let batch = flood.read_output(64 * 1024, LONG).await.expect("it runs");
                samples.push(start.elapsed());
                assert!(!batch.chunks.is_empty());
            }
            samples
        })
    });
    let what = "a line to a command and back, while another floods";
    figures.measure(what, goal, Effort::LONG, |count| {
        tokio.block_on(async {
            let mut samples = Vec::new();
            for _ in 0..count {
                let start = Instant::now();
                ask(&echo).await;
                samples.push(start.elapsed());
            }
            samples
        })
    });
}

/// Memory of this process while a command prints more than anybody reads.
fn flood(figures: &mut Figures<'_>, tokio: &tokio::runtime::Runtime, house: &House) {
    let run = async |script: &str| {
        let command = house.start(script).await;
        assert_eq!(command.ended().await, Status::Exited(0));
        let start = command.read_output(1024, LONG).await.expect("it has ended");
        assert!(start.text().starts_with("what nobody reads\n"));
    };
    tokio.block_on(run("echo what nobody reads"));
    let before = of_status("self", "VmRSS:");
    // From here on the most that it ever was is counted anew.
    let counted_anew = fs::write("/proc/self/clear_refs", "5").is_ok();
    let script = format!("yes 'what nobody reads' | head -c {FLOOD}M");
    tokio.block_on(run(&script));
    let most = of_status("self", if counted_anew { "VmHWM:" } else { "VmRSS:" });
    let what = "memory of the host, grown while a command prints 2 GiB";
    figures.add_memory(what, Some(32 * 1024), most.saturating_sub(before));
}

/// As many commands as a Session may have: all started at once, all answer.
fn all_at_once(figures: &mut Figures<'_>, tokio: &tokio::runtime::Runtime, house: &House) {
    let effort = Effort {
        warm_ups: 2,
        measure: Duration::from_secs(10),
        batches: 10,
    };
    let start_all = async || {
        let script = "while read x; do echo $x; done";
        let starting = (0..MOST).map(|_| house.start(script));
        let all = futures_util::future::join_all(starting).await;
        futures_util::future::join_all(all.iter().map(ask)).await;
        all
    };
    let what = "64 commands started at once, until all have answered";
    figures.measure(what, Goal::None, effort, |count| {
        tokio.block_on(async {
            let mut samples = Vec::new();
            for _ in 0..count {
                let start = Instant::now();
                let all = start_all().await;
                samples.push(start.elapsed());
                drop(all);
            }
            samples
        })
    });
    let before = of_status("self", "VmRSS:");
    let all = tokio.block_on(start_all());
    let grown = of_status("self", "VmRSS:").saturating_sub(before);
    figures.add_memory("the same, memory of the host, grown", None, grown);
    let theirs = descendants(std::process::id()).into_iter().map(share);
    let what = "the same, memory of all their processes";
    figures.add_memory(what, None, theirs.sum());
    drop(all);
}

/// A field of a process's status, in KiB.
fn of_status(process: &str, field: &str) -> u64 {
    field_of(&Path::new("/proc").join(process).join("status"), field)
}

/// The memory of a process, in KiB, with its share of what it shares.
fn share(process: u32) -> u64 {
    field_of(Path::new(&format!("/proc/{process}/smaps_rollup")), "Pss:")
}

fn field_of(file: &Path, field: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let value = line.and_then(|rest| rest.split_ascii_whitespace().next());
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

fn descendants(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter();
    let children = tasks.flatten().flatten().flat_map(|task| {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let numbers = children.split_ascii_whitespace();
        numbers
            .filter_map(|id| id.parse().ok())
            .collect::<Vec<u32>>()
    });
    children
        .flat_map(|child| [vec![child], descendants(child)].concat())
        .collect()
}
