//! The runtime: loads components and runs each call in a fresh instance. A cancel and a deadline are answered at once; the
//! guest's task dies behind the answer, and nothing that it still does has an effect.

use std::sync::Arc;
use std::time::{Duration, Instant};

use floe_protocol::{Permission, ToolDefinition};
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use wasmtime::{Engine, Store, UpdateDeadline};

use crate::admission::AdmissionError;
use crate::bindings::{Tool, ToolPre};
use crate::call::{Call, CallEnd, CallFault, CallLimits, CallRequest, Raised, WORKSPACE_DIR};
use crate::capability::cancellation::CallCancellation;
use crate::capability::output::OutputSink;
use crate::capability::{Deny, Failure};
use crate::capability_set::CapabilitySet;
use crate::component::{Component, ComponentSource};
use crate::engine::{self, Allocator};
use crate::executor::Executor;
use crate::hosts::Hosts;
use crate::last_words;
use crate::linker::Linkers;
use crate::record::CallRecord;
use crate::state::{CallSetup, CallState};
use crate::{definition, result};

/// How long `definition` and `permission-for` may take by default: they wait for nothing.
const DESCRIBE_DEADLINE: Duration = Duration::from_secs(10);

/// How a runtime is set up.
#[derive(Clone, Debug)]
pub struct RuntimeOptions {
    /// The host's runtime, which does all I/O for guests.
    pub io: Handle,
    /// Component instances that may exist at once, most of them waiting for the host; none for no pool.
    pub pool: Option<u32>,
    /// Guests that may run at once.
    pub running: usize,
    /// Threads that guests run on.
    pub workers: usize,
    /// How long `definition` and `permission-for` may take.
    pub describe_deadline: Duration,
}

impl RuntimeOptions {
    /// 256 instances, 64 of them running, on two threads; ten seconds to describe a tool.
    pub fn new(io: Handle) -> RuntimeOptions {
        RuntimeOptions {
            io,
            pool: Some(DEFAULT_INSTANCES),
            running: 64,
            workers: 2,
            describe_deadline: DESCRIBE_DEADLINE,
        }
    }
}

const DEFAULT_INSTANCES: u32 = 256;

/// Why there is no runtime.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The engine refused its settings on this machine.
    #[error("the WebAssembly engine cannot start on this machine: {0}")]
    Engine(String),
    /// No threads for guests.
    #[error(
        "the threads that tools run on cannot start: {0}; raise the limit of processes (`ulimit -u`)"
    )]
    Threads(#[from] std::io::Error),
}

/// The component runtime. Clones share it; it ends when the last one and all its components are gone.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

struct Inner {
    engine: Engine,
    allocator: Allocator,
    linkers: Arc<Linkers>,
    executor: Executor,
    io: Handle,
    describe_deadline: Duration,
}

/// What one entry into a guest needs beside the work.
struct Entry {
    set: CapabilitySet,
    hosts: Arc<Hosts>,
    output: Arc<dyn OutputSink>,
    limits: CallLimits,
    cancel: CancellationToken,
    tool_call_id: String,
}

/// How one entry into a guest ended.
enum Exit<T> {
    Returned(T),
    Failed(Failure),
    Trapped(String),
    Cancelled,
    DeadlineExceeded,
    Refused(AdmissionError),
}

impl Runtime {
    /// Starts a runtime. Where the pool cannot be reserved it goes on without and says so in [`Runtime::allocator`].
    ///
    /// # Errors
    ///
    /// The engine refuses its settings, or no thread can be started.
    pub fn new(options: RuntimeOptions) -> Result<Runtime, RuntimeError> {
        let (engine, allocator) = engine::open(options.pool)
            .map_err(|error| RuntimeError::Engine(error.root_cause().to_string()))?;
        let slots = options.pool.unwrap_or(DEFAULT_INSTANCES) as usize;
        let executor = Executor::new(
            &engine,
            options.workers.max(1),
            options.running.clamp(1, slots),
            slots,
        )?;
        Ok(Runtime(Arc::new(Inner {
            linkers: Arc::new(Linkers::new(engine.clone())),
            engine,
            allocator,
            executor,
            io: options.io,
            describe_deadline: options.describe_deadline,
        })))
    }

    /// Where instances come from.
    pub fn allocator(&self) -> &Allocator {
        &self.0.allocator
    }

    /// Lets a component in under a name. It must export the tool interface of this contract, import only what this host has, and
    /// declare what it imports. Compiling it waits until it is first needed.
    ///
    /// # Errors
    ///
    /// Which of these it does not.
    pub fn load(
        &self,
        name: &str,
        source: ComponentSource,
        declared: CapabilitySet,
    ) -> Result<Component, AdmissionError> {
        Component::admit(&self.0.engine, &self.0.linkers, name, source, declared)
    }

