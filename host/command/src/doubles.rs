//! What stands in for the sandbox in this crate's own tests: processes of the test, and puppets without any process.

mod plain;
mod puppet;

use std::sync::{Arc, Mutex};

use floe_workspace::Workspace;
use tempfile::TempDir;

use crate::{
    CommandHandle, CommandOptions, CommandSessions, EndedCommand, EnvironmentOptions, Launch,
    Observe, OutputBatch,
};

pub(crate) use plain::Plain;
pub(crate) use puppet::{Puppet, Puppets};

/// A wait that no test should ever sit out.
pub(crate) const LONG: std::time::Duration = std::time::Duration::from_secs(60);

/// A Workspace, and commands in it that are the test's own processes.
pub(crate) struct House {
    pub(crate) folder: TempDir,
    pub(crate) sessions: Arc<CommandSessions>,
}

impl House {
    pub(crate) fn new() -> House {
        House::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut CommandOptions)) -> House {
        let folder = tempfile::tempdir().unwrap();
        let launcher = Arc::new(Plain {
            folder: folder.path().to_owned(),
        });
        let sessions = CommandSessions::new(launcher, options(&folder, change));
        House { folder, sessions }
    }
}

/// A registry over any launcher, without a login shell.
pub(crate) fn registry(
    launcher: Arc<dyn Launch>,
    change: impl FnOnce(&mut CommandOptions),
) -> (TempDir, Arc<CommandSessions>) {
    let folder = tempfile::tempdir().unwrap();
    let sessions = CommandSessions::new(launcher, options(&folder, change));
    (folder, sessions)
}

fn options(folder: &TempDir, change: impl FnOnce(&mut CommandOptions)) -> CommandOptions {
    let mut options = CommandOptions::new(Workspace::open(folder.path()).unwrap());
    options.environment = EnvironmentOptions {
        person_home: None,
        ..EnvironmentOptions::default()
    };
    change(&mut options);
    options
}

/// Reads until the command has ended; everything it printed, and how much was dropped.
pub(crate) async fn read_to_end(session: &CommandHandle) -> (String, u64) {
    let (mut bytes, mut dropped) = (Vec::new(), 0);
    loop {
        let batch = session.read_output(64 * 1024, LONG).await.unwrap();
        dropped += batch.dropped;
        bytes.extend(batch.chunks.into_iter().flat_map(|chunk| chunk.data));
        if batch.ended {
            return (String::from_utf8(bytes).unwrap(), dropped);
        }
    }
}

/// Reads until `wanted` was printed.
pub(crate) async fn read_until(session: &CommandHandle, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        let batch: OutputBatch = session.read_output(64 * 1024, LONG).await.unwrap();
        text += &batch.text();
        assert!(!batch.ended || text.contains(wanted), "ended with {text:?}");
    }
    text
}

/// Keeps what it is told.
#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) warnings: Mutex<Vec<String>>,
    pub(crate) ended: Mutex<Vec<EndedCommand>>,
}

impl Observe for Notes {
    fn warning(&self, _code: &'static str, message: &str) {
        self.warnings.lock().unwrap().push(message.to_owned());
    }

    fn ended(&self, command: EndedCommand) {
        self.ended.lock().unwrap().push(command);
    }
}

/// Whether a process of this id exists and is no zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .starts_with(['Z', 'X'])
    })
}

/// Waits until no such process is there.
pub(crate) async fn gone(pid: u32) {
    for _ in 0..500 {
        if !is_alive(pid) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("process {pid} is still there");
}
