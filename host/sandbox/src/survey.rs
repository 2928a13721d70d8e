//! The search of a Workspace for nested repositories, for files whose content is hidden and for files with further names:
//! once per Session, bounded, by descriptor, and never through a link. Where something has changed since, repositories are
//! searched for again.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::SandboxError;
use crate::hard_links::HardLinks;
use crate::links;
use crate::policy::{Policy, Search};

/// What the search of a Workspace found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Folders that hold a `.git`, relative to the Workspace; its root is always among them.
    pub(crate) repositories: BTreeSet<PathBuf>,
    /// Folders that git takes for git directories themselves: bare repositories, and those that a `.git` file points to.
    pub(crate) stores: BTreeSet<PathBuf>,
    /// Files and folders whose content is hidden, and folders that the host may not look into. A command could give itself the right
    /// to, and nobody can say what it would find.
    pub(crate) denied: BTreeSet<PathBuf>,
    /// Files that have further names which were not found.
    pub(crate) linked: Vec<PathBuf>,
    /// Every folder that was seen, and when it last changed, if it was looked into.
    folders: BTreeMap<PathBuf, Seen>,
}

/// How a folder was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// It lies too deep to be looked into.
    Beyond,
    /// It was looked into; it then was as old as this. None where it was so young that it may have changed since without
    /// a later time.
    At(Option<Change>),
}

/// When a folder last changed: seconds and nanoseconds, which no program can set.
type Change = (i64, i64);

/// A change that is not older than this may be followed by another one at the same time.
const UNSETTLED: Duration = Duration::from_millis(50);

/// New folders are searched this deep, whatever the policy says of those that were there.
const DEEPEST: usize = 64;

/// Searches the Workspace, as far as the policy says.
pub(crate) fn survey(workspace: &OwnedFd, policy: &Policy) -> Result<Survey, SandboxError> {
    let denies_reading = policy.denies_reading()?;
    let denies_entering = policy.denies_entering()?;
    let mut found = Survey::default();
    found.repositories.insert(PathBuf::new());
    let mut names = HardLinks::default();
    let mut budget = policy.search.entries;
    let mut waiting = vec![(PathBuf::new(), 1)];
    while let Some((folder, depth)) = waiting.pop() {
        let listing = match open_folder(workspace, &folder)? {
            Some(opened) => match Listing::of(&opened, &mut budget) {
                Err(Errno::ACCESS) => None,
                listing => Some((opened, listing.map_err(unsearchable(&folder))?)),
            },
            None => None,
        };
        let Some((opened, listing)) = listing else {
            if folder.as_os_str().is_empty() {
                return Err(closed_workspace());
            }
            if is_there(workspace, &folder) {
                found.denied.insert(folder);
            }
            continue;
        };
        let Some(listing) = listing else {
            return Err(too_large(policy.search));
        };
        found.note(&folder, &listing);
        for (name, kind) in listing.others {
            let path = folder.join(&name);
            match kind {
                FileType::Directory if denies_entering(&path) => {
                    found.denied.insert(path);
                }
                FileType::Directory if depth < policy.search.depth => {
                    waiting.push((path, depth + 1));
                }
                FileType::Directory => {
                    found.folders.insert(path, Seen::Beyond);
                }
                FileType::RegularFile | FileType::Symlink if denies_reading(&path) => {
                    // A link is read by what it leads to.
                    match links::follow(workspace, &path).end {
                        Some((end, FileType::RegularFile)) => {
                            found.denied.insert(end);
                        }
                        Some((end, FileType::Directory))
                            if denies_entering(&path) && !end.as_os_str().is_empty() =>
                        {
                            found.denied.insert(end);
                        }
                        _ => {}
                    }
                }
                FileType::RegularFile => names.look(&opened, &folder, &name),
                _ => {}
            }
        }
    }
    found.linked = names.with_unseen_names();
    Ok(found)
}

