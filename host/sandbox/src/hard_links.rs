//! Files of the Workspace that have further names elsewhere: what a command writes to one, it writes there too, and no
//! wall stands between two names of one file.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::AtFlags;

/// The files that have several names, while their names are found.
#[derive(Debug, Default)]
pub(crate) struct HardLinks(HashMap<(u64, u64), Named>);

#[derive(Debug)]
struct Named {
    /// How many names the file system counts.
    names: u64,
    seen: u64,
    first: PathBuf,
}

impl HardLinks {
    /// Looks at a regular file of an opened folder.
    pub(crate) fn look(&mut self, opened: &OwnedFd, folder: &Path, name: &OsStr) {
        let Ok(status) = rustix::fs::statat(opened, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return;
        };
        #[allow(clippy::useless_conversion, reason = "narrower on other architectures")]
        let names = u64::from(status.st_nlink);
        if names > 1 {
            let file = self.0.entry((status.st_dev, status.st_ino));
            let file = file.or_insert_with(|| Named {
                names,
                seen: 0,
                first: folder.join(name),
            });
            file.seen += 1;
        }
    }

    /// One name each of the files of which not all names were found.
    pub(crate) fn with_unseen_names(self) -> Vec<PathBuf> {
        let files = self.0.into_values();
        let mut unseen: Vec<_> = files
            .filter(|file| file.seen < file.names)
            .map(|file| file.first)
            .collect();
        unseen.sort();
        unseen
    }
}
