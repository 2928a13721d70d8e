//! Puts what a person granted into the view of the one command that asked for it. Where a granted folder holds what is
//! protected or hidden in a Workspace, that stays so.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};

use super::{GrantedPath, Widening, placement};
use crate::error::SandboxError;
use crate::launch::site::refuse_hard_links;
use crate::plan::{Access, Bytes, Confined, Entry, Identity};
use crate::policy::Policy;
use crate::{protected, survey, view};

/// Widens the view of one command.
///
/// # Errors
///
/// A path leads to something else than the person saw.
pub(crate) fn apply(
    widening: &Widening,
    policy: &Policy,
    confined: &mut Confined,
) -> Result<(), SandboxError> {
    // Hosts are the proxy's.
    let Widening {
        read,
        write,
        hosts: _,
    } = widening;
    let workspace = confined.workspace.as_path().to_owned();
    for (granted, access) in [(read, Access::Read), (write, Access::Write)]
        .into_iter()
        .flat_map(|(paths, access)| paths.iter().map(move |path| (path, access)))
    {
        if !granted.is_current() {
            return Err(SandboxError::Widening {
                path: granted.path().display().to_string(),
            });
        }
        let walls = inner_walls(policy, granted, access)?;
        placement::widen(&mut confined.view, granted.path(), access, &workspace);
        for (path, wall) in &walls.pinned {
            placement::widen(&mut confined.view, path.path(), *wall, &workspace);
        }
        for path in &walls.hidden {
            confined.view.push(Entry::Mask {
                target: path.as_path().into(),
            });
        }
        if access == Access::Write {
            confined.writable.push(granted.path().into());
        }
        let seen = walls.pinned.iter().map(|(path, _)| path);
        confined
            .identities
            .extend(std::iter::once(granted).chain(seen).map(identity));
    }
    view::hold_in_masks(&mut confined.view, &workspace);
    Ok(())
}

fn identity(path: &GrantedPath) -> Identity {
    let (device, inode) = path.identity();
    Identity {
        target: Bytes::from(path.path()),
        device,
        inode,
    }
}

/// What stays protected or hidden in a granted folder.
#[derive(Debug, Default)]
pub(crate) struct InnerWalls {
    /// Folders that may not be renamed, then what may not be changed; parents before children.
    pinned: Vec<(GrantedPath, Access)>,
    hidden: BTreeSet<PathBuf>,
}

/// Finds it, as in a Workspace.
///
/// # Errors
///
/// The folder is too large to be searched, or what is protected in it is a link.
pub(crate) fn inner_walls(
    policy: &Policy,
    granted: &GrantedPath,
    access: Access,
) -> Result<InnerWalls, SandboxError> {
    let folder = granted.path();
    let Some(opened) = open_folder(folder)? else {
        return Ok(InnerWalls::default());
    };
    let found = survey::survey(&opened, policy).map_err(|error| in_folder(folder, &error))?;
    let mut walls = InnerWalls {
        hidden: found.denied.iter().map(|path| folder.join(path)).collect(),
        ..InnerWalls::default()
    };
    if access == Access::Read {
        return Ok(walls);
    }
    refuse_hard_links(&found, policy).map_err(|error| in_folder(folder, &error))?;
    let own = Policy {
        // The person's list names paths of the Workspace.
        protect: Vec::new(),
        ..policy.clone()
    };
    let fixed =
        protected::protected(&opened, &found, &own).map_err(|error| in_folder(folder, &error))?;
    let held: BTreeSet<&Path> = fixed
        .iter()
        .chain(&found.denied)
        .flat_map(|path| path.ancestors().skip(1))
        .filter(|above| !above.as_os_str().is_empty())
        .collect();
    let held = held.into_iter().map(|path| (path, Access::Write));
    let fixed = fixed.iter().map(|path| (path.as_path(), Access::Read));
    for (path, wall) in held.chain(fixed) {
        let path = folder.join(path);
        let (seen, kind) = GrantedPath::see(&path).map_err(|error| SandboxError::Protection {
            path: path.display().to_string(),
            reason: crate::error::errno_text(error.raw_os_error().unwrap_or(libc::EIO)) + ".",
        })?;
        if kind == FileType::Symlink {
            return Err(SandboxError::Protection {
                path: path.display().to_string(),
                reason:
                    "it is a link, and what it leads to could be changed. Name a folder without it."
                        .to_owned(),
            });
        }
        walls.pinned.push((seen, wall));
    }
    Ok(walls)
}

/// Opens a granted folder; none where it is a file.
fn open_folder(path: &Path) -> Result<Option<OwnedFd>, SandboxError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), resolve) {
        Ok(opened) => Ok(Some(opened)),
        Err(rustix::io::Errno::NOTDIR) => Ok(None),
        Err(_) => Err(SandboxError::Widening {
            path: path.display().to_string(),
        }),
    }
}

/// A fault of the search, told of the folder that was asked for.
fn in_folder(folder: &Path, error: &SandboxError) -> SandboxError {
    SandboxError::Protection {
        path: folder.display().to_string(),
        reason: format!("{error} Name a smaller folder."),
    }
}
