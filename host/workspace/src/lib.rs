//! The one directory tree that a Session may touch: opened once, then addressed by paths relative to it.
//!
//! Invariants. Every access starts at the descriptor that was opened first and goes through `openat2` with
//! `RESOLVE_BENEATH`, so that the kernel, and never a comparison of strings, decides what is inside. A [`RelativePath`]
//! cannot hold `..`, NUL or a leading `/`. A FIFO, a socket or a device is never opened for real. A [`WorkspaceError`]
//! names paths as the tools see them and no path of the host; what only the person at the command line sees is an
//! [`OpenError`], which does name them.
//!
//! What this crate cannot know: a hard link to a file outside looks like any file inside.

mod edits;
mod entry;
mod error;
#[cfg(test)]
mod fixture;
mod hidden;
mod links;
mod listing;
mod location;
mod near;
mod open;
mod place;
mod reading;
mod relative_path;
mod root;
mod walk;

pub use edits::{
    Action, Change, ChangedSince, Editor, EditorOptions, MAX_EDITED, Recovered, Seen, Transaction,
    Undone, undo,
};
pub use entry::{Entry, Kind};
pub use error::{OpenError, WorkspaceError};
pub use listing::{Listing, MAX_LISTED};
pub use location::check_location;
pub use place::GUEST_ROOT;
pub use reading::{BytesRange, FileBatch, FileSlice, MAX_READ, OpenedFile};
pub use relative_path::RelativePath;
pub use root::Workspace;
pub use walk::{LetsWalk, SKIPPED, Walk, WalkOptions};
