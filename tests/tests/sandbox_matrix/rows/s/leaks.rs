//! What many commands leave behind.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use floe_command::{CommandSpec, Status};

use crate::row::Row;
use crate::stage::{Session, Stage, eventually};

pub(crate) const ROWS: &[Row] = &[Row::new(
    "S31",
    "two hundred commands of all kinds leave no process, descriptor, thread, mount, file or memory",
    nothing_is_left,
)];

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
