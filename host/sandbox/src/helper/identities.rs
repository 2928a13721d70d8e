//! Looks whether the view shows what a person granted, and not what somebody has put in its place since.
//!
//! The host bound every grant to a file or folder by its identity. Between then and the mounts a path may have come to lead
//! elsewhere; now that the mounts stand, nothing outside can change what they show.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::error::SandboxError;
use crate::plan::Identity;

/// Refuses to go on where something else is there. `root` is the root of the view.
pub(super) fn verify(root: &OwnedFd, identities: &[Identity]) -> Result<(), SandboxError> {
    for identity in identities {
        let path = identity.target.as_path();
        let found = rustix::io::retry_on_intr(|| {
            rustix::fs::openat2(
                root,
                path,
                OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
                ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS,
            )
        });
        let is_it = found.and_then(rustix::fs::fstat).is_ok_and(|status| {
            (status.st_dev, status.st_ino) == (identity.device, identity.inode)
        });
        if !is_it {
            return Err(SandboxError::Widening {
                path: path.display().to_string(),
            });
        }
    }
    Ok(())
}
