//! The Model Context Protocol as a surface: a client lists the tools of a Session and calls them.
//!
//! ```text
//! client ═ lines ═ transport ─ rmcp ─ server ─▶ Session::start_call
//!                                      ▲  │
//!            progress ◀─ desk ◀─ stream of the Session
//!            question ◀──┘ (as its approver and its clarifier)
//! ```
//!
//! One connection is one Session with one Trace: commands that a call keeps live on between calls, and end with the connection. It
//! decides nothing about a call; the Environment does. Nothing but messages of the protocol is ever written to the client's pipe.

mod ask;
mod clarify;
mod connection;
mod desk;
mod lines;
mod listing;
mod message;
mod progress;
mod result;
mod server;
mod transport;

pub use connection::{Describe, ServeError, Served, serve};
