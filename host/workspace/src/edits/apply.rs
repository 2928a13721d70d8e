//! From a plan to changed names and back. Everything here happens under the Workspace's lock.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{
    AtFlags, FlockOperation, RenameFlags, flock, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::contents::{Version, digest, read_beside, remove_beside, write_beside};
use super::failpoint;
use super::journal::{Entry, Plan, Stage, Step, identity};
use super::target::Target;
use crate::{Workspace, WorkspaceError};

/// A plan with the contents that it needs, step by step.
pub(super) struct Work {
    pub(super) plan: Plan,
    /// What the files hold before.
    pub(super) old: Vec<Option<Vec<u8>>>,
    /// What they are to hold.
    pub(super) new: Vec<Option<Vec<u8>>>,
}

/// Keeps every other host and thread from changing this Workspace; the lock goes with the file.
pub(super) fn lock(workspace: &Workspace, locks: &Path) -> Result<File, WorkspaceError> {
    let failed = |error: &io::Error| not_changed(Path::new("."), error);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(locks)
        .map_err(|error| failed(&error))?;
    let (device, inode) = identity(workspace).map_err(|errno| failed(&errno.into()))?;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(locks.join(format!("{device:x}-{inode:x}")))
        .map_err(|error| failed(&error))?;
    loop {
        match flock(&file, FlockOperation::LockExclusive) {
            Err(Errno::INTR) => {}
            Err(errno) => return Err(failed(&errno.into())),
            Ok(()) => return Ok(file),
        }
    }
}

/// Carries a plan out, or leaves everything as it was.
pub(super) fn carry_out(
    workspace: &Workspace,
    journal: &Path,
    mut work: Work,
) -> Result<Entry, WorkspaceError> {
    let here = Path::new(".");
    // By their bytes: paths that are two thousand folders deep are compared part by part otherwise.
    let mut named: HashSet<OsString> = HashSet::new();
    for step in work.plan.steps.iter().filter(|step| step.after.is_some()) {
        let missing = Target::missing_folders(workspace, &step.path)
            .map_err(|errno| not_changed(&step.path, &errno.into()))?;
        let new = missing
            .into_iter()
            .filter(|folder| named.insert(folder.as_os_str().to_owned()));
        work.plan.folders.extend(new);
    }
    let entry = Entry::create(journal).map_err(|error| not_changed(here, &error))?;
    let staged = entry
        .write(Stage::Staged, &work.plan)
        .map_err(|error| not_changed(here, &error))
        .and_then(|()| stage(workspace, &entry, &mut work));
    if let Err(error) = staged {
        clean(workspace, &work.plan);
        remove_folders(workspace, &work.plan);
        entry.remove();
        return Err(error);
    }
    if let Err(error) = forward(workspace, &work.plan) {
        // What cannot be taken back now is left to the next start, with all that it needs.
        if back(workspace, &entry, &work.plan).is_ok() {
            clean(workspace, &work.plan);
            remove_folders(workspace, &work.plan);
            entry.remove();
        }
        return Err(error);
    }
    // From here on the files are as planned. Should the record or the cleaning fail, the next start sees to it.
    if entry.advance(Stage::Planned, Stage::Done).is_ok() {
        clean(workspace, &work.plan);
    }
    Ok(entry)
}

/// Writes all that is needed before the first name is changed.
fn stage(workspace: &Workspace, entry: &Entry, work: &mut Work) -> Result<(), WorkspaceError> {
    let plan = &mut work.plan;
    for step in plan.steps.iter().filter(|step| step.after.is_some()) {
        Target::make_folders(workspace, &step.path)
            .map_err(|errno| not_changed(&step.path, &errno.into()))?;
    }
    for (index, step) in plan.steps.iter().enumerate() {
        let written = write_step(
            workspace,
            entry,
            index,
            step,
            &work.old[index],
            &work.new[index],
        );
        written.map_err(|error| not_changed(&step.path, &error))?;
    }
    entry
        .write(Stage::Planned, plan)
        .map_err(|error| not_changed(Path::new("."), &error))
}

