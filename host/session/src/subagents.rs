//! The children of a Session: real Sessions with a conversation, a Trace, a todo list and tools of their own, in their parent's
//! Workspace and never with more than their parent has. They end with it at the latest.
//!
//! ```text
//! a tool ─▶ CallChildren ─▶ Children ─▶ Child ─▶ Session::run
//!            (one call)      (8 at most)   │         │
//!  parent's stream ◀── lineage ────────────┼─────────┤ every message, with where it comes from
//!  parent's approver, clarifier ◀──────────┴─────────┘ every question, under the call that the child works for
//! ```
//!
//! A child starts no children. That is held twice: no tool of a child may start any, and the interface behind such tools answers
//! a child with a refusal.

mod asking;
mod call;
mod child;
mod family;
mod heritage;
mod lineage;
mod source;

pub(crate) use call::CallChildren;
pub(crate) use family::{Children, Family};
pub(crate) use lineage::Kinship;
pub use source::{AgentDefinition, AgentSource, ModelSource};

use async_trait::async_trait;
use floe_runtime::capability::Failure;
use floe_runtime::capability::subagents::{Subagent, SubagentRequest, Subagents};
use std::sync::Arc;

/// What a child finds where its parent has children.
pub(crate) struct TooDeep;

impl TooDeep {
    fn refuse() -> Failure {
        Failure::new(
            "denied",
            "subagent depth limit 1 reached; not spawning another subagent.",
        )
        .with_hint("Do the work in this Session.")
    }
}

#[async_trait]
impl Subagents for TooDeep {
    async fn start(&self, _request: SubagentRequest) -> Result<Arc<dyn Subagent>, Failure> {
        Err(TooDeep::refuse())
    }

    async fn attach(&self, _subagent_id: &str) -> Result<Arc<dyn Subagent>, Failure> {
        Err(TooDeep::refuse())
    }
}
