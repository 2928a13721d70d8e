//! Which files this Session has read, and how they were then: an edit of one that changed since is refused.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::Stat;

use crate::{Workspace, WorkspaceError};

/// So many files are remembered; of more, some are forgotten, and then count as never read.
const MOST: usize = 100_000;

/// What a Session has read. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<HashMap<PathBuf, Version>>>);

/// What tells one version of a file from another. Not when it was last changed in any way: who makes a file executable, or gives it a second
/// name, has not changed what the model read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, i64),
}

impl Version {
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)] // The types of the fields differ between processors.
    fn of(stat: &Stat) -> Version {
        Version {
            device: stat.st_dev.into(),
            inode: stat.st_ino.into(),
            size: stat.st_size.into(),
            modified: (stat.st_mtime.into(), stat.st_mtime_nsec as i64),
        }
    }
}

impl Seen {
    pub(crate) fn note(&self, path: &Path, stat: &Stat) {
        let mut seen = self.lock();
        if seen.len() >= MOST && !seen.contains_key(path) {
            let forgotten = seen.keys().next().cloned();
            forgotten.map(|path| seen.remove(&path));
        }
        seen.insert(path.to_owned(), Version::of(stat));
    }

    pub(super) fn forget(&self, path: &Path) {
        self.lock().remove(path);
    }

    /// That the file, where it was read, is the same by now; `None` as `now` where it is gone.
    pub(super) fn check(&self, path: &Path, now: Option<&Stat>) -> Result<(), WorkspaceError> {
        let now = now.map(Version::of);
        let size = |version: Version| u64::try_from(version.size).unwrap_or(0);
        match self.lock().get(path) {
            Some(then) if now != Some(*then) => Err(WorkspaceError::Stale {
                path: path.to_string_lossy().into_owned(),
                then: Some(size(*then)),
                now: now.map(size),
            }),
            _ => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Version>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workspace {
    /// The same Workspace, whose reads of whole files and ranges are remembered.
    #[must_use]
    pub fn with_seen(mut self, seen: Seen) -> Workspace {
        self.seen = Some(seen);
        self
    }
}
