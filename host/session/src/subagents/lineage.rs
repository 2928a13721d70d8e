//! A child's place in its family, and its way into the stream of its parent: every message goes there too, with the child it comes
//! through. The parent's Trace keeps none of them; each Session has its own.

use std::sync::Weak;

use floe_environment::{MessageSink, Parent};
use floe_protocol::{OmniMessage, SessionId};

use crate::Observer;
use crate::message_queue::MessageQueue;

/// What makes a Session a child.
pub(crate) struct Kinship {
    /// Its id, which its parent's stream knows before it is open.
    pub(crate) id: SessionId,
    /// What it is never wider than.
    pub(crate) parent: Parent,
}

/// Shows a child's stream in its parent's.
pub(crate) struct Lineage {
    child: SessionId,
    /// Weak: a child may outlive its parent by a moment.
    parent: Weak<MessageQueue>,
}

impl Lineage {
    pub(crate) fn new(child: SessionId, parent: Weak<MessageQueue>) -> Lineage {
        Lineage { child, parent }
    }
}

impl Observer for Lineage {
    fn message(&self, message: &OmniMessage) {
        if let Some(parent) = self.parent.upgrade() {
            parent.emit(message.clone().with_origin(self.child.as_str()));
        }
    }
}
