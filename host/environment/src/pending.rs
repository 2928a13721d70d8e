//! Questions that wait for an answer, by call. Whoever knows the call's id may answer, in any request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use crate::approval::Question;

/// A question that waits.
#[derive(Debug)]
pub struct PendingQuestion<Q> {
    /// What is asked.
    pub question: Arc<Q>,
    /// Since when.
    pub since: Instant,
}

/// A question about a call that waits.
pub type PendingApproval = PendingQuestion<Question>;

impl<Q> Clone for PendingQuestion<Q> {
    fn clone(&self) -> Self {
        PendingQuestion {
            question: Arc::clone(&self.question),
            since: self.since,
        }
    }
}

/// The questions `Q` of a Session that wait for an answer `A`.
pub struct Pending<Q, A> {
    waiting: Mutex<BTreeMap<String, Waiting<Q, A>>>,
}

struct Waiting<Q, A> {
    pending: PendingQuestion<Q>,
    answer: oneshot::Sender<A>,
}

/// Holds the place of a question; dropping it takes the question back.
pub struct PendingPlace<'pending, Q, A> {
    pending: &'pending Pending<Q, A>,
    tool_call_id: String,
    /// Resolves when somebody answers by id.
    pub answer: oneshot::Receiver<A>,
}

impl<Q, A> Default for Pending<Q, A> {
    fn default() -> Self {
        Pending {
            waiting: Mutex::default(),
        }
    }
}

impl<Q, A> Pending<Q, A> {
    /// Makes the question of a call answerable. A call has one at a time.
    pub fn park(&self, tool_call_id: &str, question: Arc<Q>) -> PendingPlace<'_, Q, A> {
        let (sender, answer) = oneshot::channel();
        let waiting = Waiting {
            pending: PendingQuestion {
                question,
                since: Instant::now(),
            },
            answer: sender,
        };
        self.lock().insert(tool_call_id.to_owned(), waiting);
        PendingPlace {
            pending: self,
            tool_call_id: tool_call_id.to_owned(),
            answer,
        }
    }

    /// All waiting questions, oldest first.
    pub fn list(&self) -> Vec<PendingQuestion<Q>> {
        let mut list: Vec<PendingQuestion<Q>> = self
            .lock()
            .values()
            .map(|waiting| waiting.pending.clone())
            .collect();
        list.sort_by_key(|pending| pending.since);
        list
    }

    /// Answers a question. False where no such question waits (any more).
    pub fn answer(&self, tool_call_id: &str, answer: A) -> bool {
        let waiting = self.lock().remove(tool_call_id);
        waiting.is_some_and(|waiting| waiting.answer.send(answer).is_ok())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Waiting<Q, A>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Q, A> Drop for PendingPlace<'_, Q, A> {
    fn drop(&mut self) {
        self.pending.lock().remove(&self.tool_call_id);
    }
}
