//! The loop between a model and its tools: turns until the model has nothing more to call (spec/environment.md 1.10).
//!
//! Its promises, each a test: a call's decision and output follow the call; outputs go to the model in call order, whatever order they
//! ended in; a request's end follows its token count at once; a request that ended `completed` is a round that is committed; the
//! abort is the last message of a run that did not end by itself.

mod attempt;
#[cfg(test)]
mod tests;
mod turn;

use std::sync::{Arc, Mutex};

use floe_environment::{MessageSink, ToolCallOutput};
use floe_model::ModelDriver;
use floe_protocol::{EventMsg, ModelMsg, OmniMessage, Phase, Role, StopReason, ToolCall};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::RunEnd;
use crate::background::{self, Background};
use crate::conversation::Conversation;
use crate::message_queue::MessageQueue;
use crate::plan::Plans;
use crate::refusals::Refusals;
use crate::tool_call_ids::ToolCallIds;
use crate::tools::Tools;
pub(crate) use attempt::{interrupted, whole_call};
use turn::Turn;

/// Why an interrupted run ended, in its abort event.
const ABORTED_BY_USER: &str = "aborted by user";

/// What one Session's loop works with.
pub(crate) struct AgentLoop {
    pub(crate) queue: Arc<MessageQueue>,
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) background: Arc<dyn Background>,
    pub(crate) plans: Arc<Plans>,
    pub(crate) model: Arc<dyn ModelDriver>,
    pub(crate) ids: Arc<Mutex<ToolCallIds>>,
    pub(crate) system_prompt: String,
    /// Model requests of a run; 0 or less for any number.
    pub(crate) max_turns: i64,
    /// Tokens of an answer; the service's own limit where none.
    pub(crate) max_tokens: Option<u64>,
}

/// A call that was run, with its output.
pub(crate) struct Answered {
    pub(crate) call: ToolCall,
    pub(crate) output: ToolCallOutput,
}

impl AgentLoop {
    /// Answers one input.
    pub(crate) async fn run(
        &self,
        conversation: &mut Conversation,
        input: ModelMsg,
        cancel: &CancellationToken,
    ) -> RunEnd {
        // What ended meanwhile stands before what the person says now, for the model as in the Trace.
        let mut new = self.reports();
        self.queue.record(&OmniMessage::model(input.clone()));
        new.push(input);
        self.work(conversation, new, cancel).await
    }

    /// Lets the model work on what the harness tells it.
    pub(crate) async fn run_told(
        &self,
        conversation: &mut Conversation,
        told: ModelMsg,
        cancel: &CancellationToken,
    ) -> RunEnd {
        let mut new = self.reports();
        new.push(told);
        self.work(conversation, new, cancel).await
    }

    /// Lets the model work on what has ended in the background; none where nothing has that it was not told of.
    pub(crate) async fn run_on(
        &self,
        conversation: &mut Conversation,
        cancel: &CancellationToken,
    ) -> Option<RunEnd> {
        let new = self.reports();
        if new.is_empty() {
            return None;
        }
        Some(self.work(conversation, new, cancel).await)
    }

