//! The door as a whole, over tools that are closures: the order of the gates, the one decision, and what runs in the end.

mod asking;
mod children;
mod gates;
mod listing;
mod order;
mod running;
mod widening;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use floe_protocol::{
    ApprovalDecision, ApprovalMode, Body, DecidedBy, Decision, EventMsg, Mode, ModelMsg,
    OmniMessage, Permission, Phase, Scope, StopReason, ToolCall, ToolDefinition, Truncation,
};
use floe_runtime::{
    Call, CallEnd, CallRequest, Capability, CapabilitySet, HostFacts, Hosts, ToolResult,
};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::*;

/// Keeps every message, and says whether records are kept.
#[derive(Default)]
struct Recorder {
    messages: Mutex<Vec<OmniMessage>>,
    /// After so many messages nothing is recorded any more.
    full_after: Mutex<Option<usize>>,
}

impl MessageSink for Recorder {
    fn emit(&self, message: OmniMessage) {
        self.messages.lock().unwrap().push(message);
    }

    fn recording(&self) -> Result<(), String> {
        match *self.full_after.lock().unwrap() {
            Some(limit) if self.messages.lock().unwrap().len() >= limit => {
                Err("the disk is full".into())
            }
            _ => Ok(()),
        }
    }
}

impl Recorder {
    fn messages(&self) -> Vec<OmniMessage> {
        self.messages.lock().unwrap().clone()
    }

    fn decisions(&self) -> Vec<ApprovalDecision> {
        self.messages()
            .into_iter()
            .filter_map(|message| match message.body {
                Body::EventMsg(EventMsg::ApprovalDecision(decision)) => Some(decision),
                _ => None,
            })
            .collect()
    }

    /// The kinds of the messages, in order.
    fn shape(&self) -> Vec<String> {
        self.messages()
            .iter()
            .map(|message| match &message.body {
                Body::EventMsg(EventMsg::ApprovalDecision(decision)) => {
                    format!("decision {:?}", decision.decision)
                }
                Body::EventMsg(_) => "event".into(),
                Body::ModelMsg(ModelMsg::PartialToolCallOutput {
                    event_type, output, ..
                }) => match event_type {
                    Phase::Start => "start".into(),
                    Phase::Delta => format!("delta {output}"),
                    Phase::Stop => "stop".into(),
                },
                Body::ModelMsg(ModelMsg::ToolCallOutput { .. }) => "complete".into(),
                other => format!("{other:?}"),
            })
            .collect()
    }
}

struct NoHosts;

impl HostsFactory for NoHosts {
    fn hosts(&self, _call: &CallSite) -> Arc<Hosts> {
        Arc::new(Hosts::deny())
    }
}

type Work = Box<dyn Fn(&CallRequest) -> ToolResult + Send + Sync>;

/// A tool that is a closure.
struct Closure {
    imports: CapabilitySet,
    permission: Result<Permission, String>,
    work: Work,
    /// Where it is set, the call waits for it before it returns.
    gate: Option<Arc<Notify>>,
    running: Arc<AtomicUsize>,
}

#[async_trait]
impl ToolBody for Closure {
    fn imports(&self) -> CapabilitySet {
        self.imports
    }

    async fn permission_for(&self, _arguments: &str) -> Result<Permission, String> {
        self.permission.clone()
    }

    async fn run(&self, request: CallRequest) -> Call {
        self.running.fetch_add(1, Ordering::SeqCst);
        let result = (self.work)(&request);
        let end = match &self.gate {
            Some(gate) => tokio::select! {
                () = gate.notified() => CallEnd::Returned(result),
                () = request.cancel.cancelled() => CallEnd::Cancelled,
            },
            None => CallEnd::Returned(result),
        };
        Call {
            end,
            facts: HostFacts::default(),
        }
    }
}

fn definition(name: &str, permission: Permission) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        aliases: Vec::new(),
        description: format!("The tool {name}."),
        parameters: json!({"type": "object", "properties": {"text": {"type": "string"}}}),
        permission,
        permission_varies: false,
        for_model: Default::default(),
        timeout_ms: 1000,
        max_output_length: 16000,
        truncation: Truncation::HeadTail,
        output_schema: None,
        metadata: Vec::new(),
    }
}

struct House {
    registry: Registry,
    running: Arc<AtomicUsize>,
    gate: Arc<Notify>,
    sink: Arc<Recorder>,
}

