//! The way through a tree: folder by folder, each opened from the one above by its name, in the order of the paths.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat, fstat, openat, statat};
use rustix::io::Errno;

use super::ignored::Rules;
use super::selection::Selection;
use super::{SKIPPED, WalkOptions};
use crate::edits::is_temporary;
use crate::place::Place;
use crate::relative_path::LONGEST_PATH;
use crate::{RelativePath, Workspace, WorkspaceError};

/// So many folders above the present one stay open; those further up are opened again when the walk is back there.
const OPEN_LEVELS: usize = 64;
/// The most names that are held, of the present folder and those above it together, some 64 MiB.
const MOST_NAMES: usize = 1 << 20;
/// What one read of a folder takes.
const NAMES_BUFFER: usize = 32 * 1024;

/// A walk's position in the tree.
pub(super) struct Visit<'w> {
    workspace: &'w Workspace,
    options: &'w WalkOptions,
    selection: &'w Selection,
    /// Nobody waits for what is found any more.
    abandoned: &'w AtomicBool,
    start: Place<'w>,
    /// The start's path in the tree, links followed; as the operator's rules see it.
    real_start: PathBuf,
    /// From the start to the folder whose names come next.
    levels: Vec<Level>,
    /// The folder that was found last, entered when the next is asked for.
    entered: Option<Found>,
    buffer: Vec<MaybeUninit<u8>>,
}

struct Level {
    folder: Option<OwnedFd>,
    path: RelativePath,
    /// What comes next is last.
    names: Vec<(CString, FileType)>,
    rules: Rc<Rules>,
}

/// Something below the start.
#[derive(Clone, Debug)]
pub(super) struct Found {
    path: RelativePath,
    name: CString,
    kind: FileType,
}

impl Found {
    pub(super) fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    pub(super) fn is_special(&self) -> bool {
        !matches!(
            self.kind,
            FileType::RegularFile | FileType::Directory | FileType::Symlink
        )
    }
}