    /// Asks a tool what it is, in an instance without capabilities.
    ///
    /// # Errors
    ///
    /// The component is refused once it is compiled, traps, or says what is no definition.
    pub async fn definition(&self, component: &Component) -> Result<ToolDefinition, CallFault> {
        let described = self
            .describe(component, "definition", |tool, store| {
                Box::pin(async move { tool.floe_tool_builtin_tool().call_definition(store).await })
            })
            .await?;
        definition::read(component.name(), described)
    }

    /// Asks a tool which permission these arguments need, in an instance without capabilities. The answer may only raise what
    /// the definition declares; the caller sees to that.
    ///
    /// # Errors
    ///
    /// The component is refused once it is compiled, traps, or takes too long.
    pub async fn permission_for(
        &self,
        component: &Component,
        arguments: &str,
    ) -> Result<Permission, CallFault> {
        let arguments = arguments.to_owned();
        let level = self
            .describe(component, "permission-for", |tool, store| {
                Box::pin(async move {
                    let tool = tool.floe_tool_builtin_tool();
                    tool.call_permission_for(store, &arguments).await
                })
            })
            .await?;
        Ok(definition::permission(level))
    }

    /// Runs one call to its end, whatever that is. Dropping the future ends the call. The deadline begins when the component is
    /// compiled, which is done once, and covers all that follows: the wait for room, the guest, and the host on its behalf.
    pub async fn execute(&self, component: &Component, request: CallRequest) -> Call {
        let CallRequest {
            arguments,
            context,
            granted,
            hosts,
            output,
            limits,
            cancel,
        } = request;
        let entry = Entry {
            set: granted.intersection(component.capabilities()),
            hosts,
            output,
            limits,
            cancel,
            tool_call_id: context.tool_call_id.clone(),
        };
        let context = crate::bindings::floe::tool::types::ExecutionContext {
            tool_call_id: context.tool_call_id,
            session_id: context.session_id,
            workspace_dir: WORKSPACE_DIR.to_owned(),
            metadata: context.metadata,
        };
        let (exit, record) = self
            .enter(component, entry, |tool, store| {
                Box::pin(async move {
                    let tool = tool.floe_tool_builtin_tool();
                    tool.call_execute(store, &arguments, &context).await
                })
            })
            .await;
        let end = match exit {
            Exit::Returned(Ok(returned)) => result::read(returned),
            Exit::Returned(Err(failure)) | Exit::Failed(failure) => {
                CallEnd::Failed(result::bounded(failure))
            }
            Exit::Trapped(message) => CallEnd::Trapped { message },
            Exit::Cancelled => CallEnd::Cancelled,
            Exit::DeadlineExceeded => CallEnd::DeadlineExceeded,
            Exit::Refused(error) => {
                CallEnd::Failed(Failure::new("component-refused", error.to_string()))
            }
        };
        Call {
            end,
            facts: record.facts(),
        }
    }

    async fn describe<T, F>(
        &self,
        component: &Component,
        function: &'static str,
        work: F,
    ) -> Result<T, CallFault>
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a Tool, &'a mut Store<CallState>) -> BoxFuture<'a, wasmtime::Result<T>>
            + Send
            + 'static,
    {
        let tool = component.name().to_owned();
        let entry = Entry {
            set: CapabilitySet::EMPTY,
            hosts: Arc::new(Hosts::deny()),
            output: Arc::new(Deny),
            limits: CallLimits {
                deadline: Some(self.0.describe_deadline),
                ..CallLimits::default()
            },
            cancel: CancellationToken::new(),
            tool_call_id: String::new(),
        };
        let (exit, _record) = self.enter(component, entry, work).await;
        match exit {
            Exit::Returned(answer) => Ok(answer),
            Exit::Refused(error) => Err(error.into()),
            Exit::Trapped(message) => Err(CallFault::Trapped {
                tool,
                function,
                message,
            }),
            Exit::Failed(failure) => Err(CallFault::Trapped {
                tool,
                function,
                message: failure.message,
            }),
            Exit::Cancelled | Exit::DeadlineExceeded => Err(CallFault::TimedOut {
                tool,
                function,
                limit: self.0.describe_deadline,
            }),
        }
    }