impl Survey {
    fn note(&mut self, folder: &Path, listing: &Listing) {
        let mark = |set: &mut BTreeSet<PathBuf>, belongs: bool| match belongs {
            true => set.insert(folder.to_owned()),
            false => set.remove(folder),
        };
        // The root is looked at whatever is in it.
        let is_root = folder.as_os_str().is_empty();
        mark(&mut self.repositories, listing.has_git || is_root);
        mark(&mut self.stores, listing.is_store());
        let seen = Seen::At(listing.changed);
        self.folders.insert(folder.to_owned(), seen);
    }

    fn forget(&mut self, folder: &Path) {
        self.folders.remove(folder);
        self.repositories.remove(folder);
        self.stores.remove(folder);
    }

    /// Finds the repositories that came to be since the last search. Only folders that have changed are looked into, and
    /// new ones, however deep. False where there was too much to look at all of it.
    pub(crate) fn search_again(&mut self, workspace: &OwnedFd, policy: &Policy) -> bool {
        let mut budget = policy.search.entries;
        let mut waiting = Vec::new();
        let mut gone = Vec::new();
        for (folder, seen) in &self.folders {
            let Seen::At(changed) = seen else { continue };
            match change_of(workspace, folder) {
                Some(now) if Some(now) == *changed => {}
                Some(_) => waiting.push(folder.clone()),
                None => gone.push(folder.clone()),
            }
        }
        gone.iter().for_each(|folder| self.forget(folder));
        while let Some(folder) = waiting.pop() {
            let Ok(Some(opened)) = open_folder(workspace, &folder) else {
                self.forget(&folder);
                // Closed to the host by whoever owns it, who may open it again without a trace in the folder above.
                if is_there(workspace, &folder) {
                    self.folders.insert(folder, Seen::At(None));
                }
                continue;
            };
            let Ok(listing) = Listing::of(&opened, &mut budget) else {
                continue;
            };
            let Some(listing) = listing else {
                return false;
            };
            self.note(&folder, &listing);
            for (name, kind) in listing.others {
                let path = folder.join(name);
                let is_new = kind == FileType::Directory && !self.folders.contains_key(&path);
                if is_new && path.components().count() <= DEEPEST {
                    waiting.push(path);
                }
            }
        }
        true
    }
}

