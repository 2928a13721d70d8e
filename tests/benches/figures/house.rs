//! A Session's door without the Session: the real runtime, two guests, every call allowed, the real Trace writer without fsync.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe_environment::{
    CallSite, Environment, EnvironmentOptions, HostsFactory, MessageSink, RegisteredTool, Registry,
    Selection, Toolset,
};
use floe_protocol::{AgentId, ApprovalMode, Home, OmniMessage, SessionId, ToolCall};
use floe_runtime::{CapabilitySet, Component, ComponentSource, Hosts, Runtime, RuntimeOptions};
use floe_tests::components::guest;
use floe_trace::TraceWriter;
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

struct NoHosts(Arc<Hosts>);

impl HostsFactory for NoHosts {
    fn hosts(&self, _call: &CallSite) -> Arc<Hosts> {
        Arc::clone(&self.0)
    }
}

impl House {
    pub(crate) fn new() -> House {
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let home = tempfile::tempdir().expect("a temporary folder");
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
                Arc::new(NoHosts(Arc::new(Hosts::deny()))),
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

/// `noop` with the arguments of a command, and `hostile` without a limit to its output.
async fn registry(runtime: &Runtime) -> Registry {
    let mut registry = Registry::new();
    for name in ["noop", "hostile"] {
        let component = load(runtime, name);
        let described = runtime.definition(&component).await;
        let mut definition = described.expect("a definition");
        definition.max_output_length = 0;
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
        let tool =
            RegisteredTool::component(runtime.clone(), component, definition, "0".repeat(64));
        registry.insert(tool).expect("a name of its own");
    }
    registry
}

fn load(runtime: &Runtime, name: &str) -> Component {
    let source = ComponentSource::Wasm(guest(name));
    let loaded = runtime.load(name, source, CapabilitySet::all());
    loaded.expect("a guest that is let in")
}
