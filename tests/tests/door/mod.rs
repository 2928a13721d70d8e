//! An Environment over the real tools: the components that `make components` built, the guests of `tests/guests`, the real
//! sandbox and real commands, in folders that the test made.
#![allow(dead_code, reason = "each suite uses its own part")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use floe_command::{CommandOptions, CommandSessions};
use floe_environment::{
    CallFuture, CallSite, Environment, EnvironmentOptions, HostsFactory, MessageSink,
    OutputRecorder, Outputs, RegisteredTool, Registry, Secrets, Selection, ToolCallOutput, Toolset,
};
use floe_protocol::{
    ApprovalDecision, ApprovalMode, Body, EventMsg, ModelMsg, OmniMessage, Phase, StopReason,
    ToolCall, ToolDefinition, Truncation,
};
use floe_runtime::capability::commands::ConfinedCommands;
use floe_runtime::capability::workspace::OpenedWorkspace;
use floe_runtime::{CapabilitySet, ComponentSource, Hosts, Runtime, RuntimeOptions};
use floe_sandbox::{Sandbox, SandboxOptions};
use floe_tests::components::guest;
use floe_workspace::Workspace;
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A wait that no test should ever sit out.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The built-in tools of this build.
const BUILT_IN: [&str; 5] = [
    "exec_command",
    "input_command",
    "read_image",
    "file_read",
    "list",
];

/// The guests that stand for tools which no built-in tool can play.
const GUESTS: [&str; 5] = [
    "yields-ab-then-boom",
    "images-failed",
    "images-only",
    "echo",
    "noop",
];

/// A Session's Environment and its folders, which go with it.
pub(crate) struct Door {
    pub(crate) environment: Environment,
    pub(crate) workspace: PathBuf,
    pub(crate) outputs: PathBuf,
    pub(crate) commands: Arc<CommandSessions>,
    pub(crate) sink: Arc<Recorder>,
    pub(crate) runtime: Runtime,
    pub(crate) registry: Arc<Registry>,
    pub(crate) hosts: Arc<Hosts>,
    _folder: Option<TempDir>,
}

/// What a Door stands on.
pub(crate) struct Ground {
    pub(crate) workspace: Workspace,
    /// Where the whole output of cut calls is kept.
    pub(crate) outputs: PathBuf,
    pub(crate) commands: Arc<CommandSessions>,
    /// Where `make components` has put the built-in tools, or a copy of them.
    pub(crate) components: PathBuf,
    /// Further tools by their names: components.
    pub(crate) guests: Vec<(&'static str, Vec<u8>)>,
}

/// Keeps every message in order.
#[derive(Default)]
pub(crate) struct Recorder {
    messages: Mutex<Vec<OmniMessage>>,
    count: watch::Sender<usize>,
}

impl MessageSink for Recorder {
    fn emit(&self, message: OmniMessage) {
        let mut messages = self.messages.lock().unwrap();
        messages.push(message);
        self.count.send_replace(messages.len());
    }

    fn recording(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The fragments and the complete output of one call, as they were emitted.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) phases: Vec<Phase>,
    /// The text of the deltas; an image delta is `None`.
    pub(crate) deltas: Vec<Option<String>>,
    pub(crate) images_streamed: Vec<String>,
    pub(crate) stop: Option<StopReason>,
    pub(crate) completes: Vec<ModelMsg>,
}

impl Recorder {
    pub(crate) fn messages(&self) -> Vec<OmniMessage> {
        self.messages.lock().unwrap().clone()
    }

    pub(crate) fn decisions(&self) -> Vec<ApprovalDecision> {
        self.messages()
            .into_iter()
            .filter_map(|message| match message.body {
                Body::EventMsg(EventMsg::ApprovalDecision(decision)) => Some(decision),
                _ => None,
            })
            .collect()
    }

    /// What was emitted for a call.
    pub(crate) fn seen(&self, id: &str) -> Seen {
        let mut seen = Seen::default();
        for message in self.messages() {
            match message.body {
                Body::ModelMsg(ModelMsg::PartialToolCallOutput {
                    event_type,
                    output,
                    images,
                    tool_call_id,
                    stop_reason,
                    ..
                }) if tool_call_id == id => {
                    seen.phases.push(event_type);
                    if event_type == Phase::Delta {
                        seen.deltas.push(images.is_none().then_some(output));
                        seen.images_streamed.extend(images.into_iter().flatten());
                    }
                    if event_type == Phase::Stop {
                        seen.stop = stop_reason;
                    }
                }
                Body::ModelMsg(complete @ ModelMsg::ToolCallOutput { .. }) if matches!(&complete, ModelMsg::ToolCallOutput { tool_call_id, .. } if tool_call_id == id) =>
                {
                    seen.completes.push(complete);
                }
                _ => {}
            }
        }
        seen
    }

