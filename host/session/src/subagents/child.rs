//! One child: its tasks, one after the other, and what of them its parent has not read.

use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use floe_environment::MessageSink;
use floe_protocol::{
    AgentId, EventMsg, Home, ModelMsg, OmniMessage, Role, SessionId, SubagentState as Doing,
};
use floe_runtime::capability::Failure;
use floe_runtime::capability::subagents::{SubagentState, SubagentStatus};
use futures_util::FutureExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::asking::WorksFor;
use crate::message_queue::MessageQueue;
use crate::{RunEnd, Session};

/// How long a child that has ended its turn waits for a command of whose end it was promised to hear.
const PATIENCE: Duration = Duration::from_secs(600);

/// Where a child is.
#[derive(Debug)]
pub(crate) struct Progress {
    doing: Doing,
    /// It takes no task any more.
    over: bool,
    /// What it has answered and nobody has read.
    text: String,
    failure: Option<Failure>,
    /// Its questions that wait for an answer.
    pub(super) waiting: u32,
}

impl Default for Progress {
    /// At rest, before its first task.
    fn default() -> Self {
        Progress {
            doing: Doing::Idle,
            over: false,
            text: String::new(),
            failure: None,
            waiting: 0,
        }
    }
}

impl Progress {
    /// In the words of the contract.
    pub(super) fn state(&self) -> SubagentState {
        match self.doing {
            Doing::Running if self.waiting > 0 => SubagentState::WaitingForApproval,
            Doing::Running => SubagentState::Running,
            Doing::Idle => SubagentState::Idle,
            Doing::Failed => SubagentState::Failed,
            Doing::Aborted => SubagentState::Aborted,
            Doing::Finished => SubagentState::Finished,
        }
    }

    pub(super) fn has_news(&self, seen: Option<SubagentState>) -> bool {
        Some(self.state()) != seen || !self.text.is_empty()
    }

    /// What there is to say now; a text is said once.
    pub(super) fn take(&mut self) -> SubagentStatus {
        SubagentStatus {
            state: self.state(),
            text: std::mem::take(&mut self.text),
            pending_approvals: self.waiting,
            failure: self.failure.clone(),
        }
    }
}

/// A child Session.
pub(crate) struct Child {
    pub(super) session: Session,
    pub(super) agent: AgentId,
    pub(super) progress: watch::Sender<Progress>,
    pub(super) works_for: WorksFor,
    /// Ends the task under way.
    pub(super) task: Mutex<CancellationToken>,
    /// Its parent's stream. Weak: a child may outlive its parent by a moment.
    pub(super) queue: Weak<MessageQueue>,
    /// Where this host keeps its files: no model reads that.
    pub(super) home: Home,
}

impl Child {
    pub(super) fn id(&self) -> &SessionId {
        self.session.id()
    }

    pub(super) fn is_running(&self) -> bool {
        self.progress.borrow().doing == Doing::Running
    }

    /// Takes a task on, which [`Child::work`] then does.
    ///
    /// # Errors
    ///
    /// It has one already, or takes none any more.
    pub(super) fn begin(&self, description: Option<String>) -> Result<(), Failure> {
        let mut taken = Ok(());
        self.progress.send_if_modified(|progress| {
            taken = match (progress.over, progress.doing) {
                (true, _) => Err(Failure::new(
                    "not-found",
                    format!("subagent {} has ended.", self.id()),
                )),
                (_, Doing::Running) => Err(Failure::new(
                    "conflict",
                    format!("subagent {} is still running.", self.id()),
                )
                .with_hint("Wait until it has answered.")),
                _ => Ok(()),
            };
            if taken.is_ok() {
                *progress = Progress {
                    doing: Doing::Running,
                    ..Progress::default()
                };
            }
            taken.is_ok()
        });
        taken?;
        self.tell(Doing::Running, description, None);
        Ok(())
    }

