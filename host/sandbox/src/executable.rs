//! What is in a folder of hooks, for a person who has to decide whether to trust it.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType};

use crate::newcomers::Executed;
use crate::survey::open_folder;

/// Git has about thirty kinds of hooks.
const MOST: usize = 100;

/// A name that is shown is cut after this many characters.
const LONGEST: usize = 60;

/// The hooks in a folder, without the samples that git puts there itself and never runs.
pub(crate) fn hooks(workspace: &OwnedFd, folder: &Path) -> Vec<Executed> {
    let mut hooks = Vec::new();
    let Ok(Some(opened)) = open_folder(workspace, folder) else {
        return hooks;
    };
    let Ok(mut listing) = Dir::read_from(&opened) else {
        return hooks;
    };
    while let Some(Ok(entry)) = listing.read()
        && hooks.len() < MOST
    {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let Ok(status) = rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let kind = FileType::from_raw_mode(status.st_mode);
        let is_hook = matches!(kind, FileType::RegularFile | FileType::Symlink);
        if !is_hook || name.as_bytes().ends_with(b".sample") {
            continue;
        }
        let name: String = name.to_string_lossy().chars().take(LONGEST).collect();
        hooks.push(Executed {
            name: format!("hook {}", name.escape_debug()),
            mark: format!(
                "{} {} {}",
                status.st_ino, status.st_ctime, status.st_ctime_nsec
            ),
        });
    }
    hooks
}
