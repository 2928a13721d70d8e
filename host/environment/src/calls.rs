//! Calls by id, apart from the requests that made them: a call goes on when its request is gone, and another request can
//! take its result (spec/runtime.md, 0.7).

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::watch;

use crate::output::ToolCallOutput;

/// Results that nobody has taken; the oldest beyond this many are forgotten.
const UNCLAIMED: usize = 64;

type Outcome = Option<ToolCallOutput>;

/// The calls of a Session whose results have not been taken.
#[derive(Default)]
pub(crate) struct Calls {
    calls: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    started: u64,
    by_id: BTreeMap<String, Entry>,
}

struct Entry {
    number: u64,
    /// None until the call has ended.
    outcome: watch::Receiver<Option<Outcome>>,
    /// Futures that wait for it.
    waiting: usize,
}

/// Where a call puts its result.
pub(crate) struct Ending(watch::Sender<Option<Outcome>>);

impl Ending {
    pub(crate) fn set(self, outcome: Outcome) {
        self.0.send_replace(Some(outcome));
    }
}

/// The result of a call, as a future that belongs to nobody. None where the call was cancelled before it was decided: then there
/// is no decision and no output. Dropping it does not stop the call.
pub struct CallFuture {
    calls: Arc<Calls>,
    tool_call_id: String,
    number: u64,
    outcome: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    taken: bool,
}

impl Calls {
    /// Registers a call that starts now.
    pub(crate) fn start(self: &Arc<Calls>, tool_call_id: &str) -> (Ending, CallFuture) {
        let (sender, receiver) = watch::channel(None);
        let mut table = self.lock();
        table.started += 1;
        let number = table.started;
        table.by_id.insert(
            tool_call_id.to_owned(),
            Entry {
                number,
                outcome: receiver.clone(),
                waiting: 1,
            },
        );
        drop(table);
        (Ending(sender), self.future(tool_call_id, number, receiver))
    }

    /// Another future of a call whose result nobody has taken.
    pub(crate) fn resume(self: &Arc<Calls>, tool_call_id: &str) -> Option<CallFuture> {
        let mut table = self.lock();
        let entry = table.by_id.get_mut(tool_call_id)?;
        entry.waiting += 1;
        let (number, receiver) = (entry.number, entry.outcome.clone());
        drop(table);
        Some(self.future(tool_call_id, number, receiver))
    }

    fn future(
        self: &Arc<Calls>,
        tool_call_id: &str,
        number: u64,
        mut receiver: watch::Receiver<Option<Outcome>>,
    ) -> CallFuture {
        CallFuture {
            calls: Arc::clone(self),
            tool_call_id: tool_call_id.to_owned(),
            number,
            outcome: Box::pin(async move {
                match receiver.wait_for(Option::is_some).await {
                    Ok(outcome) => outcome.clone().flatten(),
                    // The call's task is gone with its runtime.
                    Err(_) => None,
                }
            }),
            taken: false,
        }
    }

    /// Forgets a call whose result was taken.
    fn taken(&self, tool_call_id: &str, number: u64) {
        let mut table = self.lock();
        if table
            .by_id
            .get(tool_call_id)
            .is_some_and(|entry| entry.number == number)
        {
            table.by_id.remove(tool_call_id);
        }
    }

    /// A future was dropped without the result.
    fn left(&self, tool_call_id: &str, number: u64) {
        let mut table = self.lock();
        if let Some(entry) = table.by_id.get_mut(tool_call_id)
            && entry.number == number
        {
            entry.waiting -= 1;
        }
        table.forget_unclaimed();
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn forget_unclaimed(&mut self) {
        let mut unclaimed: Vec<(u64, String)> = self
            .by_id
            .iter()
            .filter(|(_, entry)| entry.waiting == 0 && entry.outcome.borrow().is_some())
            .map(|(id, entry)| (entry.number, id.clone()))
            .collect();
        if unclaimed.len() <= UNCLAIMED {
            return;
        }
        unclaimed.sort_unstable();
        for (_, id) in &unclaimed[..unclaimed.len() - UNCLAIMED] {
            self.by_id.remove(id);
        }
    }
}

impl Future for CallFuture {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let outcome = std::task::ready!(self.outcome.as_mut().poll(context));
        self.taken = true;
        self.calls.taken(&self.tool_call_id, self.number);
        Poll::Ready(outcome)
    }
}

impl Drop for CallFuture {
    fn drop(&mut self) {
        if !self.taken {
            self.calls.left(&self.tool_call_id, self.number);
        }
    }
}