    /// Waits until the text streamed for a call holds `wanted`.
    pub(crate) async fn until_streamed(&self, id: &str, wanted: &str) {
        let mut count = self.count.subscribe();
        let streamed = async {
            loop {
                let text: String = self.seen(id).deltas.into_iter().flatten().collect();
                if text.contains(wanted) {
                    return;
                }
                count.changed().await.unwrap();
            }
        };
        tokio::time::timeout(LONG, streamed)
            .await
            .unwrap_or_else(|_| panic!("{wanted:?} was not streamed"));
    }
}

impl Seen {
    pub(crate) fn text(&self) -> String {
        self.deltas.iter().flatten().map(String::as_str).collect()
    }
}

/// The same capabilities for every call.
struct SharedHosts(Arc<Hosts>);

impl HostsFactory for SharedHosts {
    fn hosts(&self, _call: &CallSite) -> Arc<Hosts> {
        Arc::clone(&self.0)
    }
}

impl Door {
    /// All tools, every call allowed.
    pub(crate) async fn new() -> Door {
        Door::with(|_, _| {}).await
    }

    /// The toolset `minimal`, which cuts as the seed does, with other limits for one of its tools where they are given.
    pub(crate) async fn minimal(tool: &str, timeout_ms: Option<i64>, max: Option<i64>) -> Door {
        let tool = tool.to_owned();
        Door::with(move |registry, options| {
            options.selection = Selection::Toolset(Toolset::Minimal);
            if timeout_ms.is_none() && max.is_none() {
                return;
            }
            let mut definition = registry.get(&tool).unwrap().definition.clone();
            definition.truncation = Truncation::Head;
            definition.timeout_ms = timeout_ms.unwrap_or(definition.timeout_ms);
            definition.max_output_length = max.unwrap_or(definition.max_output_length);
            options.selection = Selection::Entries(vec![definition]);
        })
        .await
    }

    pub(crate) async fn with(change: impl FnOnce(&Registry, &mut EnvironmentOptions)) -> Door {
        Door::with_guests(&GUESTS, change).await
    }

