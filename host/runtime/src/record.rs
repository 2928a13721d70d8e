//! What both sides of a call see: the guest's task writes it, and whoever asked for the call reads it, also when the guest's
//! task is still dying. Closing it is what makes a call over.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::call::HostFacts;
use crate::capability::commands::{CommandSession, CommandStatus, Recording};
use crate::capability::output::{OutputGate, OutputSink};
use crate::last_words::LastWords;

/// A command that the guest has started.
struct Started {
    session: Weak<dyn CommandSession>,
    recording: Option<Arc<dyn Recording>>,
}

/// The shared record of one call.
pub(crate) struct CallRecord {
    /// The way to the call's sink, until the call is over.
    pub(crate) output: OutputGate,
    /// The end of what the guest wrote to its standard error.
    pub(crate) last_words: LastWords,
    facts: Mutex<HostFacts>,
    /// The commands that the guest has started.
    started: Mutex<Vec<Started>>,
}

impl CallRecord {
    pub(crate) fn new(sink: Arc<dyn OutputSink>) -> CallRecord {
        CallRecord {
            output: OutputGate::new(sink),
            last_words: LastWords::default(),
            facts: Mutex::default(),
            started: Mutex::default(),
        }
    }

    /// The guest has started a command; `recording` where it gets text of it.
    pub(crate) fn started(
        &self,
        session: &Arc<dyn CommandSession>,
        recording: Option<&Arc<dyn Recording>>,
    ) {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.push(Started {
            session: Arc::downgrade(session),
            recording: recording.cloned(),
        });
    }

    /// Ends gently what the guest has started and not kept. Must come before the guest's handles go, which end it at once.
    pub(crate) fn terminate_commands(&self) {
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        for Started { session, recording } in started.iter() {
            let Some(session) = session.upgrade() else {
                continue;
            };
            if let Some(recording) = recording {
                // What it has printed by now is part of what the call leaves.
                self.output.handed(recording, &session.take_unread());
            }
            session.terminate();
        }
    }

    /// From here on nothing of the guest has an effect.
    pub(crate) fn close(&self) {
        self.output.close();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.output.is_closed()
    }

    pub(crate) fn facts(&self) -> HostFacts {
        self.facts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn confined(&self, confinement: String) {
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        facts.confinement = Some(confinement);
    }

    pub(crate) fn note(&self, line: Option<String>) {
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        facts.notes.extend(line);
    }

    /// How a command ended that the guest watched, and the line that says why, which is kept once however often it is told.
    pub(crate) fn ended_with(&self, status: &CommandStatus, note: Option<String>) {
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let note = note.filter(|note| !facts.notes.contains(note));
        facts.notes.extend(note);
        match status {
            CommandStatus::Running => {}
            CommandStatus::Exited(code) => {
                facts.exit_code = Some(*code);
                facts.signal = None;
            }
            CommandStatus::Signaled(name) => {
                facts.exit_code = None;
                facts.signal = Some(name.clone());
            }
        }
    }
}
