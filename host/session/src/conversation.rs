//! What the model is told of the Session: the committed rounds, and what waits to go with the next input.

use floe_protocol::{ModelMsg, StopReason, TokenCount};

/// The state of a conversation between two requests.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// Committed rounds, oldest first: input and answer, every call answered by the input of the next round.
    history: Vec<ModelMsg>,
    /// What an earlier run could not deliver.
    carry_over: Vec<ModelMsg>,
    /// Tokens so far.
    pub(crate) tokens: TokenCount,
    /// The tools that the model was last told of.
    pub(crate) tool_names: Option<Vec<String>>,
}

impl Conversation {
    /// The history and the input that follows it.
    pub(crate) fn with(&self, input: &[ModelMsg]) -> Vec<ModelMsg> {
        self.history.iter().chain(input).cloned().collect()
    }

    /// A round is complete: its input and the model's messages become history. A call that was cut off does not: nobody ran it and
    /// nobody answers it.
    pub(crate) fn commit(&mut self, input: Vec<ModelMsg>, answer: Vec<ModelMsg>) {
        self.history.extend(input);
        self.history
            .extend(answer.into_iter().filter(|message| match message {
                ModelMsg::ToolCall { stop_reason, .. } => *stop_reason == StopReason::Completed,
                _ => true,
            }));
    }

    /// Keeps what could not be delivered for the next run.
    pub(crate) fn carry_over(&mut self, undelivered: Vec<ModelMsg>) {
        self.carry_over = undelivered;
    }

    /// The input of a run: what was carried over, then what is new.
    pub(crate) fn take_input(&mut self, new: Vec<ModelMsg>) -> Vec<ModelMsg> {
        let mut input = std::mem::take(&mut self.carry_over);
        input.extend(new);
        input
    }
}
