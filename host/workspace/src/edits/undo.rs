//! Takes the last transaction of a Workspace back, as a transaction of its own.

use std::path::{Path, PathBuf};

use super::apply::{self, State, Work};
use super::contents::Version;
use super::journal::{Entry, Plan, Stage, Step, identity, now_ms};
use super::target::Target;
use crate::{Workspace, WorkspaceError};

/// A transaction that was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// When it had been made, in milliseconds since 1970.
    pub made_ms: u64,
    /// The files that are again as they were before it, relative to the Workspace.
    pub paths: Vec<String>,
}

/// Takes back the last transaction of this Workspace, by whichever of the journals it was made. None where there is none.
///
/// # Errors
///
/// A file has changed since ([`WorkspaceError::Stale`]): then nothing is taken back.
pub fn undo(
    workspace: &Workspace,
    locks: &Path,
    journals: &[PathBuf],
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
    let work = reversed(workspace, &entry, &plan)?;
    let made = apply::carry_out(workspace, journal, work)?;
    // Taking back is not itself taken back.
    made.remove();
    let failed = |error| apply::not_changed(Path::new("."), &error);
    entry.advance(Stage::Done, Stage::Undone).map_err(failed)?;
    apply::remove_folders(workspace, &plan);
    Ok(Some(Undone {
        made_ms: plan.made_ms,
        paths: plan
            .steps
            .iter()
            .map(|step| step.path.to_string_lossy().into_owned())
            .collect(),
    }))
}

/// The steps back, the last first.
fn reversed(workspace: &Workspace, entry: &Entry, plan: &Plan) -> Result<Work, WorkspaceError> {
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
    for (index, step) in plan.steps.iter().enumerate().rev() {
        let failed = |error: std::io::Error| apply::not_changed(&step.path, &error);
        let stale = |now| WorkspaceError::Stale {
            path: step.path.to_string_lossy().into_owned(),
            then: None,
            now,
        };
        let old = match Target::open(workspace, &step.path) {
            Ok(target) => {
                if apply::state(&target, step).map_err(failed)? != State::After {
                    let stat = target.file()?;
                    return Err(stale(
                        stat.and_then(|stat| u64::try_from(stat.st_size).ok()),
                    ));
                }
                super::contents::read(&target)?
            }
            // With its folder the file is gone too.
            Err(rustix::io::Errno::NOENT) if step.after.is_none() => None,
            Err(_) => return Err(stale(None)),
        };
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
    Ok(work)
}
