//! `edits`: changes the Workspace, all of a transaction or nothing. A transaction that goes away uncommitted is abandoned.

mod binding;
mod opened;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::{Failure, Recorder, Refusal};
pub use crate::bindings::floe::tool::edits::Change;
use crate::capability_set::Capability;
pub use opened::OpenedEdits;

/// Begins transactions. Runs on the host's runtime.
#[async_trait]
pub trait Edits: Send + Sync {
    /// Begins one.
    async fn begin(&self) -> Result<Box<dyn Transaction>, Failure>;
}

/// Changes that are staged and then committed together. Dropping it abandons them.
#[async_trait]
pub trait Transaction: Send {
    /// Stages a new file.
    async fn stage_create(&mut self, path: &str, contents: Vec<u8>) -> Result<(), Failure>;

    /// Stages new contents of a file; a digest other than the expected one is a `conflict`.
    async fn stage_replace(
        &mut self,
        path: &str,
        contents: Vec<u8>,
        expected_sha256: Option<String>,
    ) -> Result<(), Failure>;

    /// Stages a removal.
    async fn stage_delete(
        &mut self,
        path: &str,
        expected_sha256: Option<String>,
    ) -> Result<(), Failure>;

    /// Stages a move.
    async fn stage_move(
        &mut self,
        source: &str,
        destination: &str,
        expected_sha256: Option<String>,
    ) -> Result<(), Failure>;

    /// A unified diff of what is staged.
    async fn preview(&mut self) -> Result<String, Failure>;

    /// Does all of it, or nothing and says what stood in the way. Runs to its end once begun.
    async fn commit(&mut self) -> Result<Vec<Change>, Vec<Failure>>;
}

/// A guest's handle of a transaction.
pub struct TransactionHandle(Arc<Mutex<Box<dyn Transaction>>>);

#[async_trait]
impl<R: Refusal> Edits for R {
    async fn begin(&self) -> Result<Box<dyn Transaction>, Failure> {
        Err(self.refuse(Capability::Edits))
    }
}

/// Accepts every change and makes none, for tests.
#[derive(Clone, Debug, Default)]
pub struct RecordingEdits {
    /// What was asked.
    pub requests: Recorder,
}

#[async_trait]
impl Edits for RecordingEdits {
    async fn begin(&self) -> Result<Box<dyn Transaction>, Failure> {
        self.requests.record("begin");
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl Transaction for RecordingEdits {
    async fn stage_create(&mut self, path: &str, contents: Vec<u8>) -> Result<(), Failure> {
        self.requests
            .record(format!("stage-create {path} {}", contents.len()));
        Ok(())
    }

    async fn stage_replace(
        &mut self,
        path: &str,
        contents: Vec<u8>,
        _expected_sha256: Option<String>,
    ) -> Result<(), Failure> {
        self.requests
            .record(format!("stage-replace {path} {}", contents.len()));
        Ok(())
    }

    async fn stage_delete(
        &mut self,
        path: &str,
        _expected_sha256: Option<String>,
    ) -> Result<(), Failure> {
        self.requests.record(format!("stage-delete {path}"));
        Ok(())
    }

    async fn stage_move(
        &mut self,
        source: &str,
        destination: &str,
        _expected_sha256: Option<String>,
    ) -> Result<(), Failure> {
        self.requests
            .record(format!("stage-move {source} {destination}"));
        Ok(())
    }

    async fn preview(&mut self) -> Result<String, Failure> {
        self.requests.record("preview");
        Ok(String::new())
    }

    async fn commit(&mut self) -> Result<Vec<Change>, Vec<Failure>> {
        self.requests.record("commit");
        Ok(Vec::new())
    }
}
