//! Opening the Workspace.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::edits::Seen;
use crate::hidden::Hidden;
use crate::open::{open_beneath, proc_path};
use crate::place::{Mount, Root};
use crate::{OpenError, RelativePath};

/// The one directory tree that a Session may touch. Clones share the descriptor.
#[derive(Clone, Debug)]
pub struct Workspace {
    pub(crate) root: Arc<Root>,
    pub(crate) mounts: Vec<Arc<Mount>>,
    pub(crate) hidden: Option<Hidden>,
    pub(crate) seen: Option<Seen>,
}

impl Workspace {
    /// Opens the folder at `path`. Links in `path` are followed now and never again: the Workspace stays the folder that was opened,
    /// whatever happens to its name.
    ///
    /// Whether the folder may be a Workspace at all is another question: [`crate::check_location`].
    ///
    /// # Errors
    ///
    /// There is no folder, it may not be entered, or the kernel is too old.
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
        let canonical_path =
            std::fs::read_link(proc_path(directory.as_fd())).map_err(|error| OpenError::Io {
                path: path.to_owned(),
                errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
            })?;
        Ok(Workspace {
            root: Arc::new(Root {
                directory,
                canonical_path,
                walks: AtomicUsize::new(0),
            }),
            mounts: Vec::new(),
            hidden: None,
            seen: None,
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

    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::*;
    use crate::fixture::Fixture;

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
}
