//! The children of one Session: how many there are, which of them an id means, and that none outlives their parent.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use floe_environment::{CallSite, Environment, Parent};
use floe_protocol::{SessionId, subagent_name};
use floe_runtime::capability::Failure;
use floe_runtime::capability::subagents::SubagentRequest;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::asking::{AsksParent, ClarifiesByParent, WorksFor};
use super::child::{Child, Progress};
use super::heritage;
use super::lineage::{Kinship, Lineage};
use crate::clarification::Questions;
use crate::message_queue::MessageQueue;
use crate::{Session, SessionOptions};

/// Children at once (spec/environment.md 1.8).
const MOST_CHILDREN: usize = 8;
/// Characters of what a task is called (spec/coding-tools.md 1.10).
const LONGEST_TITLE: usize = 80;

/// What children are made from.
pub(crate) struct Family {
    /// What their parent was made from.
    pub(crate) options: SessionOptions,
    /// The parent's stream.
    pub(crate) queue: Weak<MessageQueue>,
    /// The questions of the parent's tools.
    pub(crate) questions: Arc<Questions>,
}

/// The children of one Session.
pub(crate) struct Children {
    options: Arc<SessionOptions>,
    queue: Weak<MessageQueue>,
    questions: Arc<Questions>,
    /// Known once the parent's Environment is made.
    parent: OnceLock<Parent>,
    /// One is started at a time, so that their number holds.
    starting: tokio::sync::Mutex<()>,
    /// Those that take tasks, least recently used first.
    children: Mutex<Vec<Arc<Child>>>,
    /// Tasks under way, and children that are ending.
    tasks: TaskTracker,
    over: CancellationToken,
    /// Interrupts all tasks where the parent goes away without being closed.
    _gone: DropGuard,
    host: Handle,
}

impl Children {
    /// Must be called inside a tokio runtime.
    pub(crate) fn new(family: Family) -> Arc<Children> {
        let over = CancellationToken::new();
        Arc::new(Children {
            options: Arc::new(family.options),
            queue: family.queue,
            questions: family.questions,
            parent: OnceLock::new(),
            starting: tokio::sync::Mutex::default(),
            children: Mutex::default(),
            tasks: TaskTracker::new(),
            _gone: over.clone().drop_guard(),
            over,
            host: Handle::current(),
        })
    }

    /// Makes the parent's Environment known, once.
    pub(crate) fn belong_to(&self, parent: Parent) {
        let _ = self.parent.set(parent);
    }

    /// Starts a child and gives it its first task.
    pub(super) async fn start(
        &self,
        request: SubagentRequest,
        call: &CallSite,
    ) -> Result<Arc<Child>, Failure> {
        let _one_at_a_time = self.starting.lock().await;
        let (parent, environment) = self.parent()?;
        self.make_room()?;
        let (own, asked) = (Arc::clone(&self.options), request.clone());
        let made = {
            let environment = environment.clone();
            move || heritage::options(&own, &environment, &asked)
        };
        let mut options = tokio::task::spawn_blocking(made)
            .await
            .map_err(|_| broke_off())??;
        let id = SessionId::generate();
        let progress = watch::Sender::new(Progress::default());
        let works_for = WorksFor::default();
        options.observer = Arc::new(Lineage::new(id.clone(), self.queue.clone()));
        options.approver = options.approver.map(|approver| {
            Arc::new(AsksParent {
                parent: parent.clone(),
                decides_as: approver.decides_as(),
                works_for: works_for.clone(),
                progress: progress.clone(),
            }) as _
        });
        options.clarifier = options.clarifier.map(|_| {
            Arc::new(ClarifiesByParent {
                child: id.clone(),
                questions: Arc::clone(&self.questions),
                works_for: works_for.clone(),
                one_at_a_time: tokio::sync::Mutex::default(),
            }) as _
        });
        let agent = options.agent.clone();
        let home = options.home.clone();
        let session = Session::open_child(options, Kinship { id, parent })
            .map_err(|error| Failure::new("io", home.hidden_in(&error.to_string())))?;
        let child = Arc::new(Child {
            session,
            agent,
            progress,
            works_for,
            task: Mutex::new(self.over.child_token()),
            queue: self.queue.clone(),
            home,
        });
        self.children().push(Arc::clone(&child));
        let title = request.description.as_deref().and_then(title);
        self.task(&child, request.prompt, title, call)?;
        Ok(child)
    }

