//! A path of the host in a view: whether a command has it there, and how it is put there for one that does not.

use std::path::{Path, PathBuf};

use crate::plan::{Access, Entry};
use crate::view::{held, uppermost_in_tmp};

/// Whether a command with this view has a path of the host, canonical and outside the Workspace, at the same path.
pub(crate) fn has(entries: &[Entry], path: &Path, access: Access) -> bool {
    let mut has = false;
    for entry in entries {
        let (target, shows) = match entry {
            Entry::Bind {
                source,
                target,
                access: given,
            } => (
                target,
                source == target && (access == Access::Read || *given == Access::Write),
            ),
            Entry::Mask { target } | Entry::Memory { target, .. } | Entry::Folder { target } => {
                (target, false)
            }
            Entry::Link { .. }
            | Entry::Devices { .. }
            | Entry::Proc
            | Entry::Workspace { .. }
            | Entry::WorkspaceAlias { .. } => continue,
        };
        if path.starts_with(target.as_path()) {
            has = shows;
        }
    }
    has
}

/// Puts a path of the host into a view, at the same path: in front of what lies below it, which stays as it is, and behind
/// what it lies in.
pub(crate) fn widen(entries: &mut Vec<Entry>, path: &Path, access: Access, workspace: &Path) {
    let target = |entry: &Entry| match entry {
        Entry::Folder { target }
        | Entry::Link { target, .. }
        | Entry::Bind { target, .. }
        | Entry::Mask { target }
        | Entry::Memory { target, .. }
        | Entry::WorkspaceAlias { target } => target.as_path().to_owned(),
        Entry::Devices { .. } => PathBuf::from("/dev"),
        Entry::Proc => PathBuf::from("/proc"),
        Entry::Workspace { .. } => workspace.to_owned(),
    };
    let targets: Vec<PathBuf> = entries.iter().map(target).collect();
    let holder = targets.iter().rposition(|target| path.starts_with(target));
    let below = |target: &PathBuf| target.starts_with(path) && target != path;
    let before = targets.iter().position(below).unwrap_or(entries.len());
    let place = holder.map_or(before, |holder| before.max(holder + 1));
    let bind = Entry::Bind {
        source: path.into(),
        target: path.into(),
        access,
    };
    entries.insert(place, bind);
    // In the private /tmp the folders on the way are this command's own.
    if let Some(first) = uppermost_in_tmp(path)
        && !targets.contains(&first)
    {
        entries.insert(place, held(&first));
    }
}
