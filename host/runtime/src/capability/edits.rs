//! `edits`: changes the Workspace, all of a transaction or nothing. A transaction that goes away uncommitted is abandoned.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;
use wasmtime::component::Resource;

use super::{Deny, Failure, Recorder, Refusal};
use crate::bindings::floe::tool::edits as wit;
pub use crate::bindings::floe::tool::edits::Change;
use crate::capability_set::Capability;
use crate::state::CallState;

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

impl CallState {
    fn transaction(
        &self,
        transaction: &Resource<TransactionHandle>,
    ) -> wasmtime::Result<Arc<Mutex<Box<dyn Transaction>>>> {
        Ok(self.table.get(transaction)?.0.clone())
    }
}

impl wit::Host for CallState {}

impl wit::HostTransaction for CallState {
    async fn begin(&mut self) -> wasmtime::Result<Result<Resource<TransactionHandle>, Failure>> {
        let edits = self.hosts.edits.clone();
        let begun = self.ask_host(async move { edits.begin().await }).await;
        self.keep(begun.map(|one| TransactionHandle(Arc::new(Mutex::new(one)))))
    }

    async fn stage_create(
        &mut self,
        transaction: Resource<TransactionHandle>,
        path: String,
        contents: Vec<u8>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let transaction = self.transaction(&transaction)?;
        Ok(self
            .ask_host(async move { transaction.lock().await.stage_create(&path, contents).await })
            .await)
    }

    async fn stage_replace(
        &mut self,
        transaction: Resource<TransactionHandle>,
        path: String,
        contents: Vec<u8>,
        expected_sha256: Option<String>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let transaction = self.transaction(&transaction)?;
        Ok(self
            .ask_host(async move {
                let mut transaction = transaction.lock().await;
                transaction
                    .stage_replace(&path, contents, expected_sha256)
                    .await
            })
            .await)
    }

    async fn stage_delete(
        &mut self,
        transaction: Resource<TransactionHandle>,
        path: String,
        expected_sha256: Option<String>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let transaction = self.transaction(&transaction)?;
        Ok(self
            .ask_host(async move {
                let mut transaction = transaction.lock().await;
                transaction.stage_delete(&path, expected_sha256).await
            })
            .await)
    }

    async fn stage_move(
        &mut self,
        transaction: Resource<TransactionHandle>,
        source: String,
        destination: String,
        expected_sha256: Option<String>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let transaction = self.transaction(&transaction)?;
        Ok(self
            .ask_host(async move {
                let mut transaction = transaction.lock().await;
                transaction
                    .stage_move(&source, &destination, expected_sha256)
                    .await
            })
            .await)
    }

    async fn preview(
        &mut self,
        transaction: Resource<TransactionHandle>,
    ) -> wasmtime::Result<Result<String, Failure>> {
        let transaction = self.transaction(&transaction)?;
        Ok(self
            .ask_host(async move { transaction.lock().await.preview().await })
            .await)
    }

    async fn commit(
        &mut self,
        transaction: Resource<TransactionHandle>,
    ) -> wasmtime::Result<Result<Vec<Change>, Vec<Failure>>> {
        let transaction = self.transaction(&transaction)?;
        let committed = self
            .ask_host_to_the_end(async move { Ok(transaction.lock().await.commit().await) })
            .await;
        Ok(committed.unwrap_or_else(|failure| Err(vec![failure])))
    }

    async fn drop(&mut self, transaction: Resource<TransactionHandle>) -> wasmtime::Result<()> {
        self.table.delete(transaction)?;
        Ok(())
    }
}

impl wit::Host for Deny {}

impl wit::HostTransaction for Deny {
    async fn begin(&mut self) -> wasmtime::Result<Result<Resource<TransactionHandle>, Failure>> {
        Ok(Err(Failure::denied(Capability::Edits)))
    }

    async fn stage_create(
        &mut self,
        _transaction: Resource<TransactionHandle>,
        _path: String,
        _contents: Vec<u8>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        Ok(Err(Failure::denied(Capability::Edits)))
    }

    async fn stage_replace(
        &mut self,
        _transaction: Resource<TransactionHandle>,
        _path: String,
        _contents: Vec<u8>,
        _expected_sha256: Option<String>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        Ok(Err(Failure::denied(Capability::Edits)))
    }

    async fn stage_delete(
        &mut self,
        _transaction: Resource<TransactionHandle>,
        _path: String,
        _expected_sha256: Option<String>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        Ok(Err(Failure::denied(Capability::Edits)))
    }

    async fn stage_move(
        &mut self,
        _transaction: Resource<TransactionHandle>,
        _source: String,
        _destination: String,
        _expected_sha256: Option<String>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        Ok(Err(Failure::denied(Capability::Edits)))
    }

    async fn preview(
        &mut self,
        _transaction: Resource<TransactionHandle>,
    ) -> wasmtime::Result<Result<String, Failure>> {
        Ok(Err(Failure::denied(Capability::Edits)))
    }

    async fn commit(
        &mut self,
        _transaction: Resource<TransactionHandle>,
    ) -> wasmtime::Result<Result<Vec<Change>, Vec<Failure>>> {
        Ok(Err(vec![Failure::denied(Capability::Edits)]))
    }

    async fn drop(&mut self, _transaction: Resource<TransactionHandle>) -> wasmtime::Result<()> {
        Ok(())
    }
}
