//! The way to a path of the Workspace, link by link, as the host's own programs will go it. It never leaves the
//! Workspace, and every step is taken by descriptor.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::survey::open;

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// A file with settings is never longer.
const LONGEST_FILE: u64 = 1024 * 1024;

/// What was met on the way to a path. All paths are relative to the Workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Way {
    /// The links that were followed, or lead out.
    pub(crate) links: BTreeSet<PathBuf>,
    /// Where it ends and what is there; none where that is missing or not in the Workspace.
    pub(crate) end: Option<(PathBuf, FileType)>,
    /// The folder on the way that the host may not look into, so that nobody can say what lies behind it.
    pub(crate) closed: Option<PathBuf>,
}

/// Follows `path`, which is relative to the Workspace or absolute on the host.
pub(crate) fn follow(workspace: &OwnedFd, path: &Path) -> Way {
    let mut way = Way::default();
    way.end = walk(workspace, path, &mut way);
    way
}

fn walk(workspace: &OwnedFd, path: &Path, way: &mut Way) -> Option<(PathBuf, FileType)> {
    let mut here = PathBuf::new();
    let mut kind = FileType::Directory;
    let mut followed = 0;
    let mut ahead = VecDeque::new();
    prepend(&mut ahead, &inside(workspace, path)?);
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            // The Workspace's root has nothing above it that could be of interest.
            here.pop().then_some(())?;
            continue;
        }
        let next = here.join(&name);
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let found = match open(workspace, &next, flags, ResolveFlags::NO_SYMLINKS) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => return None,
            // A command may take the host's rights to a folder away and give itself those that it needs later.
            Err(_) => {
                way.closed = Some(here);
                return None;
            }
        };
        kind = FileType::from_raw_mode(rustix::fs::fstat(&found).ok()?.st_mode);
        if kind != FileType::Symlink {
            here = next;
            continue;
        }
        way.links.insert(next);
        followed += 1;
        if followed > MOST_LINKS {
            return None;
        }
        let target = rustix::fs::readlinkat(&found, "", Vec::new()).ok()?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            here = PathBuf::new();
        }
        prepend(&mut ahead, &inside(workspace, &target)?);
        kind = FileType::Directory;
    }
    (!here.as_os_str().is_empty()).then_some((here, kind))
}

/// An absolute path as one relative to the Workspace, if it is in there; a relative one as it is.
///
/// The Workspace may have other names: a home that is a link on this system is written as the person writes it. Such a name
/// is found by where the way to it ends first in the Workspace, so that all links beyond are still walked one by one.
fn inside(workspace: &OwnedFd, path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return Some(path.to_owned());
    }
    let root = std::fs::read_link(format!("/proc/self/fd/{}", workspace.as_raw_fd())).ok()?;
    if let Ok(inside) = path.strip_prefix(&root) {
        return Some(inside.to_owned());
    }
    let mut above: Vec<&Path> = path.ancestors().collect();
    above.reverse();
    above.into_iter().find_map(|above| {
        let real = above.canonicalize().ok()?;
        let inside = real.strip_prefix(&root).ok()?;
        Some(inside.join(path.strip_prefix(above).ok()?))
    })
}

fn prepend(ahead: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => ahead.push_front(name.to_owned()),
            Component::ParentDir => ahead.push_front(OsStr::new("..").to_owned()),
            _ => {}
        }
    }
}

/// The text of a file in the Workspace; none where it is something else, or no text.
pub(crate) fn read(workspace: &OwnedFd, path: &Path) -> Option<String> {
    let (path, FileType::RegularFile) = follow(workspace, path).end? else {
        return None;
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = open(workspace, &path, flags, ResolveFlags::NO_SYMLINKS).ok()?;
    let mut text = Vec::new();
    File::from(file)
        .take(LONGEST_FILE)
        .read_to_end(&mut text)
        .ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::tests::{file, workspace};
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_one_by_one_and_never_out() {
        let (_folder, workspace) = workspace(|root| {
            file(root, "a/b/file");
            symlink("../a/./b", root.join("a/link")).unwrap();
            symlink("/etc", root.join("out")).unwrap();
            symlink("../..", root.join("up")).unwrap();
            symlink("circle", root.join("circle")).unwrap();
        });
        let way = follow(&workspace, Path::new("a/link/file"));
        assert_eq!(way.end, Some(("a/b/file".into(), FileType::RegularFile)));
        assert_eq!(way.links, ["a/link".into()].into());
        for (path, link) in [("out/passwd", "out"), ("up/x", "up"), ("circle", "circle")] {
            let way = follow(&workspace, Path::new(path));
            assert_eq!((way.end, way.links), (None, [link.into()].into()), "{path}");
        }
        assert_eq!(follow(&workspace, Path::new("a/nothing")).end, None);
        assert_eq!(follow(&workspace, Path::new("/etc/passwd")).end, None);
        assert_eq!(follow(&workspace, Path::new("..")).end, None);
    }

    #[test]
    fn another_name_of_the_workspace_leads_into_it() {
        let (folder, workspace) = workspace(|root| {
            file(root, "a/file");
            symlink("a", root.join("link")).unwrap();
        });
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(folder.path(), elsewhere.path().join("alias")).unwrap();
        let way = follow(&workspace, &elsewhere.path().join("alias/link/file"));
        assert_eq!(way.end, Some(("a/file".into(), FileType::RegularFile)));
        assert_eq!(way.links, ["link".into()].into());
    }
}