    /// Does a task to its end, whatever that is.
    pub(super) async fn work(&self, prompt: String, cancel: CancellationToken) {
        let prompt = ModelMsg::Text {
            role: Role::User,
            text: prompt,
            sender: Some("parent_agent".to_owned()),
            stop_reason: None,
            fidelity: None,
        };
        let worked = AssertUnwindSafe(self.to_the_end(prompt, &cancel)).catch_unwind();
        let (doing, text, failure) = match worked.await {
            Ok(end) => self.outcome(end),
            Err(_) => {
                tracing::error!(child = %self.id(), "the host broke off while a child worked");
                let reason = "the host broke off while it worked; its log says where";
                (
                    Doing::Failed,
                    String::new(),
                    Some(Failure::new("internal", reason)),
                )
            }
        };
        self.tell(doing, None, self.session.last_hash().await);
        self.progress.send_modify(|progress| {
            progress.doing = doing;
            progress.text = text;
            progress.failure = failure;
        });
    }

    /// A turn, and further ones for what the child was promised to hear of.
    async fn to_the_end(&self, prompt: ModelMsg, cancel: &CancellationToken) -> RunEnd {
        let mut end = self.session.answer(prompt, cancel).await;
        while matches!(end, RunEnd::Ended { .. }) {
            let told = tokio::select! {
                biased;
                () = cancel.cancelled() => return RunEnd::Interrupted,
                told = tokio::time::timeout(PATIENCE, self.session.background_task_done()) => told,
            };
            match told {
                Ok(true) => match self.session.run_on(cancel).await {
                    Some(next) => end = next,
                    None => break,
                },
                Ok(false) | Err(_) => break,
            }
        }
        end
    }

    fn outcome(&self, end: RunEnd) -> (Doing, String, Option<Failure>) {
        let aborted = |reason: String| {
            let failure = Failure::new("cancelled", reason);
            (Doing::Aborted, String::new(), Some(failure))
        };
        match end {
            // A plan of a child is for its parent to read; nobody approves it.
            RunEnd::Ended { text } | RunEnd::PlanProposed { plan: text } => {
                (Doing::Idle, text, None)
            }
            RunEnd::Failed { reason } => {
                let failure = Failure::new("io", self.home.hidden_in(&reason));
                (Doing::Failed, String::new(), Some(failure))
            }
            RunEnd::StoppedByRefusals { tool } => {
                aborted(format!("stopped by repeated refusals of {tool}"))
            }
            RunEnd::Interrupted => aborted("interrupted".to_owned()),
        }
    }

    /// Ties the task that was taken on to `cancel`. One that is ending meanwhile breaks off at once.
    pub(super) fn tie(&self, cancel: &CancellationToken) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = cancel.clone();
        if self.progress.borrow().over {
            cancel.cancel();
        }
    }

    /// Breaks off the task under way.
    pub(super) fn interrupt(&self) {
        self.task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .cancel();
    }

    /// Ends it: its task, its commands, its Trace. A second time does nothing.
    pub(super) async fn end(&self) {
        let first = self
            .progress
            .send_if_modified(|progress| !std::mem::replace(&mut progress.over, true));
        if !first {
            return;
        }
        self.interrupt();
        let mut progress = self.progress.subscribe();
        // The sender is this child's own.
        let _ = progress
            .wait_for(|progress| progress.doing != Doing::Running)
            .await;
        let closed = self.session.close().await;
        self.tell(Doing::Finished, None, closed.head.map(|head| head.hash));
        self.progress
            .send_modify(|progress| progress.doing = Doing::Finished);
    }

    /// Tells the parent's Trace.
    fn tell(&self, state: Doing, description: Option<String>, hash: Option<String>) {
        if let Some(queue) = self.queue.upgrade() {
            queue.emit(OmniMessage::event(EventMsg::Subagent {
                session_id: self.id().to_string(),
                agent: Some(self.agent.to_string()),
                description,
                state,
                hash,
            }));
        }
    }
}
