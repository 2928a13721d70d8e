//! Somebody's hold on a session: what ties a command's life to the call that started it.

use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use crate::{CommandSession, CommandSessions};

/// Somebody's hold on a session. When it is dropped and the session was not kept, the command and everything in it
/// ends; when the session has ended and all was read, its id is forgotten.
#[derive(Debug)]
pub struct CommandHandle {
    session: Arc<CommandSession>,
    registry: Weak<CommandSessions>,
    note: Option<String>,
}

impl CommandHandle {
    pub(crate) fn new(
        session: Arc<CommandSession>,
        registry: Weak<CommandSessions>,
        note: Option<String>,
    ) -> CommandHandle {
        session.core.handles.fetch_add(1, Ordering::AcqRel);
        session.core.name();
        CommandHandle {
            session,
            registry,
            note,
        }
    }

    /// What making room for this command has cost, as a line for the model: a session that was ended for it.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}

impl Deref for CommandHandle {
    type Target = CommandSession;

    fn deref(&self) -> &CommandSession {
        &self.session
    }
}

impl Drop for CommandHandle {
    fn drop(&mut self) {
        let core = &self.session.core;
        core.name();
        core.handles.fetch_sub(1, Ordering::AcqRel);
        let forgotten = if self.session.is_kept() {
            core.end_told.load(Ordering::Acquire)
        } else {
            core.kill();
            true
        };
        if forgotten && let Some(registry) = self.registry.upgrade() {
            registry.forget(self.session.process_id());
        }
    }
}