/// Whether a folder that could not be opened is one nevertheless. What may not even be asked is taken for one.
fn is_there(workspace: &OwnedFd, folder: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let opened = open(workspace, folder, flags, ResolveFlags::NO_SYMLINKS);
    !matches!(opened, Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

fn change_of(workspace: &OwnedFd, folder: &Path) -> Option<Change> {
    let path = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    // What a link on the way would lead to is compared with what was there, and never looked into.
    let status = rustix::fs::statat(workspace, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some((status.st_ctime, status.st_ctime_nsec as i64))
}

/// What is in a folder.
struct Listing {
    has_git: bool,
    /// Which of the names it has by which git knows a git directory.
    marks: BTreeSet<OsString>,
    /// All but `.git`.
    others: Vec<(OsString, FileType)>,
    changed: Option<Change>,
}

/// By these names git knows a git directory, two ways.
const STORE: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

impl Listing {
    /// Lists a folder; none where that would be more than is left of the budget.
    fn of(folder: &OwnedFd, budget: &mut u64) -> rustix::io::Result<Option<Listing>> {
        let status = rustix::fs::fstat(folder)?;
        let change = (status.st_ctime, status.st_ctime_nsec as i64);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let then = Duration::new(
            change.0.max(0) as u64,
            change.1.clamp(0, 999_999_999) as u32,
        );
        let is_settled = now.is_ok_and(|now| now > then + UNSETTLED);
        let mut listing = Listing {
            has_git: false,
            marks: BTreeSet::new(),
            others: Vec::new(),
            changed: is_settled.then_some(change),
        };
        let mut entries = Dir::read_from(folder)?;
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let Some(left) = budget.checked_sub(1) else {
                return Ok(None);
            };
            *budget = left;
            if name == ".git" {
                listing.has_git = true;
                continue;
            }
            if STORE.iter().any(|mark| name == *mark) {
                listing.marks.insert(name.to_owned());
            }
            if let Some(kind) = kind(folder, name, entry.file_type()) {
                listing.others.push((name.to_owned(), kind));
            }
        }
        Ok(Some(listing))
    }

    /// Whether git would take the folder for a git directory, as far as names tell.
    fn is_store(&self) -> bool {
        let has = |name: &str| self.marks.contains(OsStr::new(name));
        has("HEAD") && (has("objects") && has("refs") || has("commondir"))
    }
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

/// The Workspace itself may not be looked into.
pub(crate) fn closed_workspace() -> SandboxError {
    SandboxError::Protection {
        path: ".".to_owned(),
        reason: "the Workspace may not be looked into, so that nothing in it can be protected. Give yourself the right to \
                 (`chmod u+rwx`)."
            .to_owned(),
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

    fn names(paths: &BTreeSet<PathBuf>) -> Vec<String> {
        let shown = paths.iter().map(|path| path.display().to_string());
        shown.collect()
    }

    #[test]
    fn folders_that_git_takes_for_git_directories_are_found_by_what_is_in_them() {
        let (_folder, workspace) = workspace(|root| {
            for path in [
                "bare/HEAD",
                "bare/objects/x",
                "bare/refs/x",
                "linked/HEAD",
                "linked/commondir",
            ] {
                file(root, path);
            }
            file(root, "not/HEAD");
            file(root, "sub/.git/HEAD");
        });
        let survey = survey(&workspace, &Policy::default()).unwrap();
        assert_eq!(names(&survey.stores), ["bare", "linked"]);
        assert_eq!(names(&survey.repositories), ["", "sub"]);
    }

    #[test]
    fn repositories_that_come_to_be_are_found_however_deep_and_those_that_go_are_forgotten() {
        let policy = Policy {
            search: Search {
                depth: 2,
                entries: 1000,
            },
            ..Policy::default()
        };
        let (folder, workspace) = workspace(|root| {
            file(root, "a/b/c/old");
            file(root, "gone/.git/HEAD");
        });
        let root = folder.path();
        let mut survey = survey(&workspace, &policy).unwrap();
        assert!(survey.search_again(&workspace, &policy));
        assert_eq!(names(&survey.repositories), ["", "gone"]);
        file(root, "a/.git/HEAD");
        file(root, "a/n/e/w/e/s/t/.git");
        std::fs::remove_dir_all(root.join("gone")).unwrap();
        assert!(survey.search_again(&workspace, &policy));
        assert_eq!(names(&survey.repositories), ["", "a", "a/n/e/w/e/s/t"]);
        std::fs::remove_dir_all(root.join("a/.git")).unwrap();
        std::os::unix::fs::symlink("/", root.join("out")).unwrap();
        assert!(survey.search_again(&workspace, &policy));
        assert_eq!(names(&survey.repositories), ["", "a/n/e/w/e/s/t"]);
        for number in 0..1000 {
            file(root, &format!("many/{number}"));
        }
        assert!(!survey.search_again(&workspace, &policy));
    }

    #[test]
    fn a_file_with_a_name_outside_is_found_and_one_with_two_names_inside_is_none() {
        let outside = tempfile::tempdir().unwrap();
        file(outside.path(), "file");
        let (_folder, workspace) = workspace(|root| {
            file(root, "a");
            std::fs::create_dir(root.join("d")).unwrap();
            std::fs::hard_link(root.join("a"), root.join("d/b")).unwrap();
            std::fs::hard_link(outside.path().join("file"), root.join("d/planted")).unwrap();
        });
        let survey = survey(&workspace, &Policy::default()).unwrap();
        assert_eq!(survey.linked, [PathBuf::from("d/planted")]);
    }
}