    /// One entry into a fresh instance of a guest, under a deadline and a token.
    async fn enter<T, F>(
        &self,
        component: &Component,
        entry: Entry,
        work: F,
    ) -> (Exit<T>, Arc<CallRecord>)
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a Tool, &'a mut Store<CallState>) -> BoxFuture<'a, wasmtime::Result<T>>
            + Send
            + 'static,
    {
        let record = Arc::new(CallRecord::new(entry.output));
        let _over = CloseOnDrop(record.clone());
        // Compiling is the host's work and done once, so it counts against nobody's deadline; only a cancel ends the wait for it.
        let linked = tokio::select! {
            biased;
            () = entry.cancel.cancelled() => return (Exit::Cancelled, record),
            linked = self.linked(component, entry.set) => linked,
        };
        let pre = match linked {
            Ok(pre) => pre,
            Err(error) => return (Exit::Refused(error), record),
        };
        let deadline = entry
            .limits
            .deadline
            .and_then(|limit| Instant::now().checked_add(limit));
        let setup = CallSetup {
            set: entry.set,
            hosts: entry.hosts,
            record: record.clone(),
            cancellation: CallCancellation {
                token: entry.cancel.clone(),
                deadline,
            },
            tool: component.name().to_owned(),
            tool_call_id: entry.tool_call_id,
            memory_bytes: entry.limits.memory_bytes,
        };
        let guest = self.guest(pre, setup, entry.limits.host_call_fuel, work);
        let mut guest = AbortOnDropHandle::new(self.0.executor.spawn(guest));
        let exit = tokio::select! {
            biased;
            () = entry.cancel.cancelled() => Exit::Cancelled,
            () = self.time_is_up(deadline) => Exit::DeadlineExceeded,
            ended = &mut guest => ended.unwrap_or_else(|_panicked| {
                Exit::Trapped("the host failed while it ran the tool".to_owned())
            }),
        };
        if matches!(exit, Exit::Cancelled | Exit::DeadlineExceeded) {
            // The guest, and with it its hold on its commands, dies behind this.
            record.terminate_commands();
        }
        drop(guest);
        (exit, record)
    }

    /// Ends at that time, by the clock of the host's runtime; never where there is none.
    fn time_is_up(&self, deadline: Option<Instant>) -> impl Future<Output = ()> + use<> {
        let _clock = self.0.io.enter();
        let sleep = deadline.map(|at| tokio::time::sleep_until(at.into()));
        async move {
            match sleep {
                Some(sleep) => sleep.await,
                None => std::future::pending().await,
            }
        }
    }

    /// The guest's task: waits for room, makes the Store, does the work, and explains what went wrong.
    fn guest<T, F>(
        &self,
        pre: Arc<ToolPre<CallState>>,
        setup: CallSetup,
        host_call_fuel: usize,
        work: F,
    ) -> impl Future<Output = Exit<T>> + Send + 'static
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a Tool, &'a mut Store<CallState>) -> BoxFuture<'a, wasmtime::Result<T>>
            + Send
            + 'static,
    {
        let engine = self.0.engine.clone();
        let io = self.0.io.clone();
        let admission = self.0.executor.admission();
        async move {
            // The slot is declared before the Store, so that it outlives it wherever this future is dropped.
            let (_slot, seat) = admission.enter().await;
            let mut store = Store::new(&engine, CallState::new(setup, seat, io));
            store.limiter(|state| &mut state.memory);
            store.set_hostcall_fuel(host_call_fuel);
            store.set_epoch_deadline(1);
            store.epoch_deadline_callback(|_| {
                let breath = Box::pin(tokio::task::yield_now());
                Ok(UpdateDeadline::YieldCustom(1, breath))
            });
            let instance = match pre.instance_pre().instantiate_async(&mut store).await {
                Ok(instance) => instance,
                Err(error) => return broken(&error, store.data()),
            };
            // Here the types of the exports are compared, and nothing of the guest runs.
            let tool = match Tool::new(&mut store, &instance) {
                Ok(tool) => tool,
                Err(error) => {
                    return Exit::Refused(AdmissionError::WrongShape {
                        tool: store.data().tool.clone(),
                        detail: format!("{error:#}"),
                    });
                }
            };
            let worked = work(&tool, &mut store).await;
            match worked {
                Ok(answer) => Exit::Returned(answer),
                Err(error) => broken(&error, store.data()),
            }
        }
    }

    /// The component bound to a set: at once where that was done before, else on a thread that may block.
    async fn linked(
        &self,
        component: &Component,
        set: CapabilitySet,
    ) -> Result<Arc<ToolPre<CallState>>, AdmissionError> {
        if !Engine::same(component.engine(), &self.0.engine) {
            return Err(AdmissionError::OtherRuntime {
                tool: component.name().to_owned(),
            });
        }
        if let Some(linked) = component.linked(set) {
            return Ok(linked);
        }
        let shared = component.clone();
        let linked = self.0.io.spawn_blocking(move || shared.link(set)).await;
        linked.unwrap_or_else(|_panicked| {
            Err(AdmissionError::NotCompiled {
                tool: component.name().to_owned(),
                reason: "the compiler failed".to_owned(),
            })
        })
    }
}

/// Why a guest broke off: by a failure that its signature had no room for, or by a trap.
fn broken<T>(error: &wasmtime::Error, state: &CallState) -> Exit<T> {
    match error.downcast_ref::<Raised>() {
        Some(Raised(failure)) => Exit::Failed(failure.clone()),
        None => {
            let limit = state.memory.verdict();
            Exit::Trapped(last_words::explain(
                error,
                &state.record.last_words,
                limit.as_deref(),
            ))
        }
    }
}

/// Ends a call for good, also where its future is dropped.
struct CloseOnDrop(Arc<CallRecord>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}
