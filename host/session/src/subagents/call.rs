//! The children of a Session as one call reaches them. What a call starts and does not keep ends with it; a child that an earlier
//! call has kept loses no more than the task that this one gave it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use floe_environment::CallSite;
use floe_runtime::capability::Failure;
use floe_runtime::capability::subagents::{
    Subagent, SubagentRequest, SubagentState, SubagentStatus, Subagents,
};

use super::child::Child;
use super::family::Children;

/// What one call reaches.
pub(crate) struct CallChildren {
    family: Arc<Children>,
    call: CallSite,
}

impl CallChildren {
    pub(crate) fn new(family: Arc<Children>, call: CallSite) -> CallChildren {
        CallChildren { family, call }
    }

    fn handle(&self, child: Arc<Child>, is_own: bool, seen: Option<SubagentState>) -> Handle {
        Handle {
            family: Arc::clone(&self.family),
            call: self.call.clone(),
            child,
            is_own,
            gave_task: AtomicBool::new(is_own),
            kept: AtomicBool::new(false),
            seen: Mutex::new(seen),
        }
    }
}

#[async_trait]
impl Subagents for CallChildren {
    async fn start(&self, request: SubagentRequest) -> Result<Arc<dyn Subagent>, Failure> {
        let child = self.family.start(request, &self.call).await?;
        Ok(Arc::new(self.handle(
            child,
            true,
            Some(SubagentState::Running),
        )))
    }

    async fn attach(&self, subagent_id: &str) -> Result<Arc<dyn Subagent>, Failure> {
        let child = self.family.find(subagent_id)?;
        Ok(Arc::new(self.handle(child, false, None)))
    }
}

/// A child in the hands of a call.
struct Handle {
    family: Arc<Children>,
    call: CallSite,
    child: Arc<Child>,
    /// Whether this call started it.
    is_own: bool,
    gave_task: AtomicBool,
    kept: AtomicBool,
    /// The state that the last look showed.
    seen: Mutex<Option<SubagentState>>,
}

#[async_trait]
impl Subagent for Handle {
    /// The id of its Session, by which its Trace is found too.
    fn subagent_id(&self) -> String {
        self.child.id().to_string()
    }

    async fn send_prompt(&self, prompt: &str) -> Result<(), Failure> {
        self.family
            .task(&self.child, prompt.to_owned(), None, &self.call)?;
        self.gave_task.store(true, Ordering::SeqCst);
        *self.seen() = Some(SubagentState::Running);
        Ok(())
    }

    /// The text is what it has answered, once it has.
    async fn wait(&self, wait: Duration) -> Result<SubagentStatus, Failure> {
        let seen = *self.seen();
        let mut progress = self.child.progress.subscribe();
        let news = progress.wait_for(|progress| progress.has_news(seen));
        // Nothing new in time is an answer too. The borrow ends before the next line takes what is new.
        let _ = tokio::time::timeout(wait, news).await.map(|_| ());
        let mut status = None;
        self.child.progress.send_if_modified(|progress| {
            status = Some(progress.take());
            false
        });
        let status = status.ok_or_else(|| Failure::new("internal", "no state"))?;
        *self.seen() = Some(status.state);
        Ok(status)
    }

    async fn stop(&self) -> Result<(), Failure> {
        self.family.end(&self.child);
        Ok(())
    }

    async fn keep(&self) -> Result<(), Failure> {
        self.kept.store(true, Ordering::SeqCst);
        Ok(())
    }
}

impl Handle {
    fn seen(&self) -> std::sync::MutexGuard<'_, Option<SubagentState>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.kept.load(Ordering::SeqCst) {
            return;
        }
        if self.is_own {
            self.family.end(&self.child);
        } else if self.gave_task.load(Ordering::SeqCst) {
            self.child.interrupt();
        }
    }
}
