//! The seam to whoever keeps what commands write, byte for byte: beside the text that readers get, before decoding and
//! cleaning. This crate decides what is recorded and when; where it is kept, and how much of it, is decided behind it.

use std::fmt;
use std::sync::Arc;

/// Keeps the output of commands.
pub trait Record: Send + Sync + 'static {
    /// A command is about to start. Called for every command, so it must cost next to nothing.
    fn begin(&self) -> Arc<dyn Recording>;
}

/// What one command has written. It goes, with everything that was not published, when the command is forgotten.
pub trait Recording: Send + Sync + fmt::Debug {
    /// Takes bytes as they came, both channels in order of arrival. It is called for every read and slows the command's
    /// other readers down while it runs. A fault is remembered and told by [`Recording::publish`].
    fn bytes(&self, bytes: &[u8]);

    /// Makes what was taken so far readable for tools, under this name; what is taken later does not change it. Returns
    /// its path as tools see it. Blocks on the disk.
    ///
    /// # Errors
    /// Why it cannot be read, in words for a model.
    fn publish(&self, name: &str) -> Result<String, String>;
}
