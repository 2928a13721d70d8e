//! A Session: the loop between a model and its tools, the record of what happened, and the services that the tools reach.
//!
//! ```text
//! Session::run ─▶ loop ─▶ model driver ─┐
//!                   └──▶ Environment ──┴─▶ merge queue ─▶ Trace
//!                                                     └──▶ Observer
//! ```
//!
//! It never runs a tool but through the Environment, never shows or records a message but through the merge queue, and knows nothing
//! of the surface that it is used through.

mod agent_loop;
mod background;
mod blocks;
mod clamp;
mod clarification;
mod conversation;
mod edits;
mod error;
mod folders;
mod http;
mod language;
mod message_queue;
mod network;
mod observer;
mod options;
mod plan;
mod reconnect;
mod refusals;
mod resume;
mod run_end;
mod services;
mod session;
mod session_state;
mod subagents;
mod system_prompt;
mod tool_call_ids;
mod tools;
mod widening;

pub use clarification::{Clarifier, ClarifyLater, Reply};
pub use edits::journals;
pub use error::SessionError;
pub use observer::{Observer, Unobserved};
pub use options::{DEFAULT_MAX_TURNS, SessionOptions};
pub use plan::PlanDecision;
pub use run_end::RunEnd;
pub use session::{Closed, Session};
pub use subagents::{AgentDefinition, AgentSource, ModelSource};
