//! One request to the model. Calls are handed to the Environment while the rest of the answer still streams.

use std::sync::PoisonError;

use floe_environment::{CallOutcome, MessageSink, ToolCallOutput};
use floe_model::{ModelAnswer, ModelError, ModelRequest};
use floe_protocol::{EventMsg, ModelMsg, OmniMessage, Role, StopReason, ToolCall};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{AgentLoop, Answered};
use crate::tool_call_ids::AnswerIds;

/// The note of a call that never came to a decision (spec/environment.md 1.10).
const INTERRUPTED: &str = "[interrupted: tool aborted by user]";

/// What one request brought.
pub(super) struct Attempt {
    /// The model's complete messages, in order.
    pub(super) messages: Vec<ModelMsg>,
    /// The calls that were handed over, in call order.
    pub(super) calls: Vec<RunningCall>,
    pub(super) result: Result<ModelAnswer, ModelError>,
}

/// A call that was handed to the Environment.
pub(super) struct RunningCall {
    call: ToolCall,
    output: BoxFuture<'static, Option<ToolCallOutput>>,
}

impl RunningCall {
    /// The call's id.
    pub(super) fn id(&self) -> &str {
        &self.call.tool_call_id
    }
}

impl AgentLoop {
    /// Asks the model once and streams what it says.
    pub(super) async fn attempt(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Attempt {
        self.queue
            .emit(OmniMessage::event(EventMsg::RequestBegin {}));
        let mut messages = Vec::new();
        let mut calls = Vec::new();
        let mut answer_ids = AnswerIds::default();
        let mut emit = |mut message: ModelMsg| {
            {
                let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
                answer_ids.rename(&mut message, &mut ids);
            }
            if message.is_partial() {
                self.queue.emit(OmniMessage::model(message));
                return;
            }
            self.queue.emit(OmniMessage::model(message.clone()));
            if let Some(call) = whole_call(&message) {
                calls.push(RunningCall {
                    output: self.tools.execute(call.clone(), cancel.clone()),
                    call,
                });
            }
            messages.push(message);
        };
        let result = self.model.stream(request, &mut emit, cancel).await;
        Attempt {
            messages,
            calls,
            result,
        }
    }

    /// Waits for all calls; the outputs are in call order. A call that was interrupted before its decision has none.
    pub(super) async fn collect(
        &self,
        calls: Vec<RunningCall>,
        cancel: &CancellationToken,
    ) -> (Vec<Answered>, Vec<ToolCall>) {
        let mut answered = Vec::new();
        let mut undecided = Vec::new();
        for RunningCall { call, output } in calls {
            match output.await {
                Some(output) => answered.push(Answered { call, output }),
                None if cancel.is_cancelled() => undecided.push(call),
                None => answered.push(self.lost(call)),
            }
        }
        (answered, undecided)
    }

    /// Every call gets an output, also one whose task went away.
    fn lost(&self, call: ToolCall) -> Answered {
        let output = ToolCallOutput {
            tool_call_id: call.tool_call_id.clone(),
            output: "[tool error] the host lost this call; its log says where".into(),
            images: Vec::new(),
            stop_reason: StopReason::Failed,
            facts: None,
            end: CallOutcome::Ran,
        };
        self.queue
            .emit(OmniMessage::model(ModelMsg::ToolCallOutput {
                role: Role::User,
                output: output.output.clone(),
                images: None,
                tool_call_id: output.tool_call_id.clone(),
                stop_reason: output.stop_reason,
                facts: None,
            }));
        Answered { call, output }
    }
}

/// What the model reads of a call that never came to a decision; for the model only, since nothing happened.
pub(crate) fn interrupted(call: &ToolCall) -> ToolCallOutput {
    ToolCallOutput {
        tool_call_id: call.tool_call_id.clone(),
        output: INTERRUPTED.into(),
        images: Vec::new(),
        stop_reason: StopReason::Aborted,
        facts: None,
        end: CallOutcome::Interrupted,
    }
}

/// A call that may run: one that was cut off may not.
pub(crate) fn whole_call(message: &ModelMsg) -> Option<ToolCall> {
    match message {
        ModelMsg::ToolCall {
            name,
            arguments,
            tool_call_id,
            stop_reason: StopReason::Completed,
            ..
        } => Some(ToolCall {
            name: name.clone(),
            arguments: arguments.clone(),
            tool_call_id: tool_call_id.clone(),
        }),
        _ => None,
    }
}
