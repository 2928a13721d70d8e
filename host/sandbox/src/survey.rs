//! The search of a Workspace for nested repositories and for files whose content is hidden: once per Session, bounded,
//! by descriptor, and never through a link.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::SandboxError;
use crate::links;
use crate::policy::{Policy, Search};

/// What the search of a Workspace found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Folders that hold a `.git`, relative to the Workspace; its root is always among them.
    pub(crate) repositories: BTreeSet<PathBuf>,
    /// Files whose content is hidden.
    pub(crate) denied: BTreeSet<PathBuf>,
}

/// Searches the Workspace, as far as the policy says.
pub(crate) fn survey(workspace: &OwnedFd, policy: &Policy) -> Result<Survey, SandboxError> {
    let denies_reading = policy.denies_reading()?;
    let mut found = Survey::default();
    found.repositories.insert(PathBuf::new());
    let mut entries = 0;
    let mut waiting = vec![(PathBuf::new(), 1)];
    while let Some((folder, depth)) = waiting.pop() {
        let Some(opened) = open_folder(workspace, &folder)? else {
            continue;
        };
        let mut listing = Dir::read_from(&opened).map_err(unsearchable(&folder))?;
        while let Some(entry) = listing.read() {
            let entry = entry.map_err(unsearchable(&folder))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            entries += 1;
            if entries > policy.search.entries {
                return Err(too_large(policy.search));
            }
            let path = folder.join(name);
            if name == ".git" {
                found.repositories.insert(folder.clone());
                continue;
            }
            match kind(&opened, name, entry.file_type()) {
                Some(FileType::Directory) if depth < policy.search.depth => {
                    waiting.push((path, depth + 1));
                }
                Some(FileType::RegularFile | FileType::Symlink) if denies_reading(&path) => {
                    // A link is read by what it leads to.
                    if let Some((path, FileType::RegularFile)) = links::follow(workspace, &path).end
                    {
                        found.denied.insert(path);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

fn too_large(search: Search) -> SandboxError {
    SandboxError::Protection {
        path: ".".to_owned(),
        reason: format!(
            "it holds more than {} entries within {} folders' depth, so not every repository in it can be found. Lower \
             `search.depth` in the sandbox policy, raise `search.entries`, or open a smaller folder.",
            search.entries, search.depth
        ),
    }
}

fn unsearchable(folder: &Path) -> impl Fn(Errno) -> SandboxError {
    move |errno| SandboxError::Protection {
        path: folder.display().to_string(),
        reason: format!(
            "the folder cannot be searched: {}.",
            crate::error::errno_text(errno.raw_os_error())
        ),
    }
}

/// Opens a folder of the Workspace; none where the host may not look or nothing is any more: there a command finds
/// nothing either.
pub(crate) fn open_folder(
    workspace: &OwnedFd,
    folder: &Path,
) -> Result<Option<OwnedFd>, SandboxError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    match open(workspace, folder, flags, ResolveFlags::NO_SYMLINKS) {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(errno) => Err(unsearchable(folder)(errno)),
    }
}

/// Opens a path that cannot leave the Workspace.
pub(crate) fn open(
    workspace: &OwnedFd,
    path: &Path,
    flags: OFlags,
    resolve: ResolveFlags,
) -> rustix::io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let resolve = resolve | ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    rustix::io::retry_on_intr(|| {
        rustix::fs::openat2(
            workspace,
            path,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
            resolve,
        )
    })
}

/// What an entry of a listing is; some file systems do not say it in the listing.
pub(crate) fn kind(folder: &OwnedFd, name: &OsStr, told: FileType) -> Option<FileType> {
    if told != FileType::Unknown {
        return Some(told);
    }
    let status = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(status.st_mode))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;

    /// A Workspace of a test, opened.
    pub(crate) fn workspace(make: impl FnOnce(&Path)) -> (tempfile::TempDir, OwnedFd) {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(folder.path(), flags, Mode::empty()).unwrap();
        (folder, opened)
    }

    /// An empty file, with the folders that it needs.
    pub(crate) fn file(root: &Path, path: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }

    #[test]
    fn the_search_refuses_what_it_cannot_finish_and_says_how_to_go_on() {
        let (_folder, workspace) = workspace(|root| {
            for number in 0..20 {
                file(root, &format!("f{number}"));
            }
        });
        let policy = Policy {
            search: Search {
                depth: 6,
                entries: 10,
            },
            ..Policy::default()
        };
        let refusal = survey(&workspace, &policy).unwrap_err().to_string();
        assert!(refusal.contains("more than 10 entries"), "{refusal}");
        assert!(refusal.contains("search.depth"), "{refusal}");
    }

    #[test]
    fn files_that_hold_secrets_are_found_by_pattern_at_any_depth() {
        let (_folder, workspace) = workspace(|root| {
            file(root, ".env");
            file(root, "service/.env.local");
            file(root, "service/env");
            file(root, "settings/real");
            std::os::unix::fs::symlink("../settings/real", root.join("service/.env")).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", root.join("settings/.env")).unwrap();
        });
        let survey = survey(&workspace, &Policy::default()).unwrap();
        let denied: Vec<_> = survey
            .denied
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        assert_eq!(denied, [".env", "service/.env.local", "settings/real"]);
    }
}
