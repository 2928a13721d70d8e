//! Walks: what lies below a folder, in order, with or without the files' contents.
//!
//! Order is that of the paths, part by part and by bytes, a folder right before what it holds. Links are told and never
//! followed, folders are entered and files opened from the descriptor of the folder above by their name alone, so a walk cannot be led out
//! however the tree changes meanwhile. What is no regular file is never opened. A name that is not UTF-8 is left out, since no tool
//! could open it; so are the temporary files of an edit under way.

mod ahead;
mod ignored;
mod selection;
mod visit;

use crate::{Entry, FileBatch, Workspace, WorkspaceError};

pub use self::ahead::{LetsWalk, Walk};

/// Folders that are left out at any depth below the start, unless the walk ignores nothing (spec/coding-tools.md 1.2).
pub const SKIPPED: [&str; 7] = [
    ".git",
    "node_modules",
    "target",
    ".next",
    "dist",
    "build",
    ".cache",
];

/// What a walk visits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalkOptions {
    /// Where to start; empty for the root. A file is a walk of one file.
    pub root: String,
    /// Globs over the path below the start; files and links that match none are left out. Empty for all. `*` and `?` do not cross `/`.
    pub include: Vec<String>,
    /// Globs over the path below the start that leave out what they match, folders with all they hold.
    pub exclude: Vec<String>,
    /// Follow `.gitignore`, `.ignore`, `.git/info/exclude` and [`SKIPPED`]. The start itself is never left out.
    pub respect_ignore: bool,
    /// Visit names that start with a dot.
    pub hidden: bool,
    /// Folders below the start; none for no limit. 1 is the start's own entries.
    pub max_depth: Option<u32>,
    /// Bytes; larger files come as a failure.
    pub max_file_size: Option<u64>,
    /// With contents, only files that hold one of these. Empty for all.
    pub containing: Vec<Vec<u8>>,
}

impl Workspace {
    /// Starts a walk.
    ///
    /// # Errors
    ///
    /// The start is outside or not there, or a glob cannot be read.
    pub fn walk(&self, options: WalkOptions) -> Result<Walk, WorkspaceError> {
        let selection = selection::Selection::new(&options)?;
        let start = match options.root.as_str() {
            "" => ".",
            path => path,
        };
        self.stat(start)?;
        Ok(Walk::new(
            self.clone(),
            start.to_owned(),
            options,
            selection,
        ))
    }
}

/// What a walk hands over at a time.
#[derive(Debug)]
enum Portion {
    Entries(Vec<Entry>),
    Files(FileBatch),
    /// Nothing comes any more.
    End,
}

impl Portion {
    /// Bytes of contents.
    fn bytes(&self) -> usize {
        match self {
            Portion::Files(batch) => batch.data.len(),
            Portion::Entries(_) | Portion::End => 0,
        }
    }
}

#[cfg(test)]
mod tests;