impl House {
    /// `reader` (alias `look`) echoes its text, `writer` and `runner` need more, `hidden` is in no toolset but `all`.
    fn new() -> House {
        let mut house = House {
            registry: Registry::new(),
            running: Arc::default(),
            gate: Arc::default(),
            sink: Arc::default(),
        };
        let mut reader = definition("reader", Permission::ReadOnly);
        reader.aliases = vec!["look".into()];
        house.add(reader, &[Capability::Workspace]);
        house.add(
            definition("writer", Permission::Write),
            &[Capability::Edits],
        );
        house.add(
            definition("runner", Permission::Execute),
            &[Capability::Commands, Capability::Workspace],
        );
        house
    }

    fn add(&mut self, definition: ToolDefinition, imports: &[Capability]) {
        self.add_body(
            definition,
            imports,
            Ok(Permission::None),
            None,
            Box::new(echo),
        );
    }

    fn add_body(
        &mut self,
        definition: ToolDefinition,
        imports: &[Capability],
        permission: Result<Permission, String>,
        gate: Option<Arc<Notify>>,
        work: Work,
    ) {
        let imports: CapabilitySet = imports.iter().copied().collect();
        self.registry
            .insert(RegisteredTool {
                definition,
                body: Arc::new(Closure {
                    imports,
                    permission,
                    work,
                    gate,
                    running: Arc::clone(&self.running),
                }),
                declared: CapabilitySet::all(),
                granted: CapabilitySet::all(),
                workspace: floe_sandbox::WorkspaceMode::WorkspaceWrite,
                origin: Origin::Plugin("test".into()),
                sha256: "00".repeat(32),
            })
            .unwrap();
    }

    fn open(self, change: impl FnOnce(&mut EnvironmentOptions)) -> Open {
        let mut options = EnvironmentOptions::new(
            "session-test".into(),
            Arc::new(self.registry),
            Arc::new(NoHosts),
            Arc::clone(&self.sink) as Arc<dyn MessageSink>,
        );
        options.approval_mode = ApprovalMode::AllowAll;
        options.selection = Selection::Toolset(Toolset::All);
        change(&mut options);
        Open {
            environment: Environment::new(options),
            running: self.running,
            gate: self.gate,
            sink: self.sink,
        }
    }
}

struct Open {
    environment: Environment,
    running: Arc<AtomicUsize>,
    gate: Arc<Notify>,
    sink: Arc<Recorder>,
}

impl Open {
    fn start(&self, name: &str, arguments: &str, id: &str) -> CallFuture {
        self.environment
            .execute(call(name, arguments, id), CancellationToken::new())
    }

    async fn run(&self, name: &str, arguments: &str) -> ToolCallOutput {
        self.start(name, arguments, "c1").await.expect("decided")
    }

    async fn wait_for_question(&self) -> PendingApproval {
        loop {
            if let Some(pending) = self.environment.pending().pop() {
                return pending;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn call(name: &str, arguments: &str, id: &str) -> ToolCall {
    ToolCall {
        name: name.into(),
        arguments: arguments.into(),
        tool_call_id: id.into(),
    }
}

fn echo(request: &CallRequest) -> ToolResult {
    let arguments: serde_json::Value = serde_json::from_str(&request.arguments).unwrap();
    if let Some(text) = arguments["text"].as_str() {
        request.output.write(text);
    }
    ToolResult::default()
}

/// Answers as it is told, and counts.
struct Script(Answer, AtomicUsize);

impl Script {
    fn new(answer: Answer) -> Arc<Script> {
        Arc::new(Script(answer, AtomicUsize::new(0)))
    }
}

#[async_trait]
impl Approver for Script {
    async fn decide(&self, _question: &Question) -> Answer {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.clone()
    }
}

struct Panics;

#[async_trait]
impl Approver for Panics {
    async fn decide(&self, _question: &Question) -> Answer {
        panic!("the callback broke off");
    }
}

/// Breaks off before there is a future to wait for, as an approver may that is written without `async`.
struct PanicsAtOnce;

impl Approver for PanicsAtOnce {
    fn decide<'life0, 'life1, 'async_trait>(
        &'life0 self,
        _question: &'life1 Question,
    ) -> std::pin::Pin<Box<dyn Future<Output = Answer> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        panic!("the callback broke off at once")
    }
}
