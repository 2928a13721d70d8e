//! The model, the tools and the observer of these tests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use floe_environment::{CallOutcome, MessageSink, ToolCallOutput, ToolListing};
use floe_model::{ModelAnswer, ModelDriver, ModelError, ModelErrorKind, ModelRequest};
use floe_protocol::{
    AgentId, ApprovalDecision, ApprovalMode, BackgroundKind, BackgroundTask, Body, DecidedBy,
    Decision, DecisionKind, EventMsg, Home, Mode, ModelMsg, OmniMessage, Permission, Phase, Role,
    Scope, SessionId, SessionMeta, StopReason, TokenCount, ToolCall,
};
use floe_trace::TraceWriter;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::super::AgentLoop;
use crate::background::Background;
use crate::conversation::Conversation;
use crate::message_queue::MessageQueue;
use crate::tools::Tools;
use crate::{Observer, RunEnd};

/// A piece of an answer.
pub(super) enum Step {
    Say(&'static str),
    /// Id, tool, arguments.
    Call(&'static str, &'static str, &'static str),
    /// A call that was cut off, with the reason.
    CutCall(&'static str, StopReason),
    /// Waits until the test goes on, or is cancelled.
    Until(Arc<Notify>),
    /// Ends the request with an error.
    Fail(ModelErrorKind),
}

/// Answers the n-th request with the n-th list of steps.
pub(super) struct Model {
    answers: Mutex<VecDeque<Vec<Step>>>,
    pub(super) requests: Mutex<Vec<ModelRequest>>,
}

#[async_trait]
impl ModelDriver for Model {
    fn model_id(&self) -> &str {
        "stage"
    }

    fn provider(&self) -> &str {
        "test"
    }

    fn context_window(&self) -> Option<u64> {
        None
    }

    fn vision(&self) -> bool {
        true
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        emit: &mut (dyn FnMut(ModelMsg) + Send),
        cancel: &CancellationToken,
    ) -> Result<ModelAnswer, ModelError> {
        self.requests.lock().unwrap().push(request.clone());
        let steps = self.answers.lock().unwrap().pop_front();
        for step in steps.expect("the test wrote enough answers") {
            match step {
                Step::Say(text) => say(text, emit),
                Step::Call(id, name, arguments) => {
                    call(id, name, arguments, StopReason::Completed, emit);
                }
                Step::CutCall(id, reason) => call(id, "list", "{\"pa", reason, emit),
                Step::Until(notify) => {
                    tokio::select! {
                        () = notify.notified() => {}
                        () = cancel.cancelled() => return Err(ModelError::aborted()),
                    }
                }
                Step::Fail(kind) => return Err(ModelError::new(kind, "it broke")),
            }
        }
        Ok(ModelAnswer {
            usage: Some(TokenCount {
                output: 1,
                total: 1,
                ..TokenCount::default()
            }),
        })
    }
}

fn say(said: &str, emit: &mut (dyn FnMut(ModelMsg) + Send)) {
    let fragment = |event_type, text: &str| ModelMsg::PartialText {
        role: Role::Assistant,
        event_type,
        text: text.into(),
        stop_reason: None,
    };
    emit(fragment(Phase::Start, ""));
    emit(fragment(Phase::Delta, said));
    emit(fragment(Phase::Stop, ""));
    emit(ModelMsg::Text {
        role: Role::Assistant,
        text: said.into(),
        sender: None,
        stop_reason: Some(StopReason::Completed),
        fidelity: None,
    });
}

fn call(
    id: &str,
    name: &str,
    arguments: &str,
    stop_reason: StopReason,
    emit: &mut (dyn FnMut(ModelMsg) + Send),
) {
    let fragment = |event_type, arguments: &str| ModelMsg::PartialToolCall {
        event_type,
        name: None,
        arguments: arguments.into(),
        tool_call_id: id.into(),
        stop_reason: None,
    };
    emit(fragment(Phase::Start, ""));
    emit(fragment(Phase::Delta, arguments));
    emit(fragment(Phase::Stop, ""));
    emit(ModelMsg::ToolCall {
        name: name.into(),
        arguments: arguments.into(),
        tool_call_id: id.into(),
        stop_reason,
        fidelity: None,
    });
}

/// What a tool does.
#[derive(Clone)]
pub(super) enum Act {
    /// Answers with a text.
    Answer(&'static str),
    /// Answers once the test goes on, or is interrupted.
    AnswerAfter(Arc<Notify>, &'static str),
    /// Is denied.
    Deny,
    /// Waits for a decision that never comes.
    Ask,
    /// Its task goes away.
    Vanish,
}

/// Tools by name, which behave as the Environment promises to.
pub(super) struct StageTools {
    queue: Arc<MessageQueue>,
    acts: HashMap<&'static str, Act>,
    pub(super) executed: Arc<Mutex<Vec<ToolCall>>>,
}

impl Tools for StageTools {
    fn list(&self) -> Vec<ToolListing> {
        vec![ToolListing {
            name: "list".into(),
            description: "Lists.".into(),
            parameters: json!({"type": "object"}),
            output_schema: None,
            permission: Permission::ReadOnly,
            permission_varies: false,
            capabilities: vec![],
            origin: "built-in".into(),
        }]
    }

    fn mode(&self) -> Mode {
        Mode::Build
    }

    fn execute(
        &self,
        call: ToolCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Option<ToolCallOutput>> {
        self.executed.lock().unwrap().push(call.clone());
        let act = self.acts[call.name.as_str()].clone();
        let queue = Arc::clone(&self.queue);
        let task = tokio::spawn(async move {
            if matches!(act, Act::Vanish) {
                return None;
            }
            if matches!(act, Act::Ask) {
                cancel.cancelled().await;
                return None;
            }
            queue.emit(OmniMessage::event(EventMsg::ApprovalDecision(decision(
                &call,
                if matches!(act, Act::Deny) {
                    Decision::Deny
                } else {
                    Decision::Allow
                },
            ))));
            let mut output = ToolCallOutput {
                tool_call_id: call.tool_call_id.clone(),
                output: String::new(),
                images: vec![],
                stop_reason: StopReason::Completed,
                facts: None,
                end: CallOutcome::Ran,
            };
            match act {
                Act::Answer(text) => output.output = text.into(),
                Act::AnswerAfter(notify, text) => tokio::select! {
                    () = notify.notified() => output.output = text.into(),
                    () = cancel.cancelled() => {
                        output.output = "[interrupted: tool aborted by user]".into();
                        output.stop_reason = StopReason::Aborted;
                        output.end = CallOutcome::Interrupted;
                    }
                },
                Act::Deny => {
                    output.output = "Tool call denied by user.".into();
                    output.stop_reason = StopReason::Aborted;
                    output.end = CallOutcome::Denied;
                }
                Act::Ask | Act::Vanish => {}
            }
            for event_type in [Phase::Start, Phase::Stop] {
                queue.emit(OmniMessage::model(ModelMsg::PartialToolCallOutput {
                    role: Role::User,
                    event_type,
                    output: String::new(),
                    images: None,
                    tool_call_id: call.tool_call_id.clone(),
                    stop_reason: None,
                }));
            }
            queue.emit(OmniMessage::model(ModelMsg::ToolCallOutput {
                role: Role::User,
                output: output.output.clone(),
                images: None,
                tool_call_id: call.tool_call_id,
                stop_reason: output.stop_reason,
                facts: None,
            }));
            Some(output)
        });
        task.map(|ended| ended.ok().flatten()).boxed()
    }
}

fn decision(call: &ToolCall, decision: Decision) -> ApprovalDecision {
    ApprovalDecision {
        decision,
        tool_call_id: call.tool_call_id.clone(),
        tool: call.name.clone(),
        kind: DecisionKind::Call,
        mode: ApprovalMode::AllowAll,
        by: DecidedBy::Mode,
        gate: None,
        rule: None,
        scope: Scope::Once,
        arguments_sha256: String::new(),
        tool_sha256: None,
        capabilities: vec![],
        waited_ms: 0,
        widening: None,
    }
}

/// What has ended in the background, as the test says.
#[derive(Default)]
pub(super) struct StageBackground(Mutex<Vec<BackgroundTask>>);

impl StageBackground {
    /// A command of this id has ended well.
    pub(super) fn end(&self, id: &str) {
        self.0.lock().unwrap().push(BackgroundTask {
            kind: BackgroundKind::Command,
            id: id.into(),
            label: "make".into(),
            status: StopReason::Completed,
            detail: "exit code 0".into(),
            output: String::new(),
        });
    }
}

impl Background for StageBackground {
    fn take_done(&self) -> Vec<BackgroundTask> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[derive(Default)]
struct Kept(Mutex<Vec<OmniMessage>>);

impl Observer for Kept {
    fn message(&self, message: &OmniMessage) {
        self.0.lock().unwrap().push(message.clone());
    }
}

/// A loop on stage.
pub(super) struct Stage {
    _folder: tempfile::TempDir,
    observer: Arc<Kept>,
    queue: Arc<MessageQueue>,
    pub(super) model: Arc<Model>,
    pub(super) executed: Arc<Mutex<Vec<ToolCall>>>,
    pub(super) background: Arc<StageBackground>,
    pub(super) agent_loop: AgentLoop,
    conversation: tokio::sync::Mutex<Conversation>,
    pub(super) cancel: CancellationToken,
}

impl Stage {
    pub(super) fn new(
        answers: Vec<Vec<Step>>,
        acts: impl IntoIterator<Item = (&'static str, Act)>,
    ) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let writer = TraceWriter::create(&home, &AgentId::default(), &SessionId::generate());
        let observer = Arc::new(Kept::default());
        let queue = Arc::new(MessageQueue::new(
            writer,
            Arc::clone(&observer) as Arc<dyn Observer>,
            floe_environment::Secrets::default(),
        ));
        queue.begin(meta);
        let model = Arc::new(Model {
            answers: Mutex::new(answers.into()),
            requests: Mutex::default(),
        });
        let executed = Arc::default();
        let background = Arc::new(StageBackground::default());
        let agent_loop = AgentLoop {
            queue: Arc::clone(&queue),
            tools: Arc::new(StageTools {
                queue: Arc::clone(&queue),
                acts: acts.into_iter().collect(),
                executed: Arc::clone(&executed),
            }),
            plans: Arc::default(),
            background: Arc::clone(&background) as _,
            model: Arc::clone(&model) as Arc<dyn ModelDriver>,
            ids: Arc::default(),
            system_prompt: "Be good.".into(),
            max_turns: 100,
            max_tokens: None,
        };
        Stage {
            _folder: folder,
            observer,
            queue,
            model,
            executed,
            background,
            agent_loop,
            conversation: tokio::sync::Mutex::default(),
            cancel: CancellationToken::new(),
        }
    }

    pub(super) async fn run(&self, input: &str) -> RunEnd {
        let mut conversation = self.conversation.lock().await;
        self.agent_loop
            .run(&mut conversation, ModelMsg::user_text(input), &self.cancel)
            .await
    }

    pub(super) async fn run_on(&self) -> Option<RunEnd> {
        let mut conversation = self.conversation.lock().await;
        self.agent_loop
            .run_on(&mut conversation, &self.cancel)
            .await
    }

    /// What the model would be told next: as the loop knows it, and as the Trace says it.
    pub(super) async fn known_and_replayed(&self) -> (Vec<ModelMsg>, Vec<ModelMsg>) {
        let next = |conversation: &mut Conversation| {
            let input = conversation.take_input(vec![]);
            let all = conversation.with(&input);
            conversation.carry_over(input);
            all
        };
        let known = next(&mut *self.conversation.lock().await);
        let replayed = next(&mut crate::resume::conversation(self.trace()));
        (known, replayed)
    }

    /// What the observer saw.
    pub(super) fn stream(&self) -> Vec<OmniMessage> {
        self.observer.0.lock().unwrap().clone()
    }

    /// What the Trace holds.
    pub(super) fn trace(&self) -> Vec<OmniMessage> {
        floe_trace::read(&self.queue.trace_path().unwrap())
            .unwrap()
            .map(|record| record.unwrap().message)
            .collect()
    }

    /// The conversation of the n-th request, in short.
    pub(super) fn request(&self, index: usize) -> Vec<String> {
        self.model.requests.lock().unwrap()[index]
            .history
            .iter()
            .map(short)
            .collect()
    }

    /// Lets everything else run until nothing more happens by itself.
    pub(super) async fn settle(&self) {
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
    }
}

fn meta() -> SessionMeta {
    SessionMeta {
        session_id: "s".into(),
        provider: None,
        model_id: None,
        model_context_window: "unknown".into(),
        system_prompt: String::new(),
        agent_state: String::new(),
        workspace: String::new(),
        source: None,
        mode: floe_protocol::Mode::Build,
        approval_mode: ApprovalMode::AllowAll,
    }
}

/// A message of the conversation in a few words.
fn short(message: &ModelMsg) -> String {
    match message {
        ModelMsg::Text {
            role: Role::User,
            text,
            ..
        } if text.starts_with("[background_task_done]") => {
            let id = text.lines().find_map(|line| line.strip_prefix("id: "));
            format!("done: {}", id.unwrap_or_default())
        }
        ModelMsg::Text {
            role: Role::User,
            text,
            ..
        } => format!("user: {text}"),
        ModelMsg::Text { text, .. } => format!("model: {text}"),
        ModelMsg::ToolCall { tool_call_id, .. } => format!("call {tool_call_id}"),
        ModelMsg::ToolCallOutput {
            tool_call_id,
            output,
            ..
        } => format!("output {tool_call_id}: {output}"),
        other => format!("{other:?}"),
    }
}

/// A message of the stream or the Trace in a few words; fragments have an `~`.
pub(super) fn brief(message: &OmniMessage) -> String {
    match &message.body {
        Body::SessionMeta(_) => "meta".into(),
        Body::ModelMsg(message) if message.is_partial() => "~".into(),
        Body::ModelMsg(message) => short(message),
        Body::EventMsg(event) => match event {
            EventMsg::ApprovalDecision(decision) => format!("decision {}", decision.tool_call_id),
            EventMsg::Abort { reason } => {
                format!("abort: {}", reason.as_deref().unwrap_or_default())
            }
            EventMsg::TokenUsage { .. } => "tokens".into(),
            EventMsg::RequestBegin {} => "begin".into(),
            EventMsg::RequestEnd { status, .. } => format!("end {status}"),
            EventMsg::ToolListReady { .. } => "tools".into(),
            other => format!("{other:?}"),
        },
    }
}

/// Complete messages in a few words.
pub(super) fn briefs(messages: &[OmniMessage]) -> Vec<String> {
    messages
        .iter()
        .filter(|message| message.is_recordable())
        .map(brief)
        .collect()
}
