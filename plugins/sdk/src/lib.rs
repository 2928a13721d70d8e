//! Write a tool for Floe: a trait, typed arguments, one macro.
//!
//! ```
//! use floe_tool::{Context, Definition, Failure, Outcome, Tool, output};
//!
//! /// The comments on the fields become the descriptions that the model reads.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Arguments {
//!     /// What to say.
//!     text: String,
//! }
//!
//! struct Shout;
//!
//! impl Tool for Shout {
//!     type Arguments = Arguments;
//!
//!     fn definition() -> Definition {
//!         Definition::new("shout", "Says the text in capitals.")
//!     }
//!
//!     fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
//!         output::write(&arguments.text.to_uppercase());
//!         Ok(Outcome::completed())
//!     }
//! }
//!
//! floe_tool::export!(Shout);
//! ```
//!
//! What a tool can reach is a module each, and a component imports exactly what it calls: [`output`] for the text that the model
//! reads, [`workspace`] to read files, [`edits`] to change them, [`commands`] to run programs, [`interaction`] to ask the person, [`session_state`] for the todo list, [`subagents`] for child Sessions,
//! [`http`], [`web_search`], [`language_server`], [`cancellation`], [`log`]. The interfaces without a module of their own are in
//! [`bindings`]. Where the operator did not grant an interface its functions fail with code `denied`.
//!
//! A tool that cannot do its work returns [`Outcome::failed`] with a message for the model. An `Err`, such as a host failure that
//! `?` passes on, ends the call as a tool error. A panic does as well, with the panic's message.

mod arguments;
pub mod bindings;
pub mod cancellation;
pub mod commands;
mod context;
mod definition;
pub mod edits;
mod export;
mod failure;
pub mod http;
pub mod interaction;
pub mod language_server;
pub mod log;
mod outcome;
pub mod output;
mod schema;
pub mod session_state;
pub mod subagents;
pub mod web_search;
pub mod workspace;

pub use bindings::floe::tool::types::{ModelClass, Permission};
pub use context::Context;
pub use definition::{Definition, Truncation};
pub use export::Exported;
pub use failure::Failure;
pub use outcome::Outcome;

/// A tool: what it is called, what it takes, and what it does.
pub trait Tool {
    /// What the model passes. Its JSON Schema is derived; the comments on its fields are the descriptions that the model reads.
    type Arguments: serde::de::DeserializeOwned + schemars::JsonSchema;

    /// Describes the tool. The host asks once, at install, and links no capability while it does.
    fn definition() -> Definition;

    /// Runs the tool.
    ///
    /// # Errors
    /// What should not have happened: the call ends as a tool error with the failure's message. What a model can mend is
    /// [`Outcome::failed`] instead.
    fn run(arguments: Self::Arguments, context: &Context) -> Result<Outcome, Failure>;

    /// The permission that these arguments need, where [`Definition::permission_varies`] was said. It can only raise the definition's.
    fn permission_for(arguments: &Self::Arguments) -> Permission {
        let _ = arguments;
        Self::definition().least_permission()
    }
}