    /// With these guests of `tests/guests` beside the built-in tools.
    pub(crate) async fn with_guests(
        guests: &[&'static str],
        change: impl FnOnce(&Registry, &mut EnvironmentOptions),
    ) -> Door {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let make = |name: &str| {
            let path = root.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (workspace, outputs) = (make("workspace"), make("outputs"));
        let opened = Workspace::open(&workspace).unwrap();
        let mut sandbox = SandboxOptions::new(
            opened.fd().try_clone_to_owned().unwrap(),
            workspace,
            make("home"),
            make("tmp"),
            outputs.clone(),
        );
        sandbox.helper = env!("CARGO_BIN_EXE_sandbox-helper").into();
        let mut commands = CommandOptions::new(opened.clone());
        // No login shell of whoever runs the tests.
        commands.environment.person_home = None;
        let whole = Outputs::new(outputs.clone(), Secrets::default());
        commands.record = Some(Arc::new(OutputRecorder(whole)));
        let ground = Ground {
            workspace: opened,
            outputs,
            commands: CommandSessions::new(Arc::new(Sandbox::new(sandbox).unwrap()), commands),
            components: Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/components"),
            guests: guests.iter().map(|name| (*name, guest(name))).collect(),
        };
        Door {
            _folder: Some(folder),
            ..Door::on(ground, change).await
        }
    }

    /// Over a Session that is there already.
    pub(crate) async fn on(
        ground: Ground,
        change: impl FnOnce(&Registry, &mut EnvironmentOptions),
    ) -> Door {
        let Ground {
            workspace,
            outputs,
            commands,
            components,
            guests,
        } = ground;
        let hosts = Arc::new(Hosts {
            workspace: Arc::new(OpenedWorkspace::new(
                workspace.clone().with_mount(Sandbox::OUTPUTS, &outputs),
            )),
            commands: Arc::new(ConfinedCommands::new(Arc::clone(&commands))),
            ..Hosts::unsupported()
        });
        let mut options = RuntimeOptions::new(Handle::current());
        options.pool = Some(16);
        let runtime = Runtime::new(options).unwrap();
        let registry = registry(&runtime, &components, guests).await;
        let sink = Arc::new(Recorder::default());
        Door {
            environment: environment(&registry, &hosts, &sink, &outputs, change),
            workspace: workspace.canonical_path().to_owned(),
            outputs,
            commands,
            sink,
            runtime,
            registry,
            hosts,
            _folder: None,
        }
    }

    /// Another Environment over the same tools and folders.
    pub(crate) fn environment_with(
        &self,
        change: impl FnOnce(&Registry, &mut EnvironmentOptions),
    ) -> Environment {
        environment(
            &self.registry,
            &self.hosts,
            &self.sink,
            &self.outputs,
            change,
        )
    }

    pub(crate) fn start(
        &self,
        id: &str,
        tool: &str,
        arguments: &str,
        cancel: &CancellationToken,
    ) -> CallFuture {
        let call = ToolCall {
            name: tool.into(),
            arguments: arguments.into(),
            tool_call_id: id.into(),
        };
        self.environment.execute(call, cancel.clone())
    }

    /// Waits until no command is registered: what a call leaves is ended behind its answer.
    pub(crate) async fn until_no_command_is_left(&self) {
        let limit = Instant::now() + LONG;
        while !self.commands.list().is_empty() {
            assert!(Instant::now() < limit, "a command is still registered");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Runs the call `c1` to its end.
    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> ToolCallOutput {
        self.call_as("c1", tool, arguments).await
    }

    pub(crate) async fn call_as(&self, id: &str, tool: &str, arguments: &str) -> ToolCallOutput {
        let running = self.start(id, tool, arguments, &CancellationToken::new());
        tokio::time::timeout(LONG, running)
            .await
            .expect("the call ends")
            .expect("the call is decided")
    }

    /// Runs a shell command as the call `c1`.
    pub(crate) async fn exec(&self, script: &str) -> ToolCallOutput {
        self.call(
            "exec_command",
            &serde_json::json!({"cmd": script}).to_string(),
        )
        .await
    }
}

fn environment(
    registry: &Arc<Registry>,
    hosts: &Arc<Hosts>,
    sink: &Arc<Recorder>,
    outputs: &Path,
    change: impl FnOnce(&Registry, &mut EnvironmentOptions),
) -> Environment {
    let mut options = EnvironmentOptions::new(
        "session-test".into(),
        Arc::clone(registry),
        Arc::new(SharedHosts(Arc::clone(hosts))),
        Arc::clone(sink) as Arc<dyn MessageSink>,
    );
    options.approval_mode = ApprovalMode::AllowAll;
    options.selection = Selection::Toolset(Toolset::All);
    options.outputs = Some(Outputs::new(outputs.to_owned(), Secrets::default()));
    change(registry, &mut options);
    Environment::new(options)
}

/// All built-in tools and these guests, as they are registered in the binary.
async fn registry(
    runtime: &Runtime,
    components: &Path,
    guests: Vec<(&'static str, Vec<u8>)>,
) -> Arc<Registry> {
    let mut registry = Registry::new();
    for name in BUILT_IN {
        let description: serde_json::Value =
            serde_json::from_slice(&built(components, name, "json")).unwrap();
        let definition: ToolDefinition =
            serde_json::from_value(description["definition"].clone()).unwrap();
        let source = ComponentSource::Precompiled {
            cwasm: built(components, name, "cwasm").leak(),
            wasm: built(components, name, "wasm").leak(),
        };
        let component = runtime.load(name, source, CapabilitySet::all()).unwrap();
        let sha256 = description["sha256"].as_str().unwrap().to_owned();
        registry
            .insert(RegisteredTool::component(
                runtime.clone(),
                component,
                definition,
                sha256,
            ))
            .unwrap();
    }
    for (name, bytes) in guests {
        let source = ComponentSource::Wasm(bytes);
        let component = runtime.load(name, source, CapabilitySet::all()).unwrap();
        let definition = runtime.definition(&component).await.unwrap();
        registry
            .insert(RegisteredTool::component(
                runtime.clone(),
                component,
                definition,
                "00".repeat(32),
            ))
            .unwrap();
    }
    Arc::new(registry)
}

fn built(components: &Path, name: &str, extension: &str) -> Vec<u8> {
    let path = components.join(format!("{name}.{extension}"));
    std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run: make components", path.display()))
}

/// The processes of this machine whose command line holds `word`.
pub(crate) fn processes_with(word: &str) -> usize {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return 0;
    };
    entries
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(word))
        .count()
}

/// Waits until no process has `word` in its command line.
pub(crate) async fn gone(word: &str) {
    for _ in 0..500 {
        if processes_with(word) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("a process with {word} is still there");
}
