//! What the loop asks of a model, whichever way it is reached.

use std::sync::Arc;

use async_trait::async_trait;
use floe_protocol::{ModelMsg, TokenCount};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::ModelError;

/// A tool as the model sees it: nothing but these three leaves the host.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOffer {
    /// What the model calls it.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// A JSON Schema of its arguments.
    pub parameters: Value,
}

/// One request: the whole conversation so far and what the model may use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    /// Goes before everything; empty for none.
    pub system_prompt: String,
    /// Complete messages only, oldest first.
    pub history: Vec<ModelMsg>,
    /// The tools; where there are none, the request does not mention tools.
    pub tools: Vec<ToolOffer>,
    /// The most tokens that the answer may have; the service's own limit where none.
    pub max_tokens: Option<u64>,
}

/// How a request that went well ended. Its messages were handed over one by one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The last count that the service sent; none where it sent none.
    pub usage: Option<TokenCount>,
}

/// Turns a conversation into model messages.
#[async_trait]
pub trait ModelDriver: Send + Sync {
    /// The model's name as the service knows it.
    fn model_id(&self) -> &str;

    /// The kind of driver: the word before the colon of a model specification.
    fn provider(&self) -> &str;

    /// Tokens that fit in a conversation; none where nobody said.
    fn context_window(&self) -> Option<u64>;

    /// True where the model sees images.
    fn vision(&self) -> bool;

    /// The model of the next child Session that has its parent's; none where that is this very one.
    fn for_child(&self) -> Option<Arc<dyn ModelDriver>> {
        None
    }

    /// Asks once. Messages are handed to `emit` as they arrive: fragments, and each complete message right after its last fragment.
    /// A tool call is handed over as soon as it is known to be complete, which may be long before this returns.
    ///
    /// # Errors
    ///
    /// A [`ModelError`] in one of a few classes. Segments that were open are closed first, with the class as their stop reason, so
    /// that a call that was cut off is never mistaken for a whole one. After `cancel` the class is `Aborted`.
    async fn stream(
        &self,
        request: &ModelRequest,
        emit: &mut (dyn FnMut(ModelMsg) + Send),
        cancel: &CancellationToken,
    ) -> Result<ModelAnswer, ModelError>;
}
