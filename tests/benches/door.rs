//! What the door costs: a no-op call as a whole (schema, one decision, a fresh instance, close-out, the real Trace writer without
//! fsync), the runtime's part of it, and one delta from a tool to the sink.
//!
//! `make guests && cargo bench -p floe-tests --bench door`

use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use criterion::{Bencher, Criterion, criterion_group, criterion_main};
use floe_environment::{
    CallSite, Environment, EnvironmentOptions, HostsFactory, MessageSink, Origin, RegisteredTool,
    Registry, Selection, ToolBody, Toolset,
};
use floe_protocol::{
    AgentId, ApprovalMode, Home, OmniMessage, Permission, SessionId, ToolCall, ToolDefinition,
};
use floe_runtime::capability::output::RecordingOutput;
use floe_runtime::{
    Call, CallContext, CallEnd, CallLimits, CallRequest, CapabilitySet, Component, ComponentSource,
    HostFacts, Hosts, Runtime, RuntimeOptions, ToolResult,
};
use floe_tests::components::guest;
use floe_trace::TraceWriter;
use tokio_util::sync::CancellationToken;

/// Writes what a Session would write; the rest goes to nobody.
struct TraceSink(Mutex<TraceWriter>);

impl MessageSink for TraceSink {
    fn emit(&self, message: OmniMessage) {
        if message.is_recordable() {
            self.0.lock().unwrap().append(&message).unwrap();
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

/// A tool of the host that writes a thousand deltas of one line.
struct Chatty;

const DELTAS: u64 = 1000;

#[async_trait]
impl ToolBody for Chatty {
    fn imports(&self) -> CapabilitySet {
        CapabilitySet::EMPTY
    }

    async fn permission_for(&self, _arguments: &str) -> Result<Permission, String> {
        Ok(Permission::None)
    }

    async fn run(&self, request: CallRequest) -> Call {
        for _ in 0..DELTAS {
            request
                .output
                .write("a line of sixty-four characters, as compilers print them by now\n");
        }
        Call {
            end: CallEnd::Returned(ToolResult::default()),
            facts: HostFacts::default(),
        }
    }
}

struct House {
    runtime: Runtime,
    noop: Component,
    environment: Environment,
}

async fn house(home: &Path) -> House {
    let runtime = Runtime::new(RuntimeOptions::new(tokio::runtime::Handle::current())).unwrap();
    let source = ComponentSource::Wasm(guest("noop"));
    let noop = runtime.load("noop", source, CapabilitySet::EMPTY).unwrap();
    let mut definition = runtime.definition(&noop).await.unwrap();
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
    let chatty = RegisteredTool {
        definition: ToolDefinition {
            name: "chatty".into(),
            max_output_length: 0,
            parameters: serde_json::json!({"type": "object"}),
            ..definition.clone()
        },
        body: Arc::new(Chatty),
        declared: CapabilitySet::EMPTY,
        granted: CapabilitySet::EMPTY,
        origin: Origin::BuiltIn,
        sha256: String::new(),
    };
    let mut registry = Registry::new();
    let tool = RegisteredTool::component(runtime.clone(), noop.clone(), definition, "0".repeat(64));
    registry.insert(tool).unwrap();
    registry.insert(chatty).unwrap();
    let trace = TraceWriter::create(
        &Home::new(home),
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
    House {
        runtime,
        noop,
        environment: Environment::new(options),
    }
}

async fn through_the_door(environment: Environment, tool: &'static str, number: u64) {
    let call = ToolCall {
        name: tool.into(),
        arguments: r#"{"cmd":"true","workdir":".","yield_time_ms":250}"#.into(),
        tool_call_id: format!("call-{number}"),
    };
    let output = environment.execute(call, CancellationToken::new()).await;
    assert!(output.is_some());
}

async fn through_the_runtime(runtime: Runtime, noop: Component) {
    let request = CallRequest {
        arguments: "{}".into(),
        context: CallContext::default(),
        granted: CapabilitySet::EMPTY,
        hosts: Arc::new(Hosts::deny()),
        output: RecordingOutput::new(),
        limits: CallLimits::default(),
        cancel: CancellationToken::new(),
    };
    let call = runtime.execute(&noop, request).await;
    assert!(matches!(call.end, CallEnd::Returned(_)));
}

/// Runs the calls one after the other in a task, as a Session's loop does.
fn in_a_task<W, F>(bencher: &mut Bencher<'_>, tokio: &tokio::runtime::Runtime, work: W)
where
    W: Fn(u64) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    bencher.iter_custom(|iterations| {
        let work = work.clone();
        tokio.block_on(async {
            let task = tokio::spawn(async move {
                let started = Instant::now();
                for number in 0..iterations {
                    work(number).await;
                }
                started.elapsed()
            });
            task.await.unwrap()
        })
    });
}

fn door(criterion: &mut Criterion) {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let home = tempfile::tempdir().unwrap();
    let House {
        runtime,
        noop,
        environment,
    } = tokio.block_on(house(home.path()));
    let mut group = criterion.benchmark_group("call");
    group.bench_function("no-op, whole door (goal 100 us)", |bencher| {
        let environment = environment.clone();
        in_a_task(bencher, &tokio, move |number| {
            through_the_door(environment.clone(), "noop", number)
        });
    });
    group.bench_function("no-op, runtime's part (goal 60 us)", |bencher| {
        let (runtime, noop) = (runtime.clone(), noop.clone());
        in_a_task(bencher, &tokio, move |_| {
            through_the_runtime(runtime.clone(), noop.clone())
        });
    });
    group.throughput(criterion::Throughput::Elements(DELTAS));
    group.bench_function("1000 deltas, tool to sink (goal 2 us each)", |bencher| {
        let environment = environment.clone();
        in_a_task(bencher, &tokio, move |number| {
            through_the_door(environment.clone(), "chatty", number)
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_secs(1)).sample_size(50);
    targets = door
}
criterion_main!(benches);
