//! What a Store holds: the guest's resources, its bare WASI, and the way to the host. Nothing outlives the call.

use std::future::Future;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpView};

use crate::call::Raised;
use crate::capability::cancellation::CallCancellation;
use crate::capability::{Deny, Failure};
use crate::capability_set::{Capability, CapabilitySet};
use crate::executor::Seat;
use crate::hosts::Hosts;
use crate::memory::MemoryLimiter;
use crate::outgoing_http::Outgoing;
use crate::record::CallRecord;

/// Handles that one guest may hold at once. A `list<own<…>>` or a loop that leaks them ends here.
const MAX_RESOURCES: usize = 10_000;

/// Bytes of the header fields of one resource of `wasi:http`, as they lie in the host's memory.
const MAX_FIELDS_BYTES: usize = 64 << 10;

/// Bytes of randomness at once: making them holds up the guests beside it.
const MAX_RANDOM_BYTES: u64 = 1 << 20;

/// The data of one call's Store.
pub(crate) struct CallState {
    pub(crate) table: ResourceTable,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) record: Arc<CallRecord>,
    pub(crate) cancellation: CallCancellation,
    pub(crate) tool: String,
    pub(crate) tool_call_id: String,
    pub(crate) memory: MemoryLimiter,
    seat: Seat,
    io: Handle,
    wasi: WasiCtx,
    http: WasiHttpCtx,
    outgoing: Outgoing,
}

/// What a Store is made from.
pub(crate) struct CallSetup {
    /// What the call reaches; each interface of the contract is linked to it already.
    pub(crate) set: CapabilitySet,
    pub(crate) hosts: Arc<Hosts>,
    pub(crate) record: Arc<CallRecord>,
    pub(crate) cancellation: CallCancellation,
    pub(crate) tool: String,
    pub(crate) tool_call_id: String,
    pub(crate) memory_bytes: usize,
}

impl CallState {
    /// A state with WASI as bare as it gets: no folders, no arguments, no environment, no input, no sockets, output thrown away.
    pub(crate) fn new(setup: CallSetup, seat: Seat, io: Handle) -> CallState {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_RESOURCES);
        let wasi = WasiCtx::builder()
            .stderr(setup.record.last_words.clone())
            .allow_tcp(false)
            .allow_udp(false)
            .max_random_size(MAX_RANDOM_BYTES)
            .build();
        let has_http = setup.set.contains(Capability::Http);
        let http = has_http.then(|| Arc::clone(&setup.hosts.http));
        let mut fields = WasiHttpCtx::new();
        fields.set_field_size_limit(MAX_FIELDS_BYTES);
        let outgoing = Outgoing::new(http, Arc::clone(&setup.record), io.clone());
        CallState {
            table,
            hosts: setup.hosts,
            record: setup.record,
            cancellation: setup.cancellation,
            tool: setup.tool,
            tool_call_id: setup.tool_call_id,
            memory: MemoryLimiter::new(setup.memory_bytes),
            seat,
            io,
            wasi,
            http: fields,
            outgoing,
        }
    }

    /// Does something on the host's runtime and waits for it without holding a guest's seat. Dropping the wait drops the work.
    /// A panic of the host's code becomes a failure for the guest.
    pub(crate) async fn ask_host<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        if self.record.is_over() {
            return Err(Failure::call_is_over());
        }
        let task = AbortOnDropHandle::new(self.io.spawn(work));
        let answer = self.seat.vacated(task).await;
        answer.unwrap_or_else(|_panicked| Err(Failure::internal()))
    }

    /// The same for what must not be left half-done: where the wait is dropped the work goes on, and what it returns is dropped
    /// when it ends.
    pub(crate) async fn ask_host_to_the_end<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        if self.record.is_over() {
            return Err(Failure::call_is_over());
        }
        let task = self.io.spawn(work);
        let answer = self.seat.vacated(task).await;
        answer.unwrap_or_else(|_panicked| Err(Failure::internal()))
    }

    /// Hands the guest a handle of what the host gave out, or the host's failure. A guest that holds too many gets a failure
    /// and not a trap.
    pub(crate) fn keep<T: Send + 'static>(
        &mut self,
        given: Result<T, Failure>,
    ) -> wasmtime::Result<Result<Resource<T>, Failure>> {
        Ok(given.and_then(|one| {
            self.table.push(one).map_err(|_full| {
                Failure::new(
                    "too-many",
                    format!("the tool holds more than {MAX_RESOURCES} handles"),
                )
                .with_hint("drop handles that are no longer used")
            })
        }))
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for CallState {
    fn http(&mut self) -> wasmtime_wasi_http::WasiHttpCtxView<'_> {
        wasmtime_wasi_http::WasiHttpCtxView {
            ctx: &mut self.http,
            table: &mut self.table,
            hooks: &mut self.outgoing,
        }
    }
}

impl crate::bindings::floe::tool::types::Host for CallState {}

impl Deny {
    /// For functions whose signature has no failure: ends the call with the denial.
    pub(crate) fn raise(self, capability: Capability) -> wasmtime::Error {
        Raised(Failure::denied(capability)).into()
    }
}
