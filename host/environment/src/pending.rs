//! Questions that wait for an answer, by call. Whoever knows the call's id may answer, in any request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use crate::approval::{Answer, Question};

/// A question that waits.
#[derive(Clone, Debug)]
pub struct PendingApproval {
    /// What is asked.
    pub question: Arc<Question>,
    /// Since when.
    pub since: Instant,
}

/// The waiting questions of a Session.
#[derive(Default)]
pub(crate) struct Pending {
    waiting: Mutex<BTreeMap<String, Waiting>>,
}

struct Waiting {
    approval: PendingApproval,
    answer: oneshot::Sender<Answer>,
}

/// Holds the place of a question; dropping it takes the question back.
pub(crate) struct Place<'pending> {
    pending: &'pending Pending,
    tool_call_id: String,
    /// Resolves when somebody answers by id.
    pub(crate) answer: oneshot::Receiver<Answer>,
}

impl Pending {
    /// Makes a question answerable.
    pub(crate) fn park(&self, question: Arc<Question>) -> Place<'_> {
        let (sender, answer) = oneshot::channel();
        let tool_call_id = question.tool_call_id.clone();
        let approval = PendingApproval {
            question,
            since: Instant::now(),
        };
        self.lock().insert(
            tool_call_id.clone(),
            Waiting {
                approval,
                answer: sender,
            },
        );
        Place {
            pending: self,
            tool_call_id,
            answer,
        }
    }

    /// All waiting questions, oldest first.
    pub(crate) fn list(&self) -> Vec<PendingApproval> {
        let mut list: Vec<PendingApproval> = self
            .lock()
            .values()
            .map(|waiting| waiting.approval.clone())
            .collect();
        list.sort_by_key(|approval| approval.since);
        list
    }

    /// Answers a question. False where no such question waits (any more).
    pub(crate) fn answer(&self, tool_call_id: &str, answer: Answer) -> bool {
        let waiting = self.lock().remove(tool_call_id);
        waiting.is_some_and(|waiting| waiting.answer.send(answer).is_ok())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.pending.lock().remove(&self.tool_call_id);
    }
}
