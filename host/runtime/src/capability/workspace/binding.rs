//! Connects a guest's `workspace` to the call's host, or to `Deny`.

use std::sync::Arc;

use tokio::sync::Mutex;
use wasmtime::component::Resource;

use super::{BytesRange, Entry, FileBatch, WalkHandle, WalkOptions};
use crate::bindings::floe::tool::workspace as wit;
use crate::capability::{Deny, Failure};
use crate::capability_set::Capability;
use crate::state::CallState;

impl wit::Host for CallState {
    async fn stat(&mut self, path: String) -> wasmtime::Result<Result<Entry, Failure>> {
        let workspace = self.hosts.workspace.clone();
        Ok(self
            .ask_host(async move { workspace.stat(&path).await })
            .await)
    }

    async fn list_directory(
        &mut self,
        path: String,
    ) -> wasmtime::Result<Result<Vec<Entry>, Failure>> {
        let workspace = self.hosts.workspace.clone();
        Ok(self
            .ask_host(async move { workspace.list_directory(&path).await })
            .await)
    }

    async fn read_range(
        &mut self,
        path: String,
        offset: u64,
        length: u32,
    ) -> wasmtime::Result<Result<BytesRange, Failure>> {
        let workspace = self.hosts.workspace.clone();
        Ok(self
            .ask_host(async move { workspace.read_range(&path, offset, length).await })
            .await)
    }

    async fn read_batch(
        &mut self,
        paths: Vec<String>,
        max_bytes: u32,
    ) -> wasmtime::Result<Result<FileBatch, Failure>> {
        let workspace = self.hosts.workspace.clone();
        Ok(self
            .ask_host(async move { workspace.read_batch(&paths, max_bytes).await })
            .await)
    }
}

impl wit::HostWalk for CallState {
    async fn open(
        &mut self,
        options: WalkOptions,
    ) -> wasmtime::Result<Result<Resource<WalkHandle>, Failure>> {
        let workspace = self.hosts.workspace.clone();
        let opened = self
            .ask_host(async move { workspace.open_walk(options).await })
            .await;
        self.keep(opened.map(|walk| WalkHandle(Arc::new(Mutex::new(walk)))))
    }

    async fn next_entries(
        &mut self,
        walk: Resource<WalkHandle>,
        max: u32,
    ) -> wasmtime::Result<Result<Vec<Entry>, Failure>> {
        let walk = self.table.get(&walk)?.0.clone();
        Ok(self
            .ask_host(async move { walk.lock().await.next_entries(max).await })
            .await)
    }

    async fn next_files(
        &mut self,
        walk: Resource<WalkHandle>,
        max_bytes: u32,
    ) -> wasmtime::Result<Result<FileBatch, Failure>> {
        let walk = self.table.get(&walk)?.0.clone();
        // What is ready is had at once: the way to the host's threads and back would take longer than to search it.
        if !self.record.is_over()
            && let Ok(mut walk) = walk.try_lock()
            && let Some(ready) = walk.ready_files()
        {
            return Ok(ready);
        }
        Ok(self
            .ask_host(async move { walk.lock().await.next_files(max_bytes).await })
            .await)
    }

    async fn drop(&mut self, walk: Resource<WalkHandle>) -> wasmtime::Result<()> {
        self.table.delete(walk)?;
        Ok(())
    }
}

impl wit::Host for Deny {
    async fn stat(&mut self, _path: String) -> wasmtime::Result<Result<Entry, Failure>> {
        Ok(Err(Failure::denied(Capability::Workspace)))
    }

    async fn list_directory(
        &mut self,
        _path: String,
    ) -> wasmtime::Result<Result<Vec<Entry>, Failure>> {
        Ok(Err(Failure::denied(Capability::Workspace)))
    }

    async fn read_range(
        &mut self,
        _path: String,
        _offset: u64,
        _length: u32,
    ) -> wasmtime::Result<Result<BytesRange, Failure>> {
        Ok(Err(Failure::denied(Capability::Workspace)))
    }

    async fn read_batch(
        &mut self,
        _paths: Vec<String>,
        _max_bytes: u32,
    ) -> wasmtime::Result<Result<FileBatch, Failure>> {
        Ok(Err(Failure::denied(Capability::Workspace)))
    }
}

impl wit::HostWalk for Deny {
    async fn open(
        &mut self,
        _options: WalkOptions,
    ) -> wasmtime::Result<Result<Resource<WalkHandle>, Failure>> {
        Ok(Err(Failure::denied(Capability::Workspace)))
    }

    async fn next_entries(
        &mut self,
        _walk: Resource<WalkHandle>,
        _max: u32,
    ) -> wasmtime::Result<Result<Vec<Entry>, Failure>> {
        Ok(Err(Failure::denied(Capability::Workspace)))
    }

    async fn next_files(
        &mut self,
        _walk: Resource<WalkHandle>,
        _max_bytes: u32,
    ) -> wasmtime::Result<Result<FileBatch, Failure>> {
        Ok(Err(Failure::denied(Capability::Workspace)))
    }

    async fn drop(&mut self, _walk: Resource<WalkHandle>) -> wasmtime::Result<()> {
        Ok(())
    }
}
