//! Opening the Workspace, and finding out which tree and which path inside it a given text means.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::open::{open_beneath, proc_path};
use crate::{OpenError, RelativePath, WorkspaceError};

/// Where tools see the Workspace, whatever its path on the host.
pub const GUEST_ROOT: &str = "/workspace";

/// The one directory tree that a Session may touch. Clones share the descriptor.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: Arc<Root>,
    mounts: Vec<Arc<Mount>>,
}

#[derive(Debug)]
struct Root {
    directory: OwnedFd,
    canonical_path: PathBuf,
}

/// A further folder that tools may read under a prefix of its own.
#[derive(Debug)]
struct Mount {
    prefix: String,
    directory: PathBuf,
    /// Opened at the first access, since the folder may be made later.
    opened: OnceLock<OwnedFd>,
}

/// Where a given path leads: a tree, and the path inside it.
#[derive(Debug)]
pub(crate) struct Place<'w> {
    tree: Tree<'w>,
    pub(crate) path: RelativePath,
}

#[derive(Clone, Copy, Debug)]
enum Tree<'w> {
    Workspace(&'w Root),
    Mount(&'w Mount),
}

impl Workspace {
    /// Opens the folder at `path`. Links in `path` are followed now and never again: the Workspace stays the folder that was opened,
    /// whatever happens to its name.
    ///
    /// Whether the folder may be a Workspace at all is another question: [`crate::check_location`].
    pub fn open(path: &Path) -> Result<Workspace, OpenError> {
        let directory = fs::openat(
            CWD,
            path,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|errno| open_error(path, errno))?;
        // The probe says in one step whether openat2 is there and whether the folder can be entered and listed.
        match open_beneath(
            directory.as_fd(),
            &RelativePath::root(),
            OFlags::RDONLY | OFlags::DIRECTORY,
        ) {
            Ok(_) => {}
            Err(errno @ (Errno::NOSYS | Errno::PERM)) => {
                return Err(OpenError::NoOpenat2 { errno });
            }
            Err(errno) => return Err(open_error(path, errno)),
        }
        let canonical_path = std::fs::read_link(proc_path(directory.as_fd()))
            .map_err(|error| open_error(path, Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        Ok(Workspace {
            root: Arc::new(Root {
                directory,
                canonical_path,
            }),
            mounts: Vec::new(),
        })
    }

    /// The same Workspace, with the folder `directory` of the host readable under `prefix` (absolute, such as `/floe/outputs`). The folder
    /// may not exist yet. Nothing ever writes through it.
    #[must_use]
    pub fn with_mount(mut self, prefix: &str, directory: &Path) -> Workspace {
        self.mounts.push(Arc::new(Mount {
            prefix: format!("/{}", prefix.trim_matches('/')),
            directory: directory.to_owned(),
            opened: OnceLock::new(),
        }));
        self
    }

    /// The descriptor, opened with `O_PATH`.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.root.directory.as_fd()
    }

    /// The path on the host, without links, as it was when the Workspace was opened. Commands see the Workspace there.
    pub fn canonical_path(&self) -> &Path {
        &self.root.canonical_path
    }

    /// The path inside the Workspace that `path` means. Accepted: a relative path, `/workspace/...`, and the Workspace's canonical path on the
    /// host, which wins where both fit. `..` is taken out as text first: inside it is welcome, above the root it is
    /// refused. Links are not looked at here; the kernel does that at each access, and refuses those that lead out.
    ///
    /// Everything else, a path of a mount, NUL and the empty text included, is outside.
    pub fn resolve(&self, path: &str) -> Result<RelativePath, WorkspaceError> {
        match self.place(path)? {
            Place {
                tree: Tree::Workspace(_),
                path,
            } => Ok(path),
            _ => Err(outside(path)),
        }
    }

    /// As [`Workspace::resolve`], and the mounts too.
    pub(crate) fn place(&self, path: &str) -> Result<Place<'_>, WorkspaceError> {
        let (tree, rest) = self.tree_of(path).ok_or_else(|| outside(path))?;
        let path = RelativePath::normalised(rest).ok_or_else(|| outside(path))?;
        Ok(Place { tree, path })
    }

    fn tree_of<'p>(&self, path: &'p str) -> Option<(Tree<'_>, &'p str)> {
        if path.is_empty() {
            return None;
        }
        let workspace = Tree::Workspace(&self.root);
        if !path.starts_with('/') {
            return Some((workspace, path));
        }
        let mounted = self
            .mounts
            .iter()
            .find_map(|mount| Some((Tree::Mount(mount), strip_parts(path, &mount.prefix)?)));
        mounted.or_else(|| {
            let canonical = self.root.canonical_path.to_str();
            canonical
                .and_then(|canonical| strip_parts(path, canonical))
                .or_else(|| strip_parts(path, GUEST_ROOT))
                .map(|rest| (workspace, rest))
        })
    }
}

impl Place<'_> {
    /// The path as texts name it: relative to the Workspace, or with the mount's prefix.
    pub(crate) fn shown(&self) -> String {
        match self.tree {
            Tree::Workspace(_) => self.path.to_string(),
            Tree::Mount(mount) if self.path.is_root() => mount.prefix.clone(),
            Tree::Mount(mount) => format!("{}/{}", mount.prefix, self.path),
        }
    }

    /// The same tree at another path.
    pub(crate) fn at(&self, path: RelativePath) -> Self {
        Place {
            tree: self.tree,
            path,
        }
    }

    /// Opens it, beneath its tree.
    pub(crate) fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        open_beneath(self.directory()?, &self.path, flags)
    }

    fn directory(&self) -> Result<BorrowedFd<'_>, Errno> {
        match self.tree {
            Tree::Workspace(root) => Ok(root.directory.as_fd()),
            Tree::Mount(mount) => {
                if let Some(opened) = mount.opened.get() {
                    return Ok(opened.as_fd());
                }
                let opened = fs::openat(
                    CWD,
                    &mount.directory,
                    OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                    Mode::empty(),
                )?;
                Ok(mount.opened.get_or_init(|| opened).as_fd())
            }
        }
    }
}

/// What of the absolute `path` follows `prefix`, part by part: slashes in a row count as one, and nothing else is tidied.
fn strip_parts<'p>(path: &'p str, prefix: &str) -> Option<&'p str> {
    let mut rest = path;
    for part in prefix.split('/').filter(|part| !part.is_empty()) {
        rest = rest.trim_start_matches('/').strip_prefix(part)?;
        if !(rest.is_empty() || rest.starts_with('/')) {
            return None;
        }
    }
    Some(rest)
}

fn outside(path: &str) -> WorkspaceError {
    WorkspaceError::Outside {
        path: path.to_owned(),
    }
}

fn open_error(path: &Path, errno: Errno) -> OpenError {
    let owned = path.to_owned();
    match errno {
        Errno::NOENT => match dangling_target(path) {
            Some(target) => OpenError::DanglingLink {
                path: owned,
                target,
            },
            None => OpenError::Missing { path: owned },
        },
        Errno::NOTDIR => OpenError::NotDirectory { path: owned },
        Errno::ACCESS | Errno::PERM => OpenError::Denied { path: owned },
        errno => OpenError::Io { path: owned, errno },
    }
}

fn dangling_target(path: &Path) -> Option<PathBuf> {
    let stat = fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
        return None;
    }
    std::fs::read_link(path).ok()
}
