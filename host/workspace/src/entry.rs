//! What is known about one file, directory or link.

use rustix::fs::{FileType, OFlags, Stat};

use crate::{Workspace, WorkspaceError};

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, itself and not what it points at.
    Symlink,
    /// A FIFO, a socket, a device, or what cannot even be looked at.
    Other,
}

/// One file, directory or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the Workspace with `/`, `.` for its root; with the mount's prefix where it is in a mount.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Bytes.
    pub size: u64,
    /// Milliseconds since 1970.
    pub modified_ms: i64,
    /// True where the name is not UTF-8: the path shows it with replacement characters, and opening it finds nothing.
    pub lossy: bool,
}

impl Entry {
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// An entry that cannot be looked at, such as a mount whose server is gone: its directory knows its name and perhaps its kind.
    pub(crate) fn unseen(path: String, kind: FileType) -> Entry {
        Entry {
            path,
            kind: Kind::of(kind),
            size: 0,
            modified_ms: 0,
            lossy: false,
        }
    }

    pub(crate) fn new(path: String, stat: &Stat) -> Entry {
        Entry {
            path,
            kind: Kind::of(FileType::from_raw_mode(stat.st_mode)),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified_ms: milliseconds(stat),
            lossy: false,
        }
    }
}

impl Kind {
    fn of(kind: FileType) -> Kind {
        match kind {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            _ => Kind::Other,
        }
    }
}

#[allow(clippy::useless_conversion)] // The types of the fields differ between processors.
fn milliseconds(stat: &Stat) -> i64 {
    let seconds: i64 = stat.st_mtime.into();
    seconds
        .saturating_mul(1000)
        .saturating_add(i64::try_from(stat.st_mtime_nsec).unwrap_or(0) / 1_000_000)
}

impl Workspace {
    /// What is at `path`. Links are followed as long as they stay inside, so the answer is never [`Kind::Symlink`].
    pub fn stat(&self, path: &str) -> Result<Entry, WorkspaceError> {
        let place = self.place(path)?;
        let shown = place.shown();
        let stat = place
            .open(OFlags::PATH)
            .and_then(rustix::fs::fstat)
            .map_err(|errno| WorkspaceError::from_errno(errno, path, &shown))?;
        Ok(Entry::new(shown, &stat))
    }
}
