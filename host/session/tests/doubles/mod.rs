//! Tools written in the host's language, behind the real Environment.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use floe_environment::{Origin, RegisteredTool, Registry, ToolBody};
use floe_protocol::{OmniMessage, Permission, ToolDefinition};
use floe_runtime::capability::Failure;
use floe_runtime::capability::commands::CommandSpec;
use floe_runtime::capability::subagents::{SubagentRequest, SubagentState};
use floe_runtime::{Call, CallEnd, CallRequest, Capability, CapabilitySet, HostFacts, ToolResult};
use floe_session::Observer;
use serde_json::{Value, json};

/// Says a word.
struct Speak(&'static str);

#[async_trait]
impl ToolBody for Speak {
    fn imports(&self) -> CapabilitySet {
        CapabilitySet::EMPTY
    }

    async fn permission_for(&self, _arguments: &str) -> Result<Permission, String> {
        Ok(Permission::None)
    }

    async fn run(&self, request: CallRequest) -> Call {
        request.output.write(self.0);
        returned()
    }
}

/// Runs `cmd` and shows what it prints until it ends; with `keep` it returns at the first output and leaves the command running.
struct Shell;

#[async_trait]
impl ToolBody for Shell {
    fn imports(&self) -> CapabilitySet {
        CapabilitySet::EMPTY.with(Capability::Commands)
    }

    async fn permission_for(&self, _arguments: &str) -> Result<Permission, String> {
        Ok(Permission::Execute)
    }

    async fn run(&self, request: CallRequest) -> Call {
        let arguments: Value = serde_json::from_str(&request.arguments).unwrap();
        let spec = CommandSpec {
            command: arguments["cmd"].as_str().unwrap().to_owned(),
            args: None,
            working_directory: None,
            environment: vec![],
            tty: false,
            raw_output: false,
        };
        let command = match request.hosts.commands.spawn(spec).await {
            Ok(command) => command,
            Err(failure) => {
                return Call {
                    end: CallEnd::Failed(failure),
                    facts: HostFacts::default(),
                };
            }
        };
        loop {
            let batch = tokio::select! {
                batch = command.read_output(1 << 16, Duration::from_secs(30)) => batch.unwrap(),
                () = request.cancel.cancelled() => {
                    return Call {
                        end: CallEnd::Cancelled,
                        facts: HostFacts::default(),
                    };
                }
            };
            for chunk in &batch.chunks {
                request.output.write(&String::from_utf8_lossy(&chunk.data));
            }
            if arguments["keep"] == true {
                command.keep(false).await.unwrap();
                return returned();
            }
            if batch.ended {
                return returned();
            }
        }
    }
}

/// Gives a task to a child and returns its answer, or how else it ended; its Session's id is the note. A child that is not to be
/// kept goes with the call.
struct Spawn;

#[async_trait]
impl ToolBody for Spawn {
    fn imports(&self) -> CapabilitySet {
        CapabilitySet::EMPTY.with(Capability::Subagents)
    }

    async fn permission_for(&self, _arguments: &str) -> Result<Permission, String> {
        Ok(Permission::None)
    }

    async fn run(&self, request: CallRequest) -> Call {
        let arguments: Value = serde_json::from_str(&request.arguments).unwrap();
        let end = tokio::select! {
            end = delegate(&arguments, &request) => match end {
                Ok(note) => CallEnd::Returned(ToolResult {
                    note: Some(note),
                    ..ToolResult::default()
                }),
                Err(failure) => CallEnd::Failed(failure),
            },
            () = request.cancel.cancelled() => CallEnd::Cancelled,
        };
        Call {
            end,
            facts: HostFacts::default(),
        }
    }
}

async fn delegate(arguments: &Value, request: &CallRequest) -> Result<String, Failure> {
    let text = |name: &str| arguments[name].as_str().map(str::to_owned);
    let subagents = &request.hosts.subagents;
    let prompt = text("prompt").unwrap();
    let child = match text("task_id") {
        Some(task_id) => {
            let child = subagents.attach(&task_id).await?;
            child.send_prompt(&prompt).await?;
            child
        }
        None => {
            let asked = SubagentRequest {
                prompt,
                agent_id: text("agent_id"),
                model: text("model_id"),
                description: text("description"),
            };
            subagents.start(asked).await?
        }
    };
    loop {
        let status = child.wait(Duration::from_secs(60)).await?;
        if matches!(
            status.state,
            SubagentState::Running | SubagentState::WaitingForApproval
        ) {
            continue;
        }
        if arguments["keep"] != false {
            child.keep().await?;
        }
        request.output.write(&match status.failure {
            None => status.text,
            Some(failure) => format!("{:?}: {}", status.state, failure.message),
        });
        return Ok(child.subagent_id());
    }
}

fn returned() -> Call {
    Call {
        end: CallEnd::Returned(ToolResult::default()),
        facts: HostFacts::default(),
    }
}

fn definition(name: &str, permission: Permission, parameters: Value) -> ToolDefinition {
    serde_json::from_value(json!({
        "name": name,
        "description": "A double.",
        "parameters": parameters,
        "permission": permission,
    }))
    .unwrap()
}

/// `list` reads and says `src`; `file_write` says `written`; `exec_command` runs a command; `spawn_subagent` starts children.
pub(crate) fn registry() -> Arc<Registry> {
    let mut registry = Registry::new();
    let nothing = json!({"type": "object", "properties": {}});
    let command = json!({
        "type": "object",
        "properties": {"cmd": {"type": "string"}, "keep": {"type": "boolean"}},
        "required": ["cmd"],
    });
    let task = json!({
        "type": "object",
        "properties": {
            "prompt": {"type": "string"},
            "task_id": {"type": "string"},
            "agent_id": {"type": "string"},
            "model_id": {"type": "string"},
            "description": {"type": "string"},
            "keep": {"type": "boolean"},
        },
        "required": ["prompt"],
    });
    let mut spawn = definition("spawn_subagent", Permission::None, task);
    spawn.timeout_ms = 0;
    let tools: [(ToolDefinition, Arc<dyn ToolBody>); 4] = [
        (spawn, Arc::new(Spawn)),
        (
            definition("list", Permission::ReadOnly, nothing.clone()),
            Arc::new(Speak("src")),
        ),
        (
            definition("file_write", Permission::Write, nothing),
            Arc::new(Speak("written")),
        ),
        (
            definition("exec_command", Permission::Execute, command),
            Arc::new(Shell),
        ),
    ];
    for (definition, body) in tools {
        let imports = body.imports();
        registry
            .insert(RegisteredTool {
                definition,
                body,
                declared: imports,
                granted: imports,
                workspace: floe_sandbox::WorkspaceMode::WorkspaceWrite,
                origin: Origin::BuiltIn,
                sha256: "0".repeat(64),
            })
            .unwrap();
    }
    Arc::new(registry)
}

/// Keeps the stream.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<OmniMessage>>);

impl Kept {
    pub(crate) fn messages(&self) -> Vec<OmniMessage> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Kept {
    fn message(&self, message: &OmniMessage) {
        self.0.lock().unwrap().push(message.clone());
    }
}
