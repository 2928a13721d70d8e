//! The stream of many calls, folded: of each call its text, and the order in which its messages came.

use std::collections::HashMap;
use std::sync::Mutex;

use floe_environment::{MessageSink, ToolCallOutput};
use floe_protocol::{Body, EventMsg, ModelMsg, OmniMessage, Phase, StopReason};
use tokio::sync::watch;

/// What was streamed of the calls that were not checked yet.
#[derive(Default)]
pub(crate) struct Streams {
    calls: Mutex<HashMap<String, Stream>>,
    grown: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Stream {
    /// Deltas in a row are one of them.
    order: Vec<Step>,
    text: String,
    stop_reason: Option<StopReason>,
    complete: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Decision,
    Start,
    Delta,
    Stop,
    Complete,
}

impl Streams {
    /// Waits until a call has written something.
    pub(crate) async fn until_written(&self, id: &str) {
        self.until(id, |stream| !stream.text.is_empty()).await;
    }

    /// Waits until a call has started.
    pub(crate) async fn until_started(&self, id: &str) {
        self.until(id, |stream| stream.order.contains(&Step::Start))
            .await;
    }

    async fn until(&self, id: &str, holds: impl Fn(&mut Stream) -> bool) {
        let mut grown = self.grown.subscribe();
        while !self.with(id, &holds) {
            grown.changed().await.unwrap();
        }
    }

    /// A call that ran had one decision, one frame and one complete output, in this order, and what was streamed of it is what it
    /// came to. Forgets the call.
    pub(crate) fn check(&self, id: &str, output: &ToolCallOutput) {
        let stream = self.calls.lock().unwrap().remove(id).unwrap();
        let order = [
            Step::Decision,
            Step::Start,
            Step::Delta,
            Step::Stop,
            Step::Complete,
        ];
        assert_eq!(stream.order, order);
        assert_eq!(stream.stop_reason, Some(output.stop_reason));
        assert!(
            stream.text == output.output,
            "streamed {:.300} and answered {:.300}",
            stream.text,
            output.output
        );
        assert!(stream.complete == output.output);
    }

    fn with<T>(&self, id: &str, look: impl FnOnce(&mut Stream) -> T) -> T {
        let mut calls = self.calls.lock().unwrap();
        look(calls.entry(id.to_owned()).or_default())
    }
}

impl MessageSink for Streams {
    fn emit(&self, message: OmniMessage) {
        match message.body {
            Body::EventMsg(EventMsg::ApprovalDecision(decision)) => {
                self.with(&decision.tool_call_id, |stream| {
                    stream.order.push(Step::Decision);
                });
            }
            Body::ModelMsg(ModelMsg::PartialToolCallOutput {
                event_type,
                output,
                tool_call_id,
                stop_reason,
                ..
            }) => {
                self.with(&tool_call_id, |stream| {
                    match event_type {
                        Phase::Start => stream.order.push(Step::Start),
                        Phase::Delta if stream.order.last() == Some(&Step::Delta) => {}
                        Phase::Delta => stream.order.push(Step::Delta),
                        Phase::Stop => stream.order.push(Step::Stop),
                    }
                    stream.text.push_str(&output);
                    stream.stop_reason = stop_reason;
                });
                self.grown.send_replace(());
            }
            Body::ModelMsg(ModelMsg::ToolCallOutput {
                output,
                tool_call_id,
                ..
            }) => self.with(&tool_call_id, |stream| {
                stream.order.push(Step::Complete);
                stream.complete = output;
            }),
            _ => {}
        }
    }

    fn recording(&self) -> Result<(), String> {
        Ok(())
    }
}
