//! Takes the last transaction of a Workspace back, as a transaction of its own.

use std::path::{Path, PathBuf};

use super::apply::{self, State, Work};
use super::contents::Version;
use super::journal::{Entry, Plan, Stage, Step, identity, now_ms};
use super::target::Target;
use crate::{Workspace, WorkspaceError};

/// What becomes of files that have changed since the transaction that is to be taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangedSince {
    /// One of them keeps all of it from being taken back.
    #[default]
    Refuse,
    /// They stay as they are; the others are taken back.
    Keep,
}

/// A transaction that was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// When it had been made, in milliseconds since 1970.
    pub made_ms: u64,
    /// The files that are again as they were before it, relative to the Workspace.
    pub paths: Vec<String>,
    /// The files that have changed since and were kept as they are.
    pub kept: Vec<String>,
}

/// Takes back the last transaction of this Workspace, by whichever of the journals it was made. None where there is none.
///
/// # Errors
///
/// A file has changed since ([`WorkspaceError::Stale`]) and is not to be kept: then nothing is taken back.
pub fn undo(
    workspace: &Workspace,
    locks: &Path,
    journals: &[PathBuf],
    changed_since: ChangedSince,
) -> Result<Option<Undone>, WorkspaceError> {
    let _lock = apply::lock(workspace, locks)?;
    let here =
        identity(workspace).map_err(|errno| apply::not_changed(Path::new("."), &errno.into()))?;
    let mut entries: Vec<(Entry, &PathBuf)> = journals
        .iter()
        .flat_map(|journal| {
            Entry::all(journal)
                .into_iter()
                .map(move |entry| (entry, journal))
        })
        .collect();
    entries.sort_by(|(one, _), (other, _)| one.name().cmp(other.name()));
    let last = entries.into_iter().rev().find_map(|(entry, journal)| {
        let (stage, plan) = entry.read()?;
        (stage == Stage::Done && plan.workspace == here).then_some((entry, journal, plan))
    });
    let Some((entry, journal, plan)) = last else {
        return Ok(None);
    };
    let (work, kept) = reversed(workspace, &entry, &plan, changed_since)?;
    if !work.plan.steps.is_empty() {
        let made = apply::carry_out(workspace, journal, work)?;
        // Taking back is not itself taken back.
        made.remove();
    }
    let failed = |error| apply::not_changed(Path::new("."), &error);
    entry.advance(Stage::Done, Stage::Undone).map_err(failed)?;
    apply::remove_folders(workspace, &plan);
    let paths = plan.steps.iter().map(Step::shown);
    Ok(Some(Undone {
        made_ms: plan.made_ms,
        paths: paths.filter(|path| !kept.contains(path)).collect(),
        kept,
    }))
}

/// The steps back, the last first, and the files that are kept.
fn reversed(
    workspace: &Workspace,
    entry: &Entry,
    plan: &Plan,
    changed_since: ChangedSince,
) -> Result<(Work, Vec<String>), WorkspaceError> {
    let mut work = Work {
        plan: Plan {
            workspace: plan.workspace,
            made_ms: now_ms(),
            folders: Vec::new(),
            steps: Vec::new(),
        },
        old: Vec::new(),
        new: Vec::new(),
    };
    let mut kept = Vec::new();
    for (index, step) in plan.steps.iter().enumerate().rev() {
        let failed = |error: std::io::Error| apply::not_changed(&step.path, &error);
        let old = match (as_it_was_left(workspace, step), changed_since) {
            (Err(WorkspaceError::Stale { .. }), ChangedSince::Keep) => {
                kept.push(step.shown());
                continue;
            }
            (old, _) => old?,
        };
        // Somebody has taken this one back already.
        let Some(old) = old else { continue };
        let new = match &step.before {
            Some(_) => Some(entry.kept(index).map_err(failed)?),
            None => None,
        };
        work.plan.steps.push(Step {
            path: step.path.clone(),
            before: step.after.clone().map(|after| Version {
                mode: old.as_ref().map(|(_, mode)| *mode),
                ..after
            }),
            after: step.before.clone(),
            temporary: step.temporary.clone(),
        });
        work.old.push(old.map(|(contents, _)| contents));
        work.new.push(new);
    }
    kept.reverse();
    Ok((work, kept))
}

/// Contents and permission bits of a file, or that there is none.
type Contents = Option<(Vec<u8>, u32)>;

/// What a file holds, which must be what the step made of it; none where it is again what it was before.
fn as_it_was_left(workspace: &Workspace, step: &Step) -> Result<Option<Contents>, WorkspaceError> {
    let stale = |now| WorkspaceError::Stale {
        path: step.shown(),
        then: None,
        now,
    };
    let target = match Target::open(workspace, &step.path) {
        Ok(target) => target,
        // With its folder the file is gone too.
        Err(rustix::io::Errno::NOENT) if step.after.is_none() => return Ok(Some(None)),
        Err(rustix::io::Errno::NOENT) if step.before.is_none() => return Ok(None),
        Err(_) => return Err(stale(None)),
    };
    match apply::state(&target, step) {
        Ok(State::After) => super::contents::read(&target).map(Some),
        Ok(State::Before) => Ok(None),
        Ok(State::Other) => {
            let size = target.stat().ok().flatten().map(|stat| stat.st_size);
            Err(stale(size.and_then(|size| u64::try_from(size).ok())))
        }
        Err(error) => Err(apply::not_changed(&step.path, &error)),
    }
}
