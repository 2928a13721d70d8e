//! The journal: what a transaction is about to do, durable before the first name is changed, and what the files were before, for `undo`.
//!
//! One folder per transaction. The name of its record says how far it came: `staged.json` (temporary files may lie about),
//! `plan.json` (names may be changed), `done.json`, `undone.json`. The old contents lie beside it, one file per step.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::contents::Version;
use super::failpoint;
use crate::Workspace;

/// So many finished transactions of a Session can be undone; older ones are forgotten.
const KEPT: usize = 50;
/// And so many bytes of what their files were before; the last one can be undone whatever it holds.
const KEPT_BYTES: u64 = 1024 * 1024 * 1024;
/// Longer records are none of ours.
const LONGEST_RECORD: u64 = 64 * 1024 * 1024;

/// One file from one version to another; a version that is none is no file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Step {
    /// Relative to the Workspace, without links.
    pub(super) path: PathBuf,
    pub(super) before: Option<Version>,
    pub(super) after: Option<Version>,
    /// The name beside it that holds the new contents first and the old ones then.
    pub(super) temporary: String,
}

impl Step {
    /// The file as texts name it.
    pub(super) fn shown(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

/// All steps of a transaction, in the order in which they are made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// Device and inode of the Workspace's root.
    pub(super) workspace: (u64, u64),
    pub(super) made_ms: u64,
    /// Folders that were made for it, outermost first.
    pub(super) folders: Vec<PathBuf>,
    pub(super) steps: Vec<Step>,
}

/// How far a transaction came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Staged,
    Planned,
    Done,
    Undone,
}

impl Stage {
    const ALL: [Stage; 4] = [Stage::Staged, Stage::Planned, Stage::Done, Stage::Undone];

    fn file(self) -> &'static str {
        match self {
            Stage::Staged => "staged.json",
            Stage::Planned => "plan.json",
            Stage::Done => "done.json",
            Stage::Undone => "undone.json",
        }
    }
}

/// One transaction's folder in a journal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    folder: PathBuf,
}

impl Entry {
    /// Makes the folder of a new transaction, whose name sorts behind all before it.
    pub(super) fn create(journal: &Path) -> io::Result<Entry> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(journal)?;
        let folder = journal.join(format!("{:016x}-{}", now_ms(), unique()?));
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Entry { folder })
    }

    /// The transactions of a journal, oldest first. A journal that is not there has none.
    pub(super) fn all(journal: &Path) -> Vec<Entry> {
        let folders = fs::read_dir(journal).into_iter().flatten().flatten();
        let mut entries: Vec<Entry> = folders
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| Entry {
                folder: entry.path(),
            })
            .collect();
        entries.sort();
        entries
    }

    /// By its name, transactions of different journals can be put in order.
    pub(super) fn name(&self) -> &std::ffi::OsStr {
        self.folder.file_name().unwrap_or_default()
    }

    /// How far it came, and its plan; none where nothing of it can be read.
    pub(super) fn read(&self) -> Option<(Stage, Plan)> {
        Stage::ALL.into_iter().rev().find_map(|stage| {
            let path = self.folder.join(stage.file());
            let is_ours = fs::metadata(&path).ok()?.len() <= LONGEST_RECORD;
            let plan = is_ours.then(|| fs::read(&path).ok())??;
            Some((stage, serde_json::from_slice(&plan).ok()?))
        })
    }

    /// Writes the record of a stage durably; it takes the place of the one before.
    pub(super) fn write(&self, stage: Stage, plan: &Plan) -> io::Result<()> {
        failpoint::reach("write the plan")?;
        let bytes = serde_json::to_vec(plan)?;
        self.write_file("record.tmp", &bytes)?;
        fs::rename(
            self.folder.join("record.tmp"),
            self.folder.join(stage.file()),
        )?;
        self.sync()
    }

    /// Says that a transaction has come further.
    pub(super) fn advance(&self, from: Stage, to: Stage) -> io::Result<()> {
        failpoint::reach("advance")?;
        fs::rename(self.folder.join(from.file()), self.folder.join(to.file()))?;
        self.sync()
    }

    /// Keeps what the file of a step was before.
    pub(super) fn keep(&self, step: usize, contents: &[u8]) -> io::Result<()> {
        failpoint::reach("keep the old contents")?;
        self.write_file(&format!("{step}.before"), contents)
    }

    /// What the file of a step was before.
    pub(super) fn kept(&self, step: usize) -> io::Result<Vec<u8>> {
        fs::read(self.folder.join(format!("{step}.before")))
    }

    /// Bytes of all its files.
    fn size(&self) -> u64 {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files
            .filter_map(|file| Some(file.metadata().ok()?.len()))
            .sum()
    }

    /// Forgets it.
    pub(super) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    fn write_file(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.folder.join(name))?;
        file.write_all(contents)?;
        file.sync_all()
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }
}

/// Forgets the oldest finished transactions of a journal.
pub(super) fn prune(journal: &Path) {
    let mut finished: Vec<Entry> = Entry::all(journal);
    finished.retain(|entry| matches!(entry.read(), Some((Stage::Done | Stage::Undone, _))));
    prune_to(&finished, KEPT, KEPT_BYTES);
}

/// Keeps the last, at most so many with so many bytes together.
fn prune_to(finished: &[Entry], count: usize, bytes: u64) {
    let mut held = 0;
    for (number, entry) in finished.iter().rev().enumerate() {
        held += entry.size();
        if number >= count || (number > 0 && held > bytes) {
            entry.remove();
        }
    }
}

/// Device and inode of the Workspace's root.
pub(super) fn identity(workspace: &Workspace) -> rustix::io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(workspace.fd())?;
    #[allow(clippy::useless_conversion)] // The types of the fields differ between processors.
    Ok((stat.st_dev.into(), stat.st_ino.into()))
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

/// Eight hexadecimal digits that nobody else has.
pub(super) fn unique() -> io::Result<String> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(format!("{:08x}", u32::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_transactions_are_kept_as_far_as_there_is_room_and_the_very_last_always() {
        let folder = tempfile::tempdir().unwrap();
        let entries: Vec<Entry> = (0..6)
            .map(|number| {
                let entry = Entry {
                    folder: folder.path().join(number.to_string()),
                };
                fs::create_dir(&entry.folder).unwrap();
                entry.keep(0, &[0; 100]).unwrap();
                entry
            })
            .collect();
        let left = |count, bytes| {
            prune_to(&Entry::all(folder.path()), count, bytes);
            Entry::all(folder.path())
        };
        assert_eq!(left(9, 1000), entries);
        assert_eq!(left(5, 1000), entries[1..]);
        assert_eq!(left(9, 399), entries[3..]);
        assert_eq!(left(9, 1), entries[5..]);
    }
}
