//! One turn: a request, made again where it fails and that may help, and the calls that its answer brought.

use std::time::Duration;

use floe_model::{ModelAnswer, ModelError, ModelErrorKind, ModelRequest, ToolOffer};
use floe_protocol::{EventMsg, ModelMsg, OmniMessage, StopReason, TokenCount, ToolCall};
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempt, RunningCall, interrupted};
use super::{ABORTED_BY_USER, AgentLoop, Answered, output_message};
use crate::blocks::{self, Remains};
use crate::clamp;
use crate::conversation::Conversation;
use crate::reconnect;
use crate::system_prompt;

/// How a turn ended.
pub(super) enum Turn {
    /// With an answer that calls nothing.
    Ended { text: String },
    /// With outputs for the model, in call order.
    Called { answered: Vec<Answered> },
    /// By the person; what could not be delivered is carried over.
    Interrupted { reason: &'static str },
    /// By the model; what could not be delivered is carried over.
    Failed { reason: String },
}

/// What happens after a failed attempt.
enum Next {
    TryAgain,
    Interrupted(&'static str),
    GiveUp,
}

impl AgentLoop {
    /// Asks the model until it answers, and runs what it calls.
    pub(super) async fn turn(
        &self,
        conversation: &mut Conversation,
        input: Vec<ModelMsg>,
        cancel: &CancellationToken,
    ) -> Turn {
        let mut failed: Vec<Remains> = Vec::new();
        let mut number = 0;
        loop {
            number += 1;
            let mut asked = input.clone();
            asked.extend(blocks::turn_retried(&failed));
            let request = self.request(conversation, &asked);
            // A plan of an answer that broke off is none.
            self.plans.forget_unfinished();
            let Attempt {
                messages,
                calls,
                result,
            } = self.attempt(&request, cancel).await;
            let error = match result {
                Ok(answer) => {
                    self.end_request(conversation, &answer, number);
                    let text = text_of(&messages);
                    conversation.commit(asked, messages);
                    return self.finish(conversation, text, calls, cancel).await;
                }
                Err(error) => error,
            };
            let wait = reconnect::wait_after(number, &error);
            self.end_failed_request(conversation, &error, number, wait);
            let (remains, next) = self
                .after_failure(messages, calls, &error, wait, cancel)
                .await;
            failed.push(remains);
            let turn = match next {
                Next::TryAgain => continue,
                Next::Interrupted(reason) => Turn::Interrupted { reason },
                Next::GiveUp => Turn::Failed {
                    reason: reconnect::reason_to_stop(&error),
                },
            };
            // The round is not committed: its input goes with the next one, and what was done is told in a text.
            let mut undelivered = input;
            undelivered.extend(blocks::turn_aborted(&failed));
            conversation.carry_over(undelivered);
            return turn;
        }
    }

    fn request(&self, conversation: &Conversation, input: &[ModelMsg]) -> ModelRequest {
        let tools = self.tools.list().into_iter().map(|tool| ToolOffer {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters,
        });
        let mut request = ModelRequest {
            system_prompt: system_prompt::in_mode(&self.system_prompt, self.tools.mode()),
            history: conversation.with(input),
            tools: tools.collect(),
            max_tokens: None,
        };
        request.max_tokens =
            clamp::max_tokens(self.max_tokens, self.model.context_window(), &request);
        request
    }

    /// A committed round: run what it called.
    async fn finish(
        &self,
        conversation: &mut Conversation,
        text: String,
        calls: Vec<RunningCall>,
        cancel: &CancellationToken,
    ) -> Turn {
        if calls.is_empty() {
            return Turn::Ended { text };
        }
        let order: Vec<String> = calls.iter().map(|call| call.id().to_owned()).collect();
        let (mut answered, undecided) = self.collect(calls, cancel).await;
        if !cancel.is_cancelled() {
            return Turn::Called { answered };
        }
        // Every committed call is answered, or the service refuses the next request.
        answered.extend(undecided.into_iter().map(|call: ToolCall| Answered {
            output: interrupted(&call),
            call,
        }));
        answered.sort_by_key(|answered| {
            order
                .iter()
                .position(|id| *id == answered.call.tool_call_id)
        });
        conversation.carry_over(
            answered
                .into_iter()
                .map(|answered| output_message(answered.output))
                .collect(),
        );
        Turn::Interrupted {
            reason: ABORTED_BY_USER,
        }
    }

    /// Lets the calls of a failed attempt end, and waits for the next one where there is one.
    async fn after_failure(
        &self,
        messages: Vec<ModelMsg>,
        calls: Vec<RunningCall>,
        error: &ModelError,
        wait: Option<Duration>,
        cancel: &CancellationToken,
    ) -> (Remains, Next) {
        let waited = async {
            if let Some(wait) = wait {
                tokio::select! {
                    () = cancel.cancelled() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
        };
        let ((answered, _), ()) = tokio::join!(self.collect(calls, cancel), waited);
        let remains = Remains {
            messages,
            outputs: answered
                .into_iter()
                .map(|answered| answered.output)
                .collect(),
        };
        let next = if error.kind == ModelErrorKind::Aborted {
            Next::Interrupted(ABORTED_BY_USER)
        } else if cancel.is_cancelled() {
            Next::Interrupted("aborted during reconnect backoff")
        } else if wait.is_some() {
            Next::TryAgain
        } else {
            Next::GiveUp
        };
        (remains, next)
    }

    fn end_request(&self, conversation: &mut Conversation, answer: &ModelAnswer, number: u32) {
        let end = EventMsg::RequestEnd {
            status: StopReason::Completed,
            error_message: None,
            attempt: (number > 1).then_some(number),
            retry_in_ms: None,
        };
        self.emit_end(conversation, answer.usage, end);
    }

    fn end_failed_request(
        &self,
        conversation: &mut Conversation,
        error: &ModelError,
        number: u32,
        wait: Option<Duration>,
    ) {
        let aborted = error.kind == ModelErrorKind::Aborted;
        let end = EventMsg::RequestEnd {
            status: error.kind.stop_reason(),
            error_message: (!aborted).then(|| error.message.clone()),
            attempt: Some(number),
            retry_in_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        };
        self.emit_end(conversation, error.usage, end);
    }

    /// The token count, where there is one, and right after it the end of the request.
    fn emit_end(&self, conversation: &mut Conversation, usage: Option<TokenCount>, end: EventMsg) {
        let usage = usage.map(|request| {
            conversation.tokens += request;
            EventMsg::TokenUsage {
                session: conversation.tokens,
                request,
            }
        });
        self.queue
            .emit_together(usage.into_iter().chain([end]).map(OmniMessage::event));
    }
}

/// What the model said in its answer.
fn text_of(messages: &[ModelMsg]) -> String {
    messages
        .iter()
        .filter_map(|message| match message {
            ModelMsg::Text { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}
