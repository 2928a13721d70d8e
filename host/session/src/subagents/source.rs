//! Where the agents and the models of children come from. A Session knows of no configuration: whoever opens it does.

use std::sync::Arc;

use floe_model::ModelDriver;
use floe_protocol::{AgentId, ToolDefinition};

/// An agent as a child takes it over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentDefinition {
    /// What the model is told first, with the placeholders of the format.
    pub system_prompt: String,
    /// Model requests of one task; only fewer than the parent's count.
    pub max_turns: Option<i64>,
    /// Tokens that one answer may have.
    pub max_tokens: Option<u64>,
    /// The tools that it has instead of its parent's; of these only what the parent has as well.
    pub tools: Option<Vec<ToolDefinition>>,
}

/// The agents of this host. Asked off the async threads: it may read files.
pub trait AgentSource: Send + Sync {
    /// Their ids, sorted.
    fn ids(&self) -> Vec<AgentId>;

    /// One of them; none where there is no such agent.
    ///
    /// # Errors
    ///
    /// Why it cannot be used: a model reads it, so it names no path of this machine.
    fn agent(&self, id: &AgentId) -> Result<Option<AgentDefinition>, String>;
}

/// The models of this host. Asked off the async threads, inside the runtime.
pub trait ModelSource: Send + Sync {
    /// Opens the model that a specification names, as on the command line; where none is named, the one that a Session without
    /// any word about its model has.
    ///
    /// # Errors
    ///
    /// Why it cannot be used: a model reads it, so it names no path of this machine.
    fn model(&self, specification: Option<&str>) -> Result<Arc<dyn ModelDriver>, String>;
}
