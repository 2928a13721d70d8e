//! A Session's door without the Session: the real runtime, two guests or some of the real tools over a Workspace, every call allowed, the
//! real Trace writer without fsync.

use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use floe_environment::{
    CallSite, Environment, EnvironmentOptions, HostsFactory, MessageSink, RegisteredTool, Registry,
    Selection, Toolset,
};
use floe_network::{Denial, Gate, GateOptions, HostGrants, Reach};
use floe_protocol::{
    AgentId, ApprovalMode, Home, OmniMessage, SessionId, StopReason, ToolCall, ToolDefinition,
};
use floe_runtime::capability::edits::OpenedEdits;
use floe_runtime::capability::http::{GatedHttp, ObserveDenials};
use floe_runtime::capability::workspace::OpenedWorkspace;
use floe_runtime::{CapabilitySet, Component, ComponentSource, Hosts, Runtime, RuntimeOptions};
use floe_tests::components::{guest, tool};
use floe_trace::TraceWriter;
use floe_workspace::{Editor, EditorOptions, Workspace};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// What is measured runs on this, as it does in the binary.
pub(crate) struct House {
    pub(crate) tokio: tokio::runtime::Runtime,
    pub(crate) runtime: Runtime,
    pub(crate) environment: Environment,
    _home: TempDir,
}

/// Writes what a Session would write; the rest goes to nobody.
struct TraceSink(Mutex<TraceWriter>);

impl MessageSink for TraceSink {
    fn emit(&self, message: OmniMessage) {
        if message.is_recordable() {
            let mut trace = self.0.lock().expect("nobody panicked with it");
            trace.append(&message).expect("the record is written");
        } else {
            std::hint::black_box(message);
        }
    }

