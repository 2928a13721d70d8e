//! Files' contents on their way in and out: read whole, written whole to a name of their own, told apart by their digest.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, fstat, openat, unlinkat};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::MAX_EDITED;
use super::target::Target;
use crate::WorkspaceError;

/// One version of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Version {
    /// Digest of the contents, in hexadecimal.
    pub(super) sha256: String,
    /// The permission bits; none where the process's own mask decides.
    pub(super) mode: Option<u32>,
}

/// The digest of some contents, in hexadecimal.
pub(super) fn digest(contents: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(contents) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// What the file of this name beside `target` holds; nothing where there is none.
pub(super) fn read_beside(target: &Target, name: &str) -> io::Result<Option<(Vec<u8>, u32)>> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(&target.folder, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let stat = fstat(&file)?;
    // Anything else holds no version of a file; a FIFO reads as an empty one.
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut contents = Vec::new();
    file.take(MAX_EDITED + 1).read_to_end(&mut contents)?;
    Ok(Some((contents, stat.st_mode & 0o777)))
}

/// The contents and permission bits of a target, which is a regular file or not there.
pub(super) fn read(target: &Target) -> Result<Option<(Vec<u8>, u32)>, WorkspaceError> {
    let Some(stat) = target.file()? else {
        return Ok(None);
    };
    let path = || target.path.to_string_lossy().into_owned();
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if size > MAX_EDITED {
        return Err(WorkspaceError::TooLarge {
            path: path(),
            size,
            limit: MAX_EDITED,
        });
    }
    read_beside(target, &target.name).map_err(|error| {
        let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
        WorkspaceError::from_errno(errno, &path(), &path())
    })
}

/// Writes a new file of this name beside `target`, durably.
pub(super) fn write_beside(
    target: &Target,
    name: &str,
    contents: &[u8],
    mode: Option<u32>,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&target.folder, name, flags, Mode::from_raw_mode(0o666))?;
    if let Some(mode) = mode {
        fchmod(file.as_fd(), Mode::from_raw_mode(mode & 0o777))?;
    }
    let mut file = File::from(file);
    file.write_all(contents)?;
    file.sync_all()
}

/// Removes what has this name beside `target`; that there is nothing is no fault.
pub(super) fn remove_beside(target: &Target, name: &str) -> io::Result<()> {
    match unlinkat(&target.folder, name, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
