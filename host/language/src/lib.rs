//! Language servers: one per Session and kind of server, started when it is first asked, stopped when nobody asks any more.
//!
//! Invariants. A server runs in a sandbox of its own: it reads the Workspace and what tool chains need, writes only its private HOME and `/tmp`,
//! and has no network. What it says counts as hostile: messages are bounded, a place it names is only ever looked at through
//! [`floe_workspace::Workspace`], and no path of the host leaves this crate. No question waits without a bound, and one that is dropped is
//! cancelled at the server. Which program is a server, and for which files, comes from the operator alone.

mod activity;
mod answer;
mod ask;
mod connection;
mod diagnostics;
mod documents;
mod error;
mod framing;
mod place;
mod position;
mod process;
mod program;
mod query;
mod reply;
mod server;
mod servers;
mod settings;
mod symbols;
mod text;

pub use error::QueryError;
pub use query::{Answer, Kind, Location, Position, Query, Target};
pub use servers::{LanguageServers, ServerOptions, Waits};
pub use settings::{ServerEntry, ServerSetting, ServerSettings};