    async fn work(
        &self,
        conversation: &mut Conversation,
        new: Vec<ModelMsg>,
        cancel: &CancellationToken,
    ) -> RunEnd {
        let mut input = conversation.take_input(new);
        let mut refusals = Refusals::default();
        let mut turns = 0;
        loop {
            if cancel.is_cancelled() {
                conversation.carry_over(input);
                return self.abort(ABORTED_BY_USER, RunEnd::Interrupted);
            }
            if self.max_turns > 0 && turns >= self.max_turns {
                conversation.carry_over(input);
                return self.stop_at_max_turns();
            }
            turns += 1;
            self.announce_tools(conversation);
            match self.turn(conversation, input, cancel).await {
                Turn::Ended { text } => {
                    input = self.reports();
                    if input.is_empty() {
                        return RunEnd::Ended { text };
                    }
                }
                Turn::Called { answered } => {
                    let refused = answered
                        .iter()
                        .filter(|answered| refusals.note(&answered.call, &answered.output))
                        .map(|answered| answered.call.name.clone())
                        .next();
                    let plan = answered
                        .iter()
                        .find_map(|answered| self.plan_of(&answered.call, &answered.output));
                    input = answered
                        .into_iter()
                        .map(|answered| output_message(answered.output))
                        .collect();
                    input.extend(self.reports());
                    if let Some(plan) = plan {
                        conversation.carry_over(input);
                        return RunEnd::PlanProposed { plan };
                    }
                    if let Some(tool) = refused {
                        conversation.carry_over(input);
                        return self.abort(
                            "stopped by repeated refusals",
                            RunEnd::StoppedByRefusals { tool },
                        );
                    }
                    self.sync().await;
                }
                Turn::Interrupted { reason } => return self.abort(reason, RunEnd::Interrupted),
                Turn::Failed { reason } => {
                    return self.abort(&reason.clone(), RunEnd::Failed { reason });
                }
            }
        }
    }

    /// The plan that a call handed in, which waits from now on.
    fn plan_of(&self, call: &ToolCall, output: &ToolCallOutput) -> Option<String> {
        let waiting = self.plans.ended(call, output)?;
        self.queue.emit(waiting.event());
        Some(waiting.plan)
    }

    /// What has ended in the background since the last time, for the model. Recorded as it is given.
    fn reports(&self) -> Vec<ModelMsg> {
        self.background
            .take_done()
            .iter()
            .map(|task| self.queue.emit_for_model(background::report(task)))
            .collect()
    }

    /// Makes the Trace durable. What cannot be written is known to the queue, which tells it and keeps stronger tools from running.
    async fn sync(&self) {
        let queue = Arc::clone(&self.queue);
        let _ = tokio::task::spawn_blocking(move || queue.sync()).await;
    }

    /// The last message of a run that did not end by itself.
    fn abort(&self, reason: &str, end: RunEnd) -> RunEnd {
        self.queue.emit(OmniMessage::event(EventMsg::Abort {
            reason: Some(reason.to_owned()),
        }));
        end
    }

    fn stop_at_max_turns(&self) -> RunEnd {
        let text = format!("[reached max turns ({}); stopping]", self.max_turns);
        let fragment = |event_type, text: &str, stop_reason| ModelMsg::PartialText {
            role: Role::Assistant,
            event_type,
            text: text.to_owned(),
            stop_reason,
        };
        let failed = Some(StopReason::Failed);
        self.queue.emit_together(
            [
                fragment(Phase::Start, "", None),
                fragment(Phase::Delta, &text, None),
                fragment(Phase::Stop, "", failed),
                ModelMsg::Text {
                    role: Role::Assistant,
                    text,
                    sender: None,
                    stop_reason: failed,
                    fidelity: None,
                },
            ]
            .map(OmniMessage::model),
        );
        RunEnd::Failed {
            reason: format!("reached max turns ({})", self.max_turns),
        }
    }

    /// Tells of the tools before the first request, and again where they have changed.
    fn announce_tools(&self, conversation: &mut Conversation) {
        let tools = self.tools.list();
        let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
        if conversation.tool_names.as_ref() == Some(&names) {
            return;
        }
        conversation.tool_names = Some(names);
        let tools = tools
            .into_iter()
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                })
            })
            .collect();
        self.queue
            .emit(OmniMessage::event(EventMsg::ToolListReady { tools }));
    }
}

/// An output as the model's next input.
pub(crate) fn output_message(output: ToolCallOutput) -> ModelMsg {
    ModelMsg::ToolCallOutput {
        role: Role::User,
        output: output.output,
        images: (!output.images.is_empty()).then_some(output.images),
        tool_call_id: output.tool_call_id,
        stop_reason: output.stop_reason,
        facts: output.facts,
    }
}