impl<'w> Visit<'w> {
    /// A walk that is at its start, which must be a folder.
    pub(super) fn new(
        workspace: &'w Workspace,
        start: &str,
        options: &'w WalkOptions,
        selection: &'w Selection,
        abandoned: &'w AtomicBool,
    ) -> Result<Visit<'w>, WorkspaceError> {
        let place = workspace.place(start)?;
        let failed = |errno| WorkspaceError::from_errno(errno, start, &place.shown());
        let folder = place
            .open(OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK)
            .map_err(failed)?;
        let real_start = place
            .path_of(folder.as_fd())
            .unwrap_or_else(|| place.path.as_path().to_owned());
        let mut visit = Visit {
            workspace,
            options,
            selection,
            abandoned,
            real_start,
            levels: Vec::new(),
            entered: None,
            buffer: vec![MaybeUninit::uninit(); NAMES_BUFFER],
            start: place,
        };
        let above = visit.rules_above();
        let path = visit.start.path.clone();
        visit.descend(folder, path, &above)?;
        Ok(visit)
    }

    /// The next that is wanted, or what could not be read on the way.
    pub(super) fn advance(&mut self) -> Option<Result<Found, WorkspaceError>> {
        loop {
            // Nothing may be selected of a tree that takes hours to look through.
            if self.abandoned.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(folder) = self.entered.take()
                && let Err(error) = self.enter(&folder)
            {
                return Some(Err(error));
            }
            let level = self.levels.last_mut()?;
            let Some((name, kind)) = level.names.pop() else {
                self.levels.pop();
                continue;
            };
            let Some(found) = self.judge(name, kind) else {
                continue;
            };
            if found.kind == FileType::Directory && self.may_enter() {
                self.entered = Some(found.clone());
            }
            if self.selection.includes(self.below(&found.path)) {
                return Some(Ok(found));
            }
        }
    }

    /// The path as tools name it.
    pub(super) fn shown(&self, found: &Found) -> String {
        self.start.at(found.path.clone()).shown()
    }

    /// What the last one found is.
    pub(super) fn stat(&mut self, found: &Found) -> Result<Stat, Errno> {
        let folder = self.folder()?;
        statat(folder, &found.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Opens the last file found; nothing else is opened, whatever has taken its name meanwhile.
    pub(super) fn open(&mut self, found: &Found) -> Result<(OwnedFd, Stat), WorkspaceError> {
        let shown = self.shown(found);
        if self.is_hidden(&found.path) {
            return Err(WorkspaceError::Hidden { path: shown });
        }
        let opened = self.folder().and_then(|folder| {
            let file = openat(folder, &found.name, FILE, Mode::empty())?;
            let stat = fstat(&file)?;
            Ok((file, stat))
        });
        let (file, stat) = opened.map_err(|errno| match errno {
            // A link has taken its place.
            Errno::LOOP | Errno::MLINK => WorkspaceError::SpecialFile {
                path: shown.clone(),
                kind: "symbolic link",
            },
            errno => WorkspaceError::from_errno(errno, &shown, &shown),
        })?;
        crate::reading::require_regular(&stat, &shown)?;
        Ok((file, stat))
    }

    /// Whether a name is visited at all.
    fn judge(&mut self, name: CString, kind: FileType) -> Option<Found> {
        let level = self.levels.last()?;
        let text = name.to_str().ok()?;
        if is_temporary(text.as_bytes()) || (!self.options.hidden && text.starts_with('.')) {
            return None;
        }
        let path = level.path.entry(text);
        let kind = match kind {
            FileType::Unknown => {
                let stat = statat(level.folder.as_ref()?, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                FileType::from_raw_mode(stat.st_mode)
            }
            kind => kind,
        };
        let is_directory = kind == FileType::Directory;
        let left_out = self.options.respect_ignore
            && (is_directory && SKIPPED.contains(&text)
                || level.rules.leave_out(path.as_path(), is_directory));
        if left_out || self.selection.excludes(self.below(&path)) {
            return None;
        }
        Some(Found { path, name, kind })
    }

    fn may_enter(&self) -> bool {
        let depth = self.levels.len();
        self.options
            .max_depth
            .is_none_or(|most| depth < most as usize)
    }

    /// Goes into a folder of the present level.
    fn enter(&mut self, found: &Found) -> Result<(), WorkspaceError> {
        let shown = self.shown(found);
        // No tool could open what is below.
        if found.path.as_str().len() > LONGEST_PATH {
            return Err(WorkspaceError::TooDeep { path: shown });
        }
        let failed = |errno| WorkspaceError::from_errno(errno, &shown, &shown);
        let folder = self.folder().and_then(|above| {
            let flags = OFlags::RDONLY
                | OFlags::DIRECTORY
                | OFlags::NOFOLLOW
                | OFlags::NONBLOCK
                | OFlags::CLOEXEC;
            openat(above, &found.name, flags, Mode::empty())
        });
        let folder = match folder {
            Ok(folder) => folder,
            // It is gone, or no folder any more: then there is nothing below it.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => return Ok(()),
            Err(errno) => return Err(failed(errno)),
        };
        let above = match self.levels.last() {
            Some(level) => Rc::clone(&level.rules),
            None => return Ok(()),
        };
        if let Some(far) = self.levels.len().checked_sub(OPEN_LEVELS) {
            self.levels[far].folder = None;
        }
        self.descend(folder, found.path.clone(), &above)
    }

    /// Reads the names of a folder and makes it the present one.
    fn descend(
        &mut self,
        folder: OwnedFd,
        path: RelativePath,
        above: &Rc<Rules>,
    ) -> Result<(), WorkspaceError> {
        let held: usize = self.levels.iter().map(|level| level.names.len()).sum();
        let room = MOST_NAMES.saturating_sub(held);
        let names = read_names(folder.as_fd(), &mut self.buffer, room);
        let (names, is_cut) = names.map_err(|errno| {
            let shown = self.start.at(path.clone()).shown();
            WorkspaceError::from_errno(errno, &shown, &shown)
        })?;
        let rules = if self.options.respect_ignore {
            let has = |wanted: &str| has(&names, wanted);
            Rules::of_folder(above, folder.as_fd(), path.as_path(), has)
        } else {
            Rc::clone(above)
        };
        let shown = is_cut.then(|| self.start.at(path.clone()).shown());
        self.levels.push(Level {
            folder: Some(folder),
            path,
            names,
            rules,
        });
        match shown {
            Some(path) => Err(WorkspaceError::TooMany {
                path,
                limit: room as u64,
            }),
            None => Ok(()),
        }
    }

    /// The folder whose names come next, opened again where that is needed.
    fn folder(&mut self) -> Result<BorrowedFd<'_>, Errno> {
        let level = self.levels.last_mut().ok_or(Errno::NOENT)?;
        let folder = match level.folder.take() {
            Some(folder) => folder,
            None => self
                .start
                .at(level.path.clone())
                .open(OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK)?,
        };
        let folder: &OwnedFd = level.folder.insert(folder);
        Ok(folder.as_fd())
    }

    /// The rules of the folders from the tree's root down to the one that holds the start.
    fn rules_above(&self) -> Rc<Rules> {
        let mut rules = Rc::new(Rules::default());
        if !self.options.respect_ignore {
            return rules;
        }
        let mut above = Vec::new();
        let mut path = self.start.path.parent();
        while let Some(folder) = path {
            path = folder.parent();
            above.push(folder);
        }
        for path in above.into_iter().rev() {
            let place = self.start.at(path);
            let Ok(folder) = place.open(OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK)
            else {
                continue;
            };
            let has = |name: &str| statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
            rules = Rules::of_folder(&rules, folder.as_fd(), place.path.as_path(), has);
        }
        rules
    }

    fn below<'p>(&self, path: &'p RelativePath) -> &'p Path {
        let path = path.as_path();
        path.strip_prefix(self.start.path.as_path()).unwrap_or(path)
    }

    fn is_hidden(&self, path: &RelativePath) -> bool {
        self.start.is_in_workspace()
            && (self.workspace.hides(path.as_path())
                || self
                    .workspace
                    .hides(&self.real_start.join(self.below(path))))
    }
}