fn write_step(
    workspace: &Workspace,
    entry: &Entry,
    index: usize,
    step: &Step,
    old: &Option<Vec<u8>>,
    new: &Option<Vec<u8>>,
) -> io::Result<()> {
    if let Some(old) = old {
        entry.keep(index, old)?;
    }
    if let (Some(new), Some(after)) = (new, &step.after) {
        failpoint::reach("write the new contents")?;
        let target = Target::open(workspace, &step.path)?;
        write_beside(&target, &step.temporary, new, after.mode)?;
    }
    Ok(())
}

/// Makes every step that is not made yet.
pub(super) fn forward(workspace: &Workspace, plan: &Plan) -> Result<(), WorkspaceError> {
    for step in &plan.steps {
        let target = open(workspace, step)?;
        if state(&target, step).map_err(|error| not_changed(&step.path, &error))? != State::After {
            change(&target, step)?;
        }
    }
    for step in &plan.steps {
        let synced = Target::open(workspace, &step.path).map_err(io::Error::from);
        synced
            .and_then(|target| target.sync_folder())
            .map_err(|error| not_changed(&step.path, &error))?;
    }
    Ok(())
}

fn open(workspace: &Workspace, step: &Step) -> Result<Target, WorkspaceError> {
    Target::open(workspace, &step.path).map_err(|errno| not_changed(&step.path, &errno.into()))
}

/// Changes one name.
fn change(target: &Target, step: &Step) -> Result<(), WorkspaceError> {
    let failed = |errno: Errno| not_changed(&step.path, &errno.into());
    failpoint::reach("change a name").map_err(|error| not_changed(&step.path, &error))?;
    let path = || step.shown();
    let stale = || {
        let now = target.stat().ok().flatten();
        WorkspaceError::Stale {
            path: path(),
            then: None,
            now: now.and_then(|stat| u64::try_from(stat.st_size).ok()),
        }
    };
    let (name, temporary) = (target.name.as_str(), step.temporary.as_str());
    let rename = |from: &str, to: &str, flags| {
        renameat_with(&target.folder, from, &target.folder, to, flags)
    };
    match (&step.before, &step.after) {
        (None, None) => Ok(()),
        (None, Some(_)) => match rename(temporary, name, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => Err(WorkspaceError::Exists { path: path() }),
            done => done.map_err(failed),
        },
        (Some(before), Some(_)) => match rename(temporary, name, RenameFlags::EXCHANGE) {
            Ok(()) if is_as_it_was(target, step, before)? => Ok(()),
            Ok(()) => {
                // It was changed at the last moment.
                rename(temporary, name, RenameFlags::EXCHANGE).map_err(failed)?;
                Err(stale())
            }
            Err(Errno::NOENT) => Err(stale()),
            // A file system that cannot exchange names.
            Err(Errno::INVAL | Errno::NOSYS) => {
                if !holds(target, name, &before.sha256) {
                    return Err(stale());
                }
                renameat(&target.folder, temporary, &target.folder, name).map_err(failed)
            }
            Err(errno) => Err(failed(errno)),
        },
        (Some(before), None) => match rename(name, temporary, RenameFlags::NOREPLACE) {
            Ok(()) if is_as_it_was(target, step, before)? => Ok(()),
            Ok(()) => {
                rename(temporary, name, RenameFlags::NOREPLACE).map_err(failed)?;
                Err(stale())
            }
            Err(Errno::NOENT) => Err(stale()),
            Err(errno) => Err(failed(errno)),
        },
    }
}

/// Whether what was just taken away is what the plan says.
fn is_as_it_was(target: &Target, step: &Step, before: &Version) -> Result<bool, WorkspaceError> {
    failpoint::reach("look at what was taken away")
        .map_err(|error| not_changed(&step.path, &error))?;
    Ok(holds(target, &step.temporary, &before.sha256))
}

/// Whether the temporary name of a step that is made holds neither version: somebody's own, which they wrote at the last moment, and which a
/// host took away and did not come to look at.
pub(super) fn holds_anothers(target: &Target, step: &Step) -> bool {
    let Some(before) = &step.before else {
        return false;
    };
    let is_there = statat(
        &target.folder,
        step.temporary.as_str(),
        AtFlags::SYMLINK_NOFOLLOW,
    );
    is_there.is_ok()
        && !holds(target, &step.temporary, &before.sha256)
        && !(step.after.as_ref()).is_some_and(|after| holds(target, &step.temporary, &after.sha256))
}