    fn recording(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Everything that is asked for is granted.
struct NoDenials;

impl ObserveDenials for NoDenials {
    fn denied(&self, _denial: &Denial) {}
}

struct SharedHosts(Arc<Hosts>);

impl HostsFactory for SharedHosts {
    fn hosts(&self, _call: &CallSite) -> Arc<Hosts> {
        Arc::clone(&self.0)
    }
}

impl House {
    /// With the guests `noop` and `hostile`, which reach nothing.
    pub(crate) fn new() -> House {
        let home = tempfile::tempdir().expect("a temporary folder");
        House::with(home, Hosts::deny(), async |runtime| registry(runtime).await)
    }

    /// With these tools of the binary over a Workspace. Their outputs have no limit, so that they do all their work.
    pub(crate) fn of_tools(workspace: &Path, names: &'static [&'static str]) -> House {
        let opened = Workspace::open(workspace).expect("a Workspace");
        let state = tempfile::tempdir().expect("a temporary folder");
        let editor = EditorOptions {
            journal: state.path().join("journal"),
            locks: state.path().join("locks"),
            protects: Arc::new(|_| false),
        };
        let hosts = Hosts {
            edits: Arc::new(OpenedEdits::new(Editor::new(opened.clone(), editor))),
            workspace: Arc::new(OpenedWorkspace::new(opened)),
            ..Hosts::deny()
        };
        House::of_the_binary(state, hosts, names)
    }

    /// With this tool of the binary, which speaks HTTP with the hosts that are granted.
    pub(crate) fn of_the_web(name: &'static str, grants: HostGrants) -> House {
        let gate = Gate::new(GateOptions {
            grants,
            ..GateOptions::default()
        });
        let http = GatedHttp::new(gate, Reach::default(), Arc::new(NoDenials));
        let hosts = Hosts {
            http: Arc::new(http),
            ..Hosts::deny()
        };
        let home = tempfile::tempdir().expect("a temporary folder");
        House::of_the_binary(home, hosts, &[name])
    }

    fn of_the_binary(home: TempDir, hosts: Hosts, names: &[&str]) -> House {
        House::with(home, hosts, async |runtime| {
            let mut registry = Registry::new();
            for name in names {
                insert(&mut registry, runtime, built(runtime, name), |_| {}).await;
            }
            registry
        })
    }

    fn with(
        home: TempDir,
        hosts: Hosts,
        registry: impl AsyncFnOnce(&Runtime) -> Registry,
    ) -> House {
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let (runtime, environment) = tokio.block_on(async {
            let options = RuntimeOptions::new(tokio::runtime::Handle::current());
            let runtime = Runtime::new(options).expect("a runtime for guests");
            let registry = registry(&runtime).await;
            let trace = TraceWriter::create(
                &Home::new(home.path()),
                &AgentId::default(),
                &SessionId::generate(),
            );
            let mut options = EnvironmentOptions::new(
                "session-bench".into(),
                Arc::new(registry),
                Arc::new(SharedHosts(Arc::new(hosts))),
                Arc::new(TraceSink(Mutex::new(trace))),
            );
            options.approval_mode = ApprovalMode::AllowAll;
            options.selection = Selection::Toolset(Toolset::All);
            (runtime, Environment::new(options))
        });
        House {
            tokio,
            runtime,
            environment,
            _home: home,
        }
    }

    /// One call of a tool and what it came to, which must be a success.
    pub(crate) fn call(&self, tool: &str, arguments: &str) -> (Duration, String) {
        let environment = self.environment.clone();
        let call = ToolCall {
            name: tool.into(),
            arguments: arguments.into(),
            tool_call_id: "call-1".into(),
        };
        let task = self.tokio.spawn(async move {
            let start = Instant::now();
            let output = environment.execute(call, CancellationToken::new()).await;
            (start.elapsed(), output.expect("an output"))
        });
        let (took, output) = self.tokio.block_on(task).expect("the task ends");
        assert_eq!(output.stop_reason, StopReason::Completed, "{output:?}");
        (took, output.output)
    }

    /// A guest of `tests/guests`.
    pub(crate) fn component(&self, name: &str) -> Component {
        load(&self.runtime, name)
    }

    /// Runs work in a task of its own, as a Session's loop does.
    pub(crate) fn in_a_task<F>(&self, work: F) -> Vec<Duration>
    where
        F: Future<Output = Vec<Duration>> + Send + 'static,
    {
        let task = self.tokio.spawn(work);
        self.tokio.block_on(task).expect("the task ends")
    }
}

/// One call of a tool to its complete output.
pub(crate) async fn through_the_door(environment: &Environment, tool: &str, arguments: &str) {
    let call = ToolCall {
        name: tool.into(),
        arguments: arguments.into(),
        tool_call_id: "call-1".into(),
    };
    let output = environment.execute(call, CancellationToken::new()).await;
    assert!(output.is_some());
}

/// `noop` with the arguments of a command, and `hostile`.
async fn registry(runtime: &Runtime) -> Registry {
    let mut registry = Registry::new();
    for name in ["noop", "hostile"] {
        let change = |definition: &mut ToolDefinition| {
            if name == "noop" {
                definition.parameters = serde_json::json!({
                    "type": "object",
                    "properties": {
                        "cmd": {"type": "string", "minLength": 1},
                        "workdir": {"type": "string"},
                        "yield_time_ms": {"type": "integer", "minimum": 0},
                    },
                    "required": ["cmd"],
                    "additionalProperties": false,
                });
            }
        };
        insert(&mut registry, runtime, load(runtime, name), change).await;
    }
    registry
}

/// Registers a component without a limit to its output.
async fn insert(
    registry: &mut Registry,
    runtime: &Runtime,
    component: Component,
    change: impl FnOnce(&mut ToolDefinition),
) {
    let described = runtime.definition(&component).await;
    let mut definition = described.expect("a definition");
    definition.max_output_length = 0;
    change(&mut definition);
    let tool = RegisteredTool::component(runtime.clone(), component, definition, "0".repeat(64));
    registry.insert(tool).expect("a name of its own");
}

fn load(runtime: &Runtime, name: &str) -> Component {
    let source = ComponentSource::Wasm(guest(name));
    let loaded = runtime.load(name, source, CapabilitySet::all());
    loaded.expect("a guest that is let in")
}

/// A tool of the binary, compiled as it is there: for the baseline of the processor.
fn built(runtime: &Runtime, name: &str) -> Component {
    let wasm: &'static [u8] = tool(name).leak();
    let cwasm = floe_runtime::precompile(wasm).expect("it compiles").leak();
    let source = ComponentSource::Precompiled { cwasm, wasm };
    let loaded = runtime.load(name, source, CapabilitySet::all());
    loaded.expect("a tool that is let in")
}
