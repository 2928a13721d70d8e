//! Which tree and which path inside it a given text means, and the way there.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

use rustix::fs::{self, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::links;
use crate::open::{open_beneath, proc_path};
use crate::relative_path::strip_parts;
use crate::{RelativePath, Workspace, WorkspaceError};

/// Where tools see the Workspace, whatever its path on the host.
pub const GUEST_ROOT: &str = "/workspace";

#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) directory: OwnedFd,
    pub(crate) canonical_path: PathBuf,
    /// Walks under way.
    pub(crate) walks: AtomicUsize,
}

/// A further folder that tools may read under a prefix of its own.
#[derive(Debug)]
pub(crate) struct Mount {
    pub(crate) prefix: String,
    pub(crate) directory: PathBuf,
    /// Opened at the first access, since the folder may be made later.
    pub(crate) opened: OnceLock<OwnedFd>,
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
    /// The path inside the Workspace that `path` means. Accepted: a relative path, `/workspace/...`, and the Workspace's canonical path on the
    /// host, which wins where both fit. `..` is taken out as text first: inside it is welcome, above the root it is
    /// refused. Links are not looked at here; the kernel does that at each access, and refuses those that lead out.
    ///
    /// # Errors
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

    /// The place of a path that was resolved.
    pub(crate) fn place_of(&self, path: &RelativePath) -> Place<'_> {
        Place {
            tree: Tree::Workspace(&self.root),
            path: path.clone(),
        }
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

    /// True in the Workspace, false in a mount.
    pub(crate) fn is_in_workspace(&self) -> bool {
        matches!(self.tree, Tree::Workspace(_))
    }

    /// The path inside the tree at which something that was opened stands now, links followed; none where it cannot be told.
    pub(crate) fn path_of(&self, opened: BorrowedFd<'_>) -> Option<PathBuf> {
        let path = |opened| std::fs::read_link(proc_path(opened)).ok();
        let tree = path(self.directory().ok()?)?;
        let inside = path(opened)?.strip_prefix(tree).ok()?.to_owned();
        Some(inside)
    }