const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// The names of a folder, the first by bytes last; and whether there were more than there is `room` for.
fn read_names(
    folder: BorrowedFd<'_>,
    buffer: &mut [MaybeUninit<u8>],
    room: usize,
) -> Result<(Vec<(CString, FileType)>, bool), Errno> {
    let mut names = Vec::new();
    let mut entries = RawDir::new(folder, buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name: &CStr = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        if names.len() == room {
            sort(&mut names);
            return Ok((names, true));
        }
        names.push((name.to_owned(), entry.file_type()));
    }
    sort(&mut names);
    Ok((names, false))
}

fn sort(names: &mut [(CString, FileType)]) {
    names.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
}

fn has(names: &[(CString, FileType)], wanted: &str) -> bool {
    names
        .binary_search_by(|(name, _)| wanted.as_bytes().cmp(name.to_bytes()))
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn a_tree_of_any_depth_is_walked_as_far_as_paths_lead() {
        let fixture = Fixture::new();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder = rustix::fs::open(fixture.path(), flags, Mode::empty()).unwrap();
        let name = "d".repeat(63);
        for _ in 0..200 {
            rustix::fs::mkdirat(&folder, &name, 0o700.into()).unwrap();
            folder = openat(&folder, &name, flags, Mode::empty()).unwrap();
        }
        let options = WalkOptions::default();
        let selection = Selection::new(&options).unwrap();
        let never = AtomicBool::new(false);
        let mut visit = Visit::new(&fixture.workspace, ".", &options, &selection, &never).unwrap();
        let found: Vec<_> = std::iter::from_fn(|| visit.advance()).collect();
        let (last, before) = found.split_last().unwrap();
        assert!(
            matches!(last, Err(WorkspaceError::TooDeep { .. })),
            "{last:?}"
        );
        assert!(before.iter().all(Result::is_ok));
        // 64 bytes a folder, but for the slash that the first one has not.
        assert_eq!(before.len(), LONGEST_PATH / 64 + 2);
    }

    #[test]
    fn a_search_that_selects_nothing_ends_when_it_is_abandoned() {
        let fixture = Fixture::new();
        for number in 0..3 {
            fixture.write(&format!("{number}"), "");
        }
        let options = WalkOptions {
            include: vec!["none".to_owned()],
            ..WalkOptions::default()
        };
        let selection = Selection::new(&options).unwrap();
        let abandoned = AtomicBool::new(true);
        let visit = Visit::new(&fixture.workspace, ".", &options, &selection, &abandoned);
        let mut visit = visit.unwrap();
        assert!(visit.advance().is_none());
        assert_eq!(visit.levels[0].names.len(), 3, "nothing was looked at");
    }
}
