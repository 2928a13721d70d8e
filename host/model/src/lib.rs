//! Model drivers: each turns a conversation into model messages, fragment by fragment, over a wire protocol or from a script.
//!
//! A driver keeps the streaming discipline (start, delta*, stop, complete; the concatenated deltas of a segment equal its complete
//! message) and names what went wrong in a few classes that the loop can act on. It must never run a tool, retry on its own
//! account, write a Trace or show an API key.

mod driver;
mod error;
mod object_text;
mod open;
mod openai;
mod script;
mod segments;
mod settings;

pub use driver::{ModelAnswer, ModelDriver, ModelRequest, ToolOffer};
pub use error::{ModelError, ModelErrorKind, ModelOpenError};
pub use open::{ModelSpec, open};
pub use openai::OpenAiDriver;
pub use script::{Script, ScriptDriver, ScriptError};
pub use settings::{ApiKey, DEFAULT_IDLE_TIMEOUT, ModelSettings};