    /// Gives a child a task, which goes on whatever becomes of the call.
    pub(super) fn task(
        &self,
        child: &Arc<Child>,
        prompt: String,
        description: Option<String>,
        call: &CallSite,
    ) -> Result<(), Failure> {
        if prompt.trim().is_empty() {
            return Err(Failure::new("invalid-args", "`prompt` must not be empty"));
        }
        let (_, environment) = self.parent()?;
        child.begin(description)?;
        child.works_for.set(&call.tool_call_id);
        // What has been widened since the call was decided is no part of it.
        let now = environment.permission_of(&call.tool);
        let cap = now.filter(|now| *now > call.permission);
        let own = child.session.environment();
        own.set_mode(call.mode);
        own.set_max_permission(cap.map(|_| call.permission));
        let cancel = self.over.child_token();
        child.tie(&cancel);
        self.used(child);
        let child = Arc::clone(child);
        let work = async move { child.work(prompt, cancel).await };
        self.tasks.spawn_on(work, &self.host);
        Ok(())
    }

    /// The child of that id, whole or short.
    pub(super) fn find(&self, id: &str) -> Result<Arc<Child>, Failure> {
        let children = self.children();
        let short = |child: &Arc<Child>| subagent_name(child.id().as_str());
        let found = children
            .iter()
            .find(|child| child.id().as_str() == id || short(child) == id);
        found.cloned().ok_or_else(|| {
            let known: Vec<String> = children.iter().map(short).collect();
            let known = match known.as_slice() {
                [] => "It has none.".to_owned(),
                known => format!("It has {}.", known.join(", ")),
            };
            Failure::new(
                "not-found",
                format!("This Session has no subagent '{id}' that takes a task. {known}"),
            )
            .with_hint("Without an id a new one is started.")
        })
    }

    /// Ends a child, behind whoever asks for it. May be called on any thread.
    pub(super) fn end(&self, child: &Arc<Child>) {
        self.children().retain(|known| !Arc::ptr_eq(known, child));
        let child = Arc::clone(child);
        self.tasks
            .spawn_on(async move { child.end().await }, &self.host);
    }

    /// Ends all of them, and waits until nothing of them is left. No more can be started.
    pub(crate) fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.over.cancel();
            let _nothing_starts = self.starting.lock().await;
            let left = std::mem::take(&mut *self.children());
            for child in left {
                self.end(&child);
            }
            self.tasks.close();
            self.tasks.wait().await;
        })
    }

    fn parent(&self) -> Result<(Parent, Environment), Failure> {
        let parent = self.parent.get().filter(|_| !self.over.is_cancelled());
        parent
            .and_then(|parent| Some((parent.clone(), parent.upgrade()?)))
            .ok_or_else(|| Failure::new("cancelled", "The Session is over."))
    }

    /// Lets the child go that has been at rest for longest, where there are as many as there may be.
    fn make_room(&self) -> Result<(), Failure> {
        let resting = {
            let children = self.children();
            if children.len() < MOST_CHILDREN {
                return Ok(());
            }
            children.iter().find(|child| !child.is_running()).cloned()
        };
        let resting = resting.ok_or_else(|| {
            Failure::new(
                "too-many",
                "too many background subagents; poll or finish existing ones first",
            )
            .with_hint(format!("At most {MOST_CHILDREN} work at once."))
        })?;
        self.end(&resting);
        Ok(())
    }

    /// Moves a child to the end of the line.
    fn used(&self, child: &Arc<Child>) {
        let mut children = self.children();
        if let Some(at) = children.iter().position(|known| Arc::ptr_eq(known, child)) {
            let child = children.remove(at);
            children.push(child);
        }
    }

    fn children(&self) -> MutexGuard<'_, Vec<Arc<Child>>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a task is called, on one line; none where nothing is said.
fn title(description: &str) -> Option<String> {
    let words: Vec<&str> = description.split_whitespace().collect();
    let line = words.join(" ");
    let title = match line.chars().count() > LONGEST_TITLE {
        true => {
            let kept: String = line.chars().take(LONGEST_TITLE - 1).collect();
            kept.trim_end().to_owned() + "…"
        }
        false => line,
    };
    (!title.is_empty()).then_some(title)
}

fn broke_off() -> Failure {
    Failure::new("internal", "the host broke off while it started a subagent")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_line_of_at_most_80_characters() {
        assert_eq!(title(" find\n\ttimeouts "), Some("find timeouts".into()));
        assert_eq!(title(" \n"), None);
        assert_eq!(title(&"é".repeat(80)), Some("é".repeat(80)));
        assert_eq!(title(&"é".repeat(81)), Some("é".repeat(79) + "…"));
    }
}
