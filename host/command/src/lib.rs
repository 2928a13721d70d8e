//! Command sessions: native processes that a [`floe_sandbox::Sandbox`] confines, driven by an id. This crate collects
//! their output in bounded memory, feeds their input, signals and ends them, and keeps at most 64 of them per Session.
//!
//! Invariants. No process is started but through [`Launch`]. A command that nobody holds and nobody kept is ended with
//! all its children. Output is lost only where it is counted. No call waits without a bound, and none blocks a thread
//! of the runtime.

mod aftermath;
mod cleaner;
mod decoder;
#[cfg(test)]
mod doubles;
mod environment;
mod error;
mod handle;
mod input;
mod launch;
mod network;
mod output;
mod processes;
mod recording;
mod reports;
mod ring;
mod session;
mod sessions;
mod spec;
#[cfg(test)]
mod tests;
mod waiting;

pub use environment::{DEFAULT_ALLOWED, EnvironmentOptions, HARDENED};
pub use error::{CommandError, Removal};
pub use handle::CommandHandle;
pub use launch::{Hold, Launch, Launched};
pub use network::{NetworkAccess, NoNetwork, Pass};
pub use recording::{Record, Recording};
pub use session::CommandSession;
pub use sessions::{CommandLimits, CommandOptions, CommandSessions};
pub use spec::{
    Channel, CommandSpec, CommandSummary, EndedCommand, Observe, OutputBatch, OutputChunk, Status,
    Unobserved,
};