/// Takes back every step that is made, the last first. A file that somebody else has changed meanwhile is left as it is; the paths of
/// those are returned.
///
/// # Errors
///
/// A step could not be taken back though it was ours. The others were.
pub(super) fn back(workspace: &Workspace, entry: &Entry, plan: &Plan) -> io::Result<Vec<String>> {
    let mut left = Vec::new();
    let mut failure = None;
    for (index, step) in plan.steps.iter().enumerate().rev() {
        let taken = match Target::open(workspace, &step.path) {
            // With its folder the file is gone.
            Err(Errno::NOENT) => Ok(step.before.is_none()),
            Err(errno) => Err(errno.into()),
            Ok(target) => state(&target, step).and_then(|state| match state {
                State::Before => Ok(true),
                State::After if holds_anothers(&target, step) => {
                    let (name, temporary) = (target.name.as_str(), step.temporary.as_str());
                    renameat(&target.folder, temporary, &target.folder, name)?;
                    target.sync_folder().map(|()| false)
                }
                State::After => take_back(&target, entry, index, step).map(|()| true),
                State::Other => Ok(false),
            }),
        };
        match taken {
            Ok(true) => {}
            Ok(false) => left.push(step.shown()),
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(left), Err)
}

fn take_back(target: &Target, entry: &Entry, index: usize, step: &Step) -> io::Result<()> {
    failpoint::reach("change a name back")?;
    let (name, temporary) = (target.name.as_str(), step.temporary.as_str());
    let Some(before) = &step.before else {
        return Ok(unlinkat(&target.folder, name, AtFlags::empty())?);
    };
    if holds(target, temporary, &before.sha256) {
        renameat(&target.folder, temporary, &target.folder, name)?;
    } else {
        // Under a name of its own: what is under the other is whole, or somebody else's.
        let copy = copy_name(temporary);
        remove_beside(target, &copy)?;
        write_beside(target, &copy, &entry.kept(index)?, before.mode)?;
        renameat(&target.folder, copy.as_str(), &target.folder, name)?;
    }
    target.sync_folder()
}

/// Where the old contents are written once more, where they are needed.
fn copy_name(temporary: &str) -> String {
    format!("{temporary}.tmp")
}

/// Removes the temporary files of a plan.
pub(super) fn clean(workspace: &Workspace, plan: &Plan) {
    for step in &plan.steps {
        if let Ok(target) = Target::open(workspace, &step.path) {
            let _ = remove_beside(&target, &step.temporary);
            let _ = remove_beside(&target, &copy_name(&step.temporary));
        }
    }
}

/// Removes the folders that were made for a plan, where nothing is in them.
pub(super) fn remove_folders(workspace: &Workspace, plan: &Plan) {
    for folder in plan.folders.iter().rev() {
        if let Ok(target) = Target::open(workspace, folder) {
            let _ = unlinkat(&target.folder, target.name.as_str(), AtFlags::REMOVEDIR);
        }
    }
}

/// Which of its versions a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Before,
    After,
    Other,
}

pub(super) fn state(target: &Target, step: &Step) -> io::Result<State> {
    let now = match read_beside(target, &target.name) {
        Ok(now) => now.map(|(contents, _)| digest(&contents)),
        // A link or a folder has taken its place.
        Err(_) if target.stat()?.is_some() => return Ok(State::Other),
        Err(error) => return Err(error),
    };
    let is =
        |version: &Option<Version>| version.as_ref().map(|version| &version.sha256) == now.as_ref();
    Ok(match (is(&step.after), is(&step.before)) {
        (true, _) => State::After,
        (_, true) => State::Before,
        _ => State::Other,
    })
}

/// Whether the file of this name beside `target` has these contents.
pub(super) fn holds(target: &Target, name: &str, sha256: &str) -> bool {
    read_beside(target, name)
        .is_ok_and(|held| held.is_some_and(|(contents, _)| digest(&contents) == sha256))
}

pub(super) fn not_changed(path: &Path, error: &io::Error) -> WorkspaceError {
    WorkspaceError::NotChanged {
        path: path.to_string_lossy().into_owned(),
        errno: Errno::from_io_error(error).unwrap_or(Errno::IO),
    }
}
