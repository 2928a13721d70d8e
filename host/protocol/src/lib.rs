//! The data that every crate speaks: OmniMessages, tool definitions, permissions, stop reasons, identifiers and the layout
//! of `FLOE_HOME`, and how a text of others is made safe to show. Plain types with serde; this crate never touches a file, a socket or a clock other than to stamp a message.

mod approval;
mod background;
mod event;
mod home;
mod ids;
mod message;
mod model_message;
mod permission;
mod question;
mod stop_reason;
mod subagent;
mod tool;
mod visible;

pub use approval::{
    ApprovalDecision, ApprovalMode, DecidedBy, Decision, DecisionKind, Reached, Scope,
};
pub use background::{BackgroundKind, BackgroundTask};
pub use event::{EventMsg, TokenCount};
pub use home::Home;
pub use ids::{AgentId, IdError, SessionId};
pub use message::{Body, OmniMessage, SessionMeta, Source, now};
pub use model_message::{Fidelity, ModelMsg, Phase, Role};
pub use permission::{Mode, ParsePermissionError, Permission};
pub use question::{
    AnswerSource, AskedQuestion, QuestionAnswered, QuestionChoice, Todo, TodoStatus,
};
pub use stop_reason::StopReason;
pub use subagent::{SubagentState, subagent_name};
pub use tool::{
    DEFAULT_MAX_OUTPUT_LENGTH, DEFAULT_TIMEOUT_MS, Facts, ModelClass, ToolCall, ToolDefinition,
    Truncation,
};
pub use visible::{Keep, visible, visible_json};
