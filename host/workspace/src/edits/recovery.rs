//! What a host that died left half done is finished, or undone where it cannot be finished.

use std::path::{Path, PathBuf};

use super::apply::{self, State};
use super::journal::{Entry, Plan, Stage, Step, identity};
use super::target::Target;
use crate::{Workspace, WorkspaceError};

/// What became of one unfinished transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// True where all of it was done, false where all of it was taken back.
    pub finished: bool,
    /// The files it is about, relative to the Workspace.
    pub paths: Vec<String>,
    /// Those among them that others have changed meanwhile; they were left as they are.
    pub left: Vec<String>,
}

pub(super) fn recover(
    workspace: &Workspace,
    locks: &Path,
    journals: &[PathBuf],
) -> Result<Vec<Recovered>, WorkspaceError> {
    let unfinished = |entry: &Entry| {
        entry
            .read()
            .filter(|(stage, _)| matches!(stage, Stage::Staged | Stage::Planned))
    };
    let entries = || journals.iter().flat_map(|journal| Entry::all(journal));
    if !entries().any(|entry| unfinished(&entry).is_some()) {
        return Ok(Vec::new());
    }
    let here =
        identity(workspace).map_err(|errno| apply::not_changed(Path::new("."), &errno.into()))?;
    // Whoever holds it is at work on what we would take for unfinished.
    let _lock = apply::lock(workspace, locks)?;
    let mut recovered = Vec::new();
    for entry in entries() {
        if let Some((stage, plan)) = unfinished(&entry)
            && plan.workspace == here
        {
            recovered.extend(recover_one(workspace, &entry, stage, &plan));
        }
    }
    Ok(recovered)
}

fn recover_one(
    workspace: &Workspace,
    entry: &Entry,
    stage: Stage,
    plan: &Plan,
) -> Option<Recovered> {
    let told = |finished, left| Recovered {
        finished,
        paths: plan.steps.iter().map(Step::shown).collect(),
        left,
    };
    if stage == Stage::Staged {
        // No name was changed.
        apply::clean(workspace, plan);
        apply::remove_folders(workspace, plan);
        entry.remove();
        return None;
    }
    let can_finish = plan.steps.iter().all(|step| can_be_made(workspace, step));
    if can_finish && apply::forward(workspace, plan).is_ok() {
        entry.advance(Stage::Planned, Stage::Done).ok()?;
        apply::clean(workspace, plan);
        return Some(told(true, Vec::new()));
    }
    let left = apply::back(workspace, entry, plan).ok()?;
    apply::clean(workspace, plan);
    apply::remove_folders(workspace, plan);
    entry.remove();
    Some(told(false, left))
}

/// Whether a step is made, or all that it needs is there.
fn can_be_made(workspace: &Workspace, step: &Step) -> bool {
    let Ok(target) = Target::open(workspace, &step.path) else {
        return false;
    };
    match apply::state(&target, step) {
        Ok(State::After) => !apply::holds_anothers(&target, step),
        Ok(State::Before) => step
            .after
            .as_ref()
            .is_none_or(|after| apply::holds(&target, &step.temporary, &after.sha256)),
        Ok(State::Other) | Err(_) => false,
    }
}
