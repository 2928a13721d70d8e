//! Where a change is made: a folder that was opened beneath the root, and a name in it. Nothing is looked up by a longer path again.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, mkdirat, openat, statat};
use rustix::io::Errno;

use super::EditorOptions;
use crate::open::open_beneath;
use crate::relative_path::LONGEST_PATH;
use crate::{RelativePath, Workspace, WorkspaceError};

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// A place for a file, which may or may not be there.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) folder: OwnedFd,
    pub(super) name: String,
    /// Relative to the Workspace, links followed. It names the file whatever it was called by.
    pub(super) path: PathBuf,
}

/// The path that a change is about, once it is known to be allowed, and which folders have to be made first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Resolved {
    /// Relative to the Workspace, links followed.
    pub(super) path: PathBuf,
}

impl Resolved {
    pub(super) fn shown(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

/// Follows `path` as far as it exists, and refuses what may not be changed.
pub(super) fn resolve(
    workspace: &Workspace,
    options: &EditorOptions,
    path: &str,
) -> Result<Resolved, WorkspaceError> {
    let relative = workspace.resolve(path)?;
    let Some(name) = relative.name() else {
        return Err(WorkspaceError::IsDirectory {
            path: relative.to_string(),
        });
    };
    let root = workspace.canonical_path().as_os_str().len();
    if root + 1 + relative.as_str().len() > LONGEST_PATH {
        // It could be made, folder by folder, and then nobody could open it.
        return Err(WorkspaceError::TooDeep {
            path: relative.to_string(),
        });
    }
    let parent = relative.parent().unwrap_or_else(RelativePath::root);
    let folder = real_folder(workspace, &parent)
        .map_err(|errno| WorkspaceError::from_errno(errno, path, parent.as_str()))?;
    let resolved = Resolved {
        path: folder.join(name),
    };
    if super::is_temporary(name.as_bytes())
        || (options.protects)(&resolved.path)
        || (options.protects)(relative.as_path())
    {
        return Err(WorkspaceError::Protected {
            path: relative.to_string(),
        });
    }
    if workspace.hides(&resolved.path) || workspace.hides(relative.as_path()) {
        return Err(WorkspaceError::Hidden {
            path: relative.to_string(),
        });
    }
    Ok(resolved)
}

/// The folder's path without links. What does not exist yet is taken as it is named.
fn real_folder(workspace: &Workspace, path: &RelativePath) -> Result<PathBuf, Errno> {
    let place = workspace.place_of(path);
    match (place.open(FOLDER), path.name(), path.parent()) {
        (Ok(folder), ..) => place.path_of(folder.as_fd()).ok_or(Errno::XDEV),
        (Err(Errno::NOENT), Some(name), Some(parent)) => {
            let real = real_folder(workspace, &parent)?;
            match open_folder(workspace, &real)
                .and_then(|above| statat(&above, name, AtFlags::SYMLINK_NOFOLLOW))
            {
                // Either the folder is not there, or the one above it is not.
                Err(Errno::NOENT) => Ok(real.join(name)),
                Err(errno) => Err(errno),
                // A link that leads nowhere is no folder to be made.
                Ok(_) => Err(Errno::NOTDIR),
            }
        }
        (Err(errno), ..) => Err(errno),
    }
}

/// Opens a folder by its path without links. A link that has taken the place of one of its parts is refused.
fn open_folder(workspace: &Workspace, path: &Path) -> Result<OwnedFd, Errno> {
    let mut folder = open_beneath(workspace.fd(), &RelativePath::root(), FOLDER)?;
    for part in path.components() {
        folder = openat(
            &folder,
            part.as_os_str(),
            FOLDER | OFlags::NOFOLLOW,
            Mode::empty(),
        )?;
    }
    Ok(folder)
}

impl Target {
    /// The place of `path`, a path without links. Its folder must be there.
    pub(super) fn open(workspace: &Workspace, path: &Path) -> Result<Target, Errno> {
        let folder = open_folder(workspace, path.parent().unwrap_or(Path::new("")))?;
        let name = path.file_name().and_then(|name| name.to_str());
        Ok(Target {
            folder,
            name: name.ok_or(Errno::ILSEQ)?.to_owned(),
            path: path.to_owned(),
        })
    }

    /// The folders above `path` that are not there, outermost first.
    pub(super) fn missing_folders(
        workspace: &Workspace,
        path: &Path,
    ) -> Result<Vec<PathBuf>, Errno> {
        let mut missing = Vec::new();
        let above = path
            .ancestors()
            .skip(1)
            .filter(|path| !path.as_os_str().is_empty());
        for folder in above {
            match open_folder(workspace, folder) {
                Ok(_) => break,
                Err(Errno::NOENT) => missing.push(folder.to_owned()),
                Err(errno) => return Err(errno),
            }
        }
        missing.reverse();
        Ok(missing)
    }

    /// Makes the folders above `path` that are not there, each in the one above it.
    pub(super) fn make_folders(workspace: &Workspace, path: &Path) -> Result<(), Errno> {
        let mut folder = open_beneath(workspace.fd(), &RelativePath::root(), FOLDER)?;
        for part in path.parent().unwrap_or(Path::new("")).components() {
            match mkdirat(&folder, part.as_os_str(), Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            let flags = FOLDER | OFlags::NOFOLLOW;
            folder = openat(&folder, part.as_os_str(), flags, Mode::empty())?;
        }
        Ok(())
    }

    /// What is there now, itself and not what it leads to.
    pub(super) fn stat(&self) -> Result<Option<Stat>, Errno> {
        match statat(&self.folder, self.name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// As [`Target::stat`], where only a regular file will do.
    pub(super) fn file(&self) -> Result<Option<Stat>, WorkspaceError> {
        let shown = self.path.to_string_lossy();
        let stat = self
            .stat()
            .map_err(|errno| WorkspaceError::from_errno(errno, &shown, &shown))?;
        let Some(stat) = stat else { return Ok(None) };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            return Err(WorkspaceError::Link {
                path: shown.into_owned(),
            });
        }
        crate::reading::require_regular(&stat, &shown)?;
        Ok(Some(stat))
    }

    /// Makes what happened in the folder durable.
    pub(super) fn sync_folder(&self) -> std::io::Result<()> {
        // A descriptor that was opened for reading its names can be synced.
        Ok(rustix::fs::fsync(&self.folder)?)
    }
}
