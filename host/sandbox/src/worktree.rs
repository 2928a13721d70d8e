//! A Workspace whose `.git` is a file: a linked worktree or a submodule, with its git directory somewhere else.
//!
//! Commits must work there, so that directory is shown with just what a commit writes. It is followed only if it was
//! there when the Session's first command came and itself says that it belongs to this Workspace: a file that a command
//! wrote cannot open anything. (spec/sandbox.md E13)

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};

use crate::plan::{Access, Entry};

/// What a commit writes in a git directory that it shares with others.
const SHARED: [&str; 3] = ["objects", "refs", "logs"];

/// What stays as it is in a git directory of the Workspace's own.
const FIXED: [&str; 6] = [
    "hooks",
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "modules",
];

/// A pointer file, which holds one path, is never longer.
const LONGEST_POINTER: u64 = 8192;

/// The git directories of a Workspace that lie outside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitDirectories {
    /// This Workspace's own.
    own: PathBuf,
    /// The one that holds objects and refs; the same, unless this is a linked worktree.
    common: PathBuf,
}

/// Follows the Workspace's `.git` file, if it is one, leads outside, and is answered from there.
pub(crate) fn find(workspace: &OwnedFd, workspace_path: &Path) -> Option<GitDirectories> {
    let pointer = read_pointer(workspace)?;
    let own = workspace_path
        .join(pointer.strip_prefix("gitdir: ")?)
        .canonicalize()
        .ok()?;
    if own.starts_with(workspace_path) || !points_back(&own, workspace_path) {
        return None;
    }
    let common = match read_short(&own.join("commondir")) {
        Some(common) => own.join(common).canonicalize().ok()?,
        None => own.clone(),
    };
    let belongs = own == common || own.starts_with(common.join("worktrees"));
    belongs.then_some(GitDirectories { own, common })
}

impl GitDirectories {
    /// What is put in the view, all of it under its own path, with no more access than the Workspace has.
    pub(crate) fn entries(&self, most: Access) -> Vec<Entry> {
        let bind = |path: &Path, access| Entry::Bind {
            source: path.into(),
            target: path.into(),
            access,
        };
        let mut entries = Vec::new();
        if self.own != self.common {
            entries.push(bind(&self.common, Access::Read));
        }
        entries.extend(self.writable().map(|path| bind(&path, most)));
        let fixed = self.fixed().filter(|path| path.exists());
        entries.extend(fixed.map(|path| bind(&path, Access::Read)));
        entries
    }

    /// What is to stay as it is, also where it is not there.
    pub(crate) fn fixed(&self) -> impl Iterator<Item = PathBuf> {
        FIXED.iter().map(|name| self.own.join(name))
    }

    /// What a commit writes to.
    pub(crate) fn writable(&self) -> impl Iterator<Item = PathBuf> {
        let shared = SHARED
            .iter()
            .map(|name| self.common.join(name))
            .filter(|path| path.is_dir());
        let linked = self.own != self.common;
        let shared: Vec<PathBuf> = if linked { shared.collect() } else { Vec::new() };
        std::iter::once(self.own.clone()).chain(shared)
    }
}

/// Whether the git directory says itself that it belongs to this Workspace: a linked worktree's by its `gitdir` file, a
/// submodule's by `core.worktree`.
fn points_back(own: &Path, workspace_path: &Path) -> bool {
    let is_workspace = |path: &Path| path.canonicalize().is_ok_and(|path| path == workspace_path);
    if let Some(back) = read_short(&own.join("gitdir")) {
        return own.join(back).parent().is_some_and(is_workspace);
    }
    let Ok(config) = fs::read_to_string(own.join("config")) else {
        return false;
    };
    config
        .lines()
        .filter_map(|line| {
            line.trim()
                .strip_prefix("worktree")?
                .trim_start()
                .strip_prefix('=')
        })
        .any(|value| is_workspace(&own.join(value.trim())))
}

fn read_pointer(workspace: &OwnedFd) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let file = rustix::fs::openat2(workspace, ".git", flags, Mode::empty(), resolve).ok()?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).ok()?.st_mode);
    (kind == FileType::RegularFile).then(|| read_line(File::from(file)))?
}

fn read_short(path: &Path) -> Option<String> {
    read_line(File::open(path).ok()?)
}

fn read_line(file: File) -> Option<String> {
    let mut text = String::new();
    file.take(LONGEST_POINTER).read_to_string(&mut text).ok()?;
    let line = text.trim_end_matches(['\n', '\r']);
    (!line.is_empty() && !line.contains('\n')).then(|| line.to_owned())
}
