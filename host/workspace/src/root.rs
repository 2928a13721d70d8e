//! Opening the Workspace, and finding out which tree and which path inside it a given text means.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::links;
use crate::open::{open_beneath, proc_path};
use crate::relative_path::strip_parts;
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use proptest::prelude::*;
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::*;
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

    #[test]
    fn the_workspace_stays_the_folder_that_was_opened_when_its_name_is_taken_by_another() {
        let fixture = Fixture::new();
        fs::write(fixture.path().join("mine"), "mine").unwrap();
        let moved = fixture.outside().join("moved");
        fs::rename(fixture.path(), &moved).unwrap();
        fs::create_dir(fixture.path()).unwrap();
        fs::write(fixture.path().join("mine"), "theirs").unwrap();
        let read = fixture.workspace.read_range("mine", 0, 100).unwrap();
        assert_eq!(read.data, b"mine");
    }

    #[test]
    fn a_link_to_a_folder_is_followed_once_and_the_canonical_path_is_kept() {
        let fixture = Fixture::new();
        let link = fixture.outside().join("link");
        symlink(fixture.path(), &link).unwrap();
        let workspace = Workspace::open(&link).unwrap();
        assert_eq!(workspace.canonical_path(), fixture.path());
    }

    #[test]
    fn what_cannot_be_opened_is_named_with_its_reason_and_remedy() {
        let fixture = Fixture::new();
        let outside = fixture.outside();
        let missing = outside.join("missing");
        let message = |path: &Path| Workspace::open(path).unwrap_err().to_string();
        assert_eq!(
            message(&missing),
            format!(
                "Workspace {} does not exist; create the folder or name another with --workspace",
                missing.display()
            )
        );
        let file = outside.join("secret");
        assert_eq!(
            message(&file),
            format!(
                "Workspace {} is not a folder; name the folder that holds it",
                file.display()
            )
        );
        assert!(matches!(
            Workspace::open(&file.join("x")),
            Err(OpenError::NotDirectory { .. })
        ));
        let dangling = outside.join("dangling");
        symlink(&missing, &dangling).unwrap();
        assert!(matches!(
            Workspace::open(&dangling),
            Err(OpenError::DanglingLink { target, .. }) if target == missing
        ));
        let circle = outside.join("circle");
        symlink(&circle, &circle).unwrap();
        assert!(matches!(
            Workspace::open(&circle),
            Err(OpenError::Io {
                errno: Errno::LOOP,
                ..
            })
        ));
    }

    #[test]
    fn a_folder_without_read_or_search_permission_is_refused() {
        let fixture = Fixture::new();
        for mode in [0o000, 0o111, 0o444] {
            fs::set_permissions(fixture.path(), fs::Permissions::from_mode(mode)).unwrap();
            let path = fixture.path().to_owned();
            let opened = without_privileges(move || Workspace::open(&path).map(|_| ()));
            assert!(matches!(opened, Err(OpenError::Denied { .. })), "{mode:o}");
        }
        fs::set_permissions(fixture.path(), fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn a_file_without_read_permission_is_denied() {
        let fixture = Fixture::new();
        let file = fixture.path().join("closed");
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
        let workspace = fixture.workspace.clone();
        let error = without_privileges(move || workspace.read_range("closed", 0, 1).unwrap_err());
        assert_eq!(error.code(), "denied");
    }

    /// Runs in a thread of its own that has put away what lets root read everything.
    fn without_privileges<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(move || {
            let mut sets = capabilities(None).unwrap();
            sets.effective = CapabilitySet::empty();
            set_capabilities(None, sets).unwrap();
            run()
        })
        .join()
        .unwrap()
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