    /// Opens it, beneath its tree.
    pub(crate) fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let directory = self.directory()?;
        match (open_beneath(directory, &self.path, flags), self.tree) {
            (Err(Errno::XDEV), Tree::Workspace(root)) => {
                let path = links::follow(directory, &root.canonical_path, &self.path)?;
                open_beneath(directory, &path, flags)
            }
            (opened, _) => opened,
        }
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

fn outside(path: &str) -> WorkspaceError {
    WorkspaceError::Outside {
        path: path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::GUEST_ROOT;
    use crate::fixture::Fixture;

    #[test]
    fn a_relative_path_the_guest_path_and_the_host_path_mean_the_same() {
        let fixture = Fixture::new();
        let host = fixture.path().to_str().unwrap();
        for given in [
            "a/b",
            "./a//b/",
            "a/x/../b",
            "/workspace/a/b",
            "//workspace//a/b",
            &format!("{host}/a/b"),
            &format!("{host}/a/../a/b"),
        ] {
            let resolved = fixture.workspace.resolve(given).unwrap();
            assert_eq!(resolved.as_str(), "a/b", "{given}");
        }
        for given in [".", "./", "a/..", "/workspace", "/workspace/", host] {
            assert!(
                fixture.workspace.resolve(given).unwrap().is_root(),
                "{given}"
            );
        }
    }

    #[test]
    fn everything_else_is_outside_and_named_as_it_was_given() {
        let fixture = Fixture::new();
        let host = fixture.path().to_str().unwrap();
        let beside = format!("{host}-beside/a");
        let above = format!("{host}/../a");
        for given in [
            "",
            "..",
            "../a",
            "a/../../b",
            "/",
            "/etc/passwd",
            "/workspacex/a",
            "/workspace/../etc/passwd",
            "/proc/self/root/etc/passwd",
            "a\0b",
            &beside,
            &above,
        ] {
            let error = fixture.workspace.resolve(given).unwrap_err();
            assert_eq!(error.code(), "outside-workspace", "{given:?}");
            assert_eq!(
                error.to_string(),
                format!("Path \"{given}\" is outside the Workspace.")
            );
        }
    }

    #[test]
    fn an_empty_path_is_told_to_be_empty() {
        let error = Fixture::new().workspace.resolve("").unwrap_err();
        assert!(
            error
                .hint()
                .unwrap()
                .starts_with("It is empty: name a path")
        );
    }

    #[test]
    fn an_encoded_separator_a_tilde_and_a_backslash_are_ordinary_characters() {
        let fixture = Fixture::new();
        for given in ["..%2fetc", "~/.ssh", "..\\etc"] {
            assert_eq!(fixture.workspace.resolve(given).unwrap().as_str(), given);
        }
    }

    #[test]
    fn a_mount_can_be_read_once_its_folder_exists_and_is_no_part_of_the_workspace() {
        let fixture = Fixture::new();
        let outputs = fixture.outside().join("outputs");
        let workspace = fixture
            .workspace
            .clone()
            .with_mount("/floe/outputs", &outputs);
        let read = |path| workspace.read_range(path, 0, 100).map(|range| range.data);
        let missing = read("/floe/outputs/c1.txt").unwrap_err();
        assert_eq!(missing.code(), "not-found");
        assert_eq!(
            missing.to_string(),
            "\"/floe/outputs/c1.txt\" does not exist."
        );
        fs::create_dir(&outputs).unwrap();
        fs::write(outputs.join("c1.txt"), "whole").unwrap();
        assert_eq!(read("/floe/outputs/c1.txt").unwrap(), b"whole");
        assert_eq!(read("/floe/outputs/./x/../c1.txt").unwrap(), b"whole");
        let listing = workspace.list_directory("/floe/outputs", 10).unwrap();
        assert_eq!(listing.entries[0].path, "/floe/outputs/c1.txt");
        for given in ["/floe/outputs/../secret", "/floe", "/floe/outputsx"] {
            assert_eq!(
                read(given).unwrap_err().code(),
                "outside-workspace",
                "{given}"
            );
        }
        symlink(fixture.outside().join("secret"), outputs.join("link")).unwrap();
        assert_eq!(
            read("/floe/outputs/link").unwrap_err().code(),
            "outside-workspace"
        );
        assert!(workspace.resolve("/floe/outputs/c1.txt").is_err());
    }

    fn part() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[a-c]{1,2}",
            2 => Just("..".to_owned()),
            1 => Just(".".to_owned()),
            1 => Just(String::new()),
            1 => "\\PC{0,3}",
        ]
    }

    /// The rule once more, as a walk over the parts.
    fn expected(path: &str) -> Option<Vec<&str>> {
        let mut parts = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop()?;
                }
                part => parts.push(part),
            }
        }
        Some(parts)
    }

    proptest! {
        #[test]
        fn a_relative_path_resolves_to_its_parts_or_is_outside(
            parts in prop::collection::vec(part(), 1..8)
        ) {
            let fixture = Fixture::new();
            let path = parts.join("/");
            prop_assume!(!path.starts_with('/') && !path.is_empty());
            let resolved = fixture.workspace.resolve(&path);
            match expected(&path) {
                Some(parts) => {
                    let resolved = resolved.unwrap();
                    prop_assert_eq!(resolved.parts().collect::<Vec<_>>(), parts);
                    for prefix in [GUEST_ROOT, fixture.path().to_str().unwrap()] {
                        let absolute = format!("{prefix}/{path}");
                        prop_assert_eq!(fixture.workspace.resolve(&absolute).unwrap(), resolved.clone());
                    }
                }
                None => prop_assert_eq!(resolved.unwrap_err().code(), "outside-workspace"),
            }
        }

        #[test]
        fn whatever_is_given_a_resolved_path_cannot_leave(path in "(?s).{0,40}|(/workspace)?[./a]{0,20}") {
            let fixture = Fixture::new();
            if let Ok(resolved) = fixture.workspace.resolve(&path) {
                let text = resolved.as_str();
                prop_assert!(!text.starts_with('/') && !text.ends_with('/') && !text.contains('\0'));
                prop_assert!(resolved.is_root() || text.split('/').all(|part| !matches!(part, "" | "." | "..")));
                if !resolved.is_root() {
                    prop_assert_eq!(fixture.workspace.resolve(text).unwrap(), resolved);
                }
            }
        }
    }
}
