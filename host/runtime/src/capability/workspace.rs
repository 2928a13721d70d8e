//! `workspace`: reads the Workspace. Paths are the guest's; what may be read is the implementation's to decide.

mod binding;
mod opened;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::{Failure, Recorder, Refusal};
pub use crate::bindings::floe::tool::workspace::{
    BytesRange, Entry, EntryKind, FileBatch, FileSlice, WalkOptions,
};
use crate::capability_set::Capability;
pub use opened::OpenedWorkspace;

/// Reads files and folders of the Workspace. Runs on the host's runtime; a call of it may be dropped at any await.
#[async_trait]
pub trait Workspace: Send + Sync {
    /// What one path is.
    async fn stat(&self, path: &str) -> Result<Entry, Failure>;

    /// The entries of one folder, by name.
    async fn list_directory(&self, path: &str) -> Result<Vec<Entry>, Failure>;

    /// Part of a file: at most `length` bytes from `offset`.
    async fn read_range(&self, path: &str, offset: u64, length: u32)
    -> Result<BytesRange, Failure>;

    /// Many whole files, up to `max_bytes` in all; the answer may hold fewer files than were asked for.
    async fn read_batch(&self, paths: &[String], max_bytes: u32) -> Result<FileBatch, Failure>;

    /// Starts a walk.
    async fn open_walk(&self, options: WalkOptions) -> Result<Box<dyn Walk>, Failure>;
}

/// A walk under way.
#[async_trait]
pub trait Walk: Send {
    /// The next entries, at most `max`; empty at the end.
    async fn next_entries(&mut self, max: u32) -> Result<Vec<Entry>, Failure>;

    /// The next files with their contents, about `max_bytes` at a time; no files at the end.
    async fn next_files(&mut self, max_bytes: u32) -> Result<FileBatch, Failure>;

    /// The same where they are ready and nobody needs to wait for them; none where they are not.
    fn ready_files(&mut self) -> Option<Result<FileBatch, Failure>> {
        None
    }
}

/// A guest's handle of a walk.
pub struct WalkHandle(Arc<Mutex<Box<dyn Walk>>>);

#[async_trait]
impl<R: Refusal> Workspace for R {
    async fn stat(&self, _path: &str) -> Result<Entry, Failure> {
        Err(self.refuse(Capability::Workspace))
    }

    async fn list_directory(&self, _path: &str) -> Result<Vec<Entry>, Failure> {
        Err(self.refuse(Capability::Workspace))
    }

    async fn read_range(
        &self,
        _path: &str,
        _offset: u64,
        _length: u32,
    ) -> Result<BytesRange, Failure> {
        Err(self.refuse(Capability::Workspace))
    }

    async fn read_batch(&self, _paths: &[String], _max_bytes: u32) -> Result<FileBatch, Failure> {
        Err(self.refuse(Capability::Workspace))
    }

    async fn open_walk(&self, _options: WalkOptions) -> Result<Box<dyn Walk>, Failure> {
        Err(self.refuse(Capability::Workspace))
    }
}

/// A Workspace of one text, for tests: every path is a file that holds it.
#[derive(Clone, Debug, Default)]
pub struct RecordingWorkspace {
    /// What was asked.
    pub requests: Recorder,
    /// What every file holds.
    pub contents: Vec<u8>,
}

impl RecordingWorkspace {
    fn entry(&self, path: &str) -> Entry {
        Entry {
            path: path.to_owned(),
            kind: EntryKind::File,
            size: self.contents.len() as u64,
            modified_ms: None,
        }
    }
}

#[async_trait]
impl Workspace for RecordingWorkspace {
    async fn stat(&self, path: &str) -> Result<Entry, Failure> {
        self.requests.record(format!("stat {path}"));
        Ok(self.entry(path))
    }

    async fn list_directory(&self, path: &str) -> Result<Vec<Entry>, Failure> {
        self.requests.record(format!("list-directory {path}"));
        Ok(vec![self.entry("a.txt")])
    }

    async fn read_range(
        &self,
        path: &str,
        offset: u64,
        length: u32,
    ) -> Result<BytesRange, Failure> {
        self.requests
            .record(format!("read-range {path} {offset} {length}"));
        let data = self.contents.iter().copied();
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        Ok(BytesRange {
            data: data.skip(skip).take(length as usize).collect(),
            offset,
            total_size: self.contents.len() as u64,
        })
    }

    async fn read_batch(&self, paths: &[String], max_bytes: u32) -> Result<FileBatch, Failure> {
        self.requests
            .record(format!("read-batch {} {max_bytes}", paths.join(",")));
        Ok(FileBatch {
            data: Vec::new(),
            files: Vec::new(),
        })
    }

    async fn open_walk(&self, options: WalkOptions) -> Result<Box<dyn Walk>, Failure> {
        self.requests.record(format!("walk.open {}", options.root));
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl Walk for RecordingWorkspace {
    async fn next_entries(&mut self, max: u32) -> Result<Vec<Entry>, Failure> {
        self.requests.record(format!("walk.next-entries {max}"));
        Ok(Vec::new())
    }

    async fn next_files(&mut self, max_bytes: u32) -> Result<FileBatch, Failure> {
        self.requests.record(format!("walk.next-files {max_bytes}"));
        Ok(FileBatch {
            data: Vec::new(),
            files: Vec::new(),
        })
    }
}
