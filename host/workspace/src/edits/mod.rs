//! Changes of the Workspace: all of a transaction or nothing, whatever fails and whenever the host dies.
//!
//! How. Every change is a [`Step`](journal::Step) from one version of a file to another, where either may be none. The new contents are
//! written to temporary files beside their targets, the old ones are copied to the journal, then the plan of all steps
//! becomes durable; only now are names changed, each by one rename that the next start can recognise as done or not.
//! Exchanging the two names, rather than replacing one, shows what was really replaced, so that a file that somebody changed at the very
//! last moment is put back and the transaction undone. A plan that is found unfinished is finished, or undone where a file is neither as
//! it was nor as it was to become.
//!
//! What may never happen: a link that is replaced by a file, a write through a link that leads out, a protected or hidden path that is
//! changed, a file that is lost.

mod apply;
mod contents;
mod diff;
#[cfg(test)]
mod failpoint;
mod journal;
mod recovery;
mod seen;
mod target;
mod transaction;
mod undo;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub use self::recovery::Recovered;
pub use self::seen::Seen;
pub use self::transaction::{Action, Change, Transaction};
pub use self::undo::{ChangedSince, Undone, undo};

use crate::{Workspace, WorkspaceError};

#[cfg(not(test))]
mod failpoint {
    //! In tests the host can fail or die here.
    pub(super) fn reach(_: &str) -> std::io::Result<()> {
        Ok(())
    }
}

/// Whether a name is that of a file that an edit under way needs.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    name.starts_with(b".floe-") && name.ends_with(b".tmp")
}

/// The most bytes that one file may hold before or after a change.
pub const MAX_EDITED: u64 = 64 * 1024 * 1024;

/// The most bytes that the transactions of one Session hold together, old and new contents both; each file counts for a few more.
const MAX_HELD: u64 = 256 * 1024 * 1024;

/// Where a Session keeps what its transactions need.
#[derive(Clone)]
pub struct EditorOptions {
    /// The Session's journal, made when it is needed.
    pub journal: PathBuf,
    /// The folder of the locks that all hosts of this person share, made when it is needed.
    pub locks: PathBuf,
    /// Says of a path relative to the Workspace, links followed, that it may not be changed.
    pub protects: Arc<dyn Fn(&Path) -> bool + Send + Sync>,
}

impl fmt::Debug for EditorOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EditorOptions")
            .field("journal", &self.journal)
            .field("locks", &self.locks)
            .finish_non_exhaustive()
    }
}

/// Begins the transactions of one Session. All calls may block.
#[derive(Clone, Debug)]
pub struct Editor {
    workspace: Workspace,
    options: EditorOptions,
    /// What its transactions hold in memory now, in bytes.
    held: Arc<AtomicU64>,
}

impl Editor {
    /// Nothing is made before the first commit. What `workspace` remembers of its reads ([`Workspace::with_seen`]) is what an edit is checked
    /// against.
    pub fn new(workspace: Workspace, options: EditorOptions) -> Editor {
        Editor {
            workspace,
            options,
            held: Arc::default(),
        }
    }

    /// Begins one.
    pub fn begin(&self) -> Transaction {
        Transaction::new(self.workspace.clone(), self.options.clone(), &self.held)
    }

    /// Finishes or undoes what hosts that died left half done in this Workspace, by the journals of their Sessions.
    ///
    /// # Errors
    ///
    /// The lock cannot be had; what fails in one journal is told in its [`Recovered`].
    pub fn recover(&self, journals: &[PathBuf]) -> Result<Vec<Recovered>, WorkspaceError> {
        recovery::recover(&self.workspace, &self.options.locks, journals)
    }
}

#[cfg(test)]
mod tests;
