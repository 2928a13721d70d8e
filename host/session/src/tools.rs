//! The loop's view of the Environment. Tests put their own behind it.

use floe_environment::{Environment, ToolCallOutput, ToolListing};
use floe_protocol::{Mode, ToolCall};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

/// Runs tool calls.
pub(crate) trait Tools: Send + Sync {
    /// What the model is offered now.
    fn list(&self) -> Vec<ToolListing>;

    /// The mode that the next decision uses.
    fn mode(&self) -> Mode;

    /// Runs a complete call; its place in the line of decisions is taken before this returns. None where it was cancelled before
    /// it was decided. The call goes on where the future is dropped.
    fn execute(
        &self,
        call: ToolCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Option<ToolCallOutput>>;
}

impl Tools for Environment {
    fn list(&self) -> Vec<ToolListing> {
        self.tools()
    }

    fn mode(&self) -> Mode {
        Environment::mode(self)
    }

    fn execute(
        &self,
        call: ToolCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Option<ToolCallOutput>> {
        Environment::execute(self, call, cancel).boxed()
    }
}
