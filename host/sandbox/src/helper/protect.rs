//! The Workspace's protected and hidden paths.
//!
//! A read-only leaf alone is not enough: whoever may rename a folder above it can put another one in its place, or find
//! a hidden file under a name that the next command's walls do not know. So every folder between the Workspace and such a
//! path becomes a mount point of its own, which the kernel refuses to rename or remove. Nothing is ever created in the Workspace: what is not there cannot be protected this way.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::detached::{Depth, READ, attach, clone_tree, set_attributes};
use super::mounts::Tree;
use super::{failed, stands};
use crate::error::SandboxError;
use crate::layer::{Layer, LayerName};
use crate::plan::{Bytes, Confined};

/// Protects and hides what the plan lists, in the Workspace as it lies in the new root.
pub(super) fn protect(tree: &Tree<'_>, plan: &Confined) -> Result<Layer, SandboxError> {
    let workspace = tree
        .open(plan.workspace.as_path())
        .map_err(failed(LayerName::ProtectedPaths, "open(the Workspace)"))?;
    let pinned = hold(&workspace, &plan.protected, &plan.denied)?;
    for path in &plan.denied {
        change(&workspace, path.as_path(), |found| tree.cover(found))?;
    }
    let detail = format!(
        "{} read-only, {pinned} pinned, {} hidden",
        plan.protected.len(),
        plan.denied.len()
    );
    Ok(stands(LayerName::ProtectedPaths, detail))
}

/// Makes what is protected read-only, and every folder above it, or above what is denied, a mount of its own; how many
/// these are.
pub(super) fn hold(
    workspace: &OwnedFd,
    protected: &[Bytes],
    denied: &[Bytes],
) -> Result<usize, SandboxError> {
    let leaves: BTreeSet<&Path> = protected.iter().map(Bytes::as_path).collect();
    let pins: BTreeSet<&Path> = leaves
        .iter()
        .copied()
        .chain(denied.iter().map(Bytes::as_path))
        .flat_map(|path| path.ancestors().skip(1))
        .filter(|above| !above.as_os_str().is_empty())
        .collect();
    // Ordered by path, so that a folder is pinned before what lies below it.
    for path in &pins {
        change(workspace, path, |found| {
            attach(clone_tree(found, "")?, found, c"")
        })?;
    }
    for path in &leaves {
        change(workspace, path, |found| {
            let clone = clone_tree(found, "")?;
            set_attributes(&clone, READ, Depth::Recursive)?;
            attach(&clone, found, c"")
        })?;
    }
    Ok(pins.len())
}

/// Opens a path of the Workspace without following links and changes what is mounted there. What has gone since the host
/// looked needs no protection.
fn change(
    workspace: &OwnedFd,
    path: &Path,
    mount: impl FnOnce(&OwnedFd) -> rustix::io::Result<()>,
) -> Result<(), SandboxError> {
    let found = rustix::io::retry_on_intr(|| {
        rustix::fs::openat2(
            workspace,
            path,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        )
    });
    let result = match found {
        Ok(found) => mount(&found),
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    };
    result.map_err(|errno| {
        failed(
            LayerName::ProtectedPaths,
            format!("mount on {}", path.display()),
        )(errno)
    })
}
