//! Connects a guest's `edits` to the call's host, or to `Deny`.

use std::sync::Arc;

use tokio::sync::Mutex;
use wasmtime::component::Resource;

use super::{Change, Transaction, TransactionHandle};
use crate::bindings::floe::tool::edits as wit;
use crate::capability::{Deny, Failure};
use crate::capability_set::Capability;
use crate::state::CallState;

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
