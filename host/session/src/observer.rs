//! Who sees what a Session does.

use floe_protocol::OmniMessage;

/// A surface that shows a Session: a terminal, a page, a log.
pub trait Observer: Send + Sync {
    /// Takes the next message of the stream, fragments included, in the order of the Trace. It is called while the stream is held, so
    /// it must not block for long and must not call the Session.
    fn message(&self, message: &OmniMessage);
}

/// Sees nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn message(&self, _message: &OmniMessage) {}
}
