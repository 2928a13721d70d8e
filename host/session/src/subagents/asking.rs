//! The questions of a child, of its door and of its tools: they are put to whoever answers its parent, at once, as questions about
//! the parent's call that the child works for.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use floe_environment::{Answer, Approver, Parent, Question};
use floe_protocol::{AskedQuestion, DecidedBy, SessionId, subagent_name};
use tokio::sync::watch;

use super::child::Progress;
use crate::clarification::{Clarifier, Questions, Reply};

/// The parent's call that a child works for now.
#[derive(Clone, Default)]
pub(crate) struct WorksFor(Arc<Mutex<String>>);

impl WorksFor {
    pub(crate) fn set(&self, tool_call_id: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = tool_call_id.to_owned();
    }

    fn get(&self) -> String {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Asks about a child's calls.
pub(crate) struct AsksParent {
    pub(crate) parent: Parent,
    pub(crate) decides_as: DecidedBy,
    pub(crate) works_for: WorksFor,
    pub(crate) progress: watch::Sender<Progress>,
}

#[async_trait]
impl Approver for AsksParent {
    async fn decide(&self, question: &Question) -> Answer {
        let Some(parent) = self.parent.upgrade() else {
            return Answer::Unavailable("the parent Session is over".to_owned());
        };
        let _waiting = Waiting::new(&self.progress);
        parent.relay(&self.works_for.get(), question).await
    }

    fn decides_as(&self) -> DecidedBy {
        self.decides_as
    }
}

/// Counts a question as open for as long as it lives.
struct Waiting<'progress>(&'progress watch::Sender<Progress>);

impl<'progress> Waiting<'progress> {
    fn new(progress: &'progress watch::Sender<Progress>) -> Waiting<'progress> {
        progress.send_modify(|progress| progress.waiting += 1);
        Waiting(progress)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|progress| progress.waiting -= 1);
    }
}

/// Puts the questions of a child's tools.
pub(crate) struct ClarifiesByParent {
    pub(crate) child: SessionId,
    pub(crate) questions: Arc<Questions>,
    pub(crate) works_for: WorksFor,
    /// They wait under one call's id, which has one question at a time.
    pub(crate) one_at_a_time: tokio::sync::Mutex<()>,
}

#[async_trait]
impl Clarifier for ClarifiesByParent {
    async fn clarify(&self, question: &AskedQuestion) -> Reply {
        let _turn = self.one_at_a_time.lock().await;
        let by = subagent_name(self.child.as_str());
        let header = match &question.header {
            Some(header) => format!("{by}: {header}"),
            None => by,
        };
        let asked = AskedQuestion {
            tool_call_id: self.works_for.get(),
            header: Some(header),
            ..question.clone()
        };
        let reply = self.questions.ask(&Arc::new(asked)).await;
        reply.unwrap_or_else(|_| Reply::Unavailable("Nobody answered.".to_owned()))
    }
}
