//! The one door for every tool call of a Session: gates, approval, run, close-out. Nothing else runs a tool. It knows nothing of
//! models, of surfaces, and of how a message is stored or shown.
//!
//! ```text
//! ToolCall ─▶ size ▶ name ▶ json ▶ schema ▶ visibility ▶ permission ▶ mode ▶ surface ▶ rule ▶ trace ▶ rate ▶ widening     gate/
//!                                                                                      │
//!          output ◀─ close-out ◀─ run with the effective capabilities ◀─ one decision ◀┘
//! ```
//!
//! Invariants, each held by a test: one `approval_decision` per call, before any of its output; decisions in call order; what
//! was judged is what runs; the joined deltas are the complete output; no call ends empty, and none ends the host.

mod approval;
mod calls;
mod catalogue;
mod close_out;
mod cut;
mod decision;
mod digest;
mod door;
#[cfg(test)]
mod door_tests;
mod environment;
mod gate;
mod line;
mod options;
mod output;
mod pending;
mod power;
mod registry;
mod run;
mod secrets;
mod settings;
mod toolset;
mod verbatim;
mod whole_output;

pub use approval::{Action, Answer, AnswerLater, Approver, AskedWidening, Question, Reach};
pub use calls::CallFuture;
pub use catalogue::ToolListing;
pub use environment::Environment;
pub use gate::Gate;
pub use gate::rate::Rate;
pub use gate::rule::{Effect, Rule, Rules};
pub use gate::schema::SchemaError;
pub use gate::widening::WideningRequest;
pub use options::{
    Asker, CallSite, EnvironmentOptions, HostsFactory, MessageSink, Selection, Surface,
};
pub use output::{CallOutcome, ToolCallOutput};
pub use pending::{Pending, PendingApproval, PendingPlace, PendingQuestion};
pub use registry::{Origin, RegisteredTool, Registry, RegistryError, ToolBody};
pub use secrets::Secrets;
pub use settings::Parent;
pub use toolset::{ParseToolsetError, Toolset};
pub use whole_output::{OutputRecorder, Outputs};
