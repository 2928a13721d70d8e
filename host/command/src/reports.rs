//! The reports of ends that nobody has read: whoever speaks to the model takes those that are due, or waits for the next.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::{CommandSessions, CommandSummary, EndedCommand};

/// Wakes who waits for a report, whenever one falls due or is no longer to come.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReportsChanged(Arc<Notify>);

impl ReportsChanged {
    pub(crate) fn tell(&self) {
        self.0.notify_waiters();
    }
}

impl CommandSessions {
    /// The reports that are due, by the time of the end. Each is given once: a command whose end was read meanwhile, or
    /// that was killed, has none.
    pub fn take_reports(&self) -> Vec<EndedCommand> {
        let mut left = self.take_left_reports();
        let mut due: Vec<(Option<Instant>, EndedCommand)> = self
            .all()
            .iter()
            .filter(|session| session.core.report_due())
            .filter_map(|session| {
                Some((
                    session.core.ended_at.get().copied(),
                    session.core.take_report()?,
                ))
            })
            .collect();
        due.sort_by_key(|(ended_at, _)| *ended_at);
        left.extend(due.into_iter().map(|(_, report)| report));
        left
    }

    /// The commands whose end is to be reported and has not come.
    pub fn awaited(&self) -> Vec<CommandSummary> {
        let mut awaited: Vec<_> = self
            .all()
            .iter()
            .filter(|session| session.core.report_to_come())
            .map(|session| session.summary())
            .collect();
        awaited.sort_by(|a, b| a.process_id.cmp(&b.process_id));
        awaited
    }

    /// Waits until a report is due. False, at once, where none is and none is to come.
    pub async fn report_due(&self) -> bool {
        loop {
            let changed = self.reports_changed().0.notified();
            tokio::pin!(changed);
            // From here on no change goes unnoticed.
            changed.as_mut().enable();
            if self.has_left_reports() {
                return true;
            }
            let sessions = self.all();
            if sessions.iter().any(|session| session.core.report_due()) {
                return true;
            }
            if !sessions.iter().any(|session| session.core.report_to_come()) {
                return false;
            }
            drop(sessions);
            changed.await;
        }
    }
}
