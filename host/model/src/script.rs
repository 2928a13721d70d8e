//! The `script:` driver: a model that says what a file tells it to. It needs no key and no network and drives the real tools, which
//! makes tests and the demonstration deterministic.

mod driver;
mod file;

pub use driver::ScriptDriver;
pub use file::{Script, ScriptError};
