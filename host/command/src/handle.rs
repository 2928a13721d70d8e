//! Somebody's hold on a session: what ties a command's life to the call that started it.

use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

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
        session.core.handles.fetch_add(1, Ordering::SeqCst);
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

    /// Ends the command gently and without waiting: SIGTERM to its group now, and a second later the end of everything
    /// that is left. It goes on when this handle is dropped. No end is announced.
    pub fn terminate(&self) {
        let core = &self.session.core;
        if core.ask_to_end() {
            let end = end_after_grace(Arc::clone(&self.session), self.registry.clone());
            core.runtime.spawn(end);
        }
    }
}

/// How long a command that was asked to end has for it.
const GRACE: Duration = Duration::from_secs(1);

/// Waits for the end of a command that was asked to, and makes it come.
pub(crate) async fn end_after_grace(session: Arc<CommandSession>, registry: Weak<CommandSessions>) {
    if tokio::time::timeout(GRACE, session.ended()).await.is_err() {
        session.kill();
        session.ended().await;
    }
    if !session.is_kept()
        && !session.is_held()
        && let Some(registry) = registry.upgrade()
    {
        registry.forget(session.process_id());
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
        core.handles.fetch_sub(1, Ordering::SeqCst);
        core.announce_if_due();
        let forgotten = if self.session.is_kept() {
            core.end_told.load(Ordering::Acquire)
        } else if core.is_ending() {
            // Whoever asked it to end sees to the rest.
            false
        } else {
            core.kill();
            true
        };
        if forgotten && let Some(registry) = self.registry.upgrade() {
            registry.forget(self.session.process_id());
        }
    }
}
