//! The todo list of a Session, its plan and its mode, as tools see them. Nobody else's Session shares them.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use floe_environment::{CallSite, MessageSink};
use floe_protocol::{EventMsg, Mode, OmniMessage, Todo};
use floe_runtime::capability::Failure;
use floe_runtime::capability::session_state::{SessionState, TodoItem, TodoStatus};

use crate::message_queue::MessageQueue;
use crate::plan::Plans;

/// Items of a list, and characters of each and of what is kept beside it, whichever tool writes it.
const MOST_TODOS: usize = 100;
const LONGEST_TODO: usize = 500;

/// What the calls of a Session share.
#[derive(Debug)]
pub(crate) struct SharedState {
    todos: Mutex<Vec<TodoItem>>,
    plans: Arc<Plans>,
    /// Weak: a call may outlive its Session by a moment.
    queue: Weak<MessageQueue>,
}

/// What one call sees: the shared state, and the mode in which it was decided.
#[derive(Debug)]
pub(crate) struct StateOfCall {
    shared: Arc<SharedState>,
    mode: Mode,
    tool_call_id: String,
}

impl SharedState {
    pub(crate) fn new(plans: Arc<Plans>, queue: Weak<MessageQueue>) -> Arc<SharedState> {
        Arc::new(SharedState {
            todos: Mutex::default(),
            plans,
            queue,
        })
    }

    /// The list as it was when the Session was last open.
    pub(crate) fn restore(&self, todos: Vec<Todo>) {
        use floe_protocol::TodoStatus as Told;
        let items = todos.into_iter().map(|todo| TodoItem {
            content: todo.content,
            status: match todo.status {
                Told::Pending => TodoStatus::Pending,
                Told::InProgress => TodoStatus::InProgress,
                Told::Completed => TodoStatus::Completed,
            },
            metadata: Vec::new(),
        });
        *self.todos.lock().unwrap_or_else(PoisonError::into_inner) = items.collect();
    }

    pub(crate) fn for_call(self: &Arc<SharedState>, call: &CallSite) -> StateOfCall {
        StateOfCall {
            shared: Arc::clone(self),
            mode: call.mode,
            tool_call_id: call.tool_call_id.clone(),
        }
    }
}

#[async_trait]
impl SessionState for StateOfCall {
    async fn todos(&self) -> Result<Vec<TodoItem>, Failure> {
        let todos = &self.shared.todos;
        Ok(todos.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    async fn set_todos(&self, items: Vec<TodoItem>) -> Result<(), Failure> {
        check(&items)?;
        let mut todos = self
            .shared
            .todos
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Under the lock: the last event is the list as it is.
        if let Some(queue) = self.shared.queue.upgrade() {
            queue.emit(OmniMessage::event(EventMsg::TodoList {
                todos: items.iter().map(told).collect(),
            }));
        }
        *todos = items;
        Ok(())
    }

    async fn propose_plan(&self, plan: &str) -> Result<(String, Option<String>), Failure> {
        if self.mode != Mode::Plan {
            return Err(Failure::new(
                "unsupported",
                "A plan is decided on in plan mode, and this Session is in build mode.",
            )
            .with_hint("Carry the plan out."));
        }
        if !self.shared.plans.hand_in(&self.tool_call_id, plan) {
            return Err(Failure::new(
                "conflict",
                "Another plan of this Session waits for its decision.",
            )
            .with_hint("Hand in one plan, and end your turn."));
        }
        // The decision is made when the call has ended, and with it the turn.
        Ok(("pending".to_owned(), None))
    }

    async fn mode(&self) -> Result<String, Failure> {
        Ok(self.mode.as_str().to_owned())
    }
}

fn check(items: &[TodoItem]) -> Result<(), Failure> {
    let too_large = |what: String| Err(Failure::new("too-large", what));
    if items.len() > MOST_TODOS {
        return too_large(format!(
            "A todo list has at most {MOST_TODOS} items, not {}.",
            items.len()
        ));
    }
    for (index, item) in items.iter().enumerate() {
        let beside = item.metadata.iter().flat_map(|(name, value)| [name, value]);
        let longest = beside
            .chain([&item.content])
            .map(|text| text.chars().count())
            .max();
        if longest.is_some_and(|length| length > LONGEST_TODO) || item.metadata.len() > 8 {
            return too_large(format!(
                "Item {index} of the todo list is too long (max {LONGEST_TODO} characters)."
            ));
        }
    }
    Ok(())
}

fn told(item: &TodoItem) -> Todo {
    use floe_protocol::TodoStatus as Told;
    Todo {
        content: item.content.clone(),
        status: match item.status {
            TodoStatus::Pending => Told::Pending,
            TodoStatus::InProgress => Told::InProgress,
            TodoStatus::Completed => Told::Completed,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> Arc<SharedState> {
        SharedState::new(Arc::default(), Weak::new())
    }

    fn call(shared: &Arc<SharedState>, mode: Mode) -> StateOfCall {
        StateOfCall {
            shared: Arc::clone(shared),
            mode,
            tool_call_id: "c1".into(),
        }
    }

    fn item(content: &str) -> TodoItem {
        TodoItem {
            content: content.into(),
            status: TodoStatus::Pending,
            metadata: Vec::new(),
        }
    }

    #[tokio::test]
    async fn calls_of_one_session_share_its_list_and_two_sessions_do_not() {
        let (one, other) = (state(), state());
        let first = call(&one, Mode::Build);
        first.set_todos(vec![item("a")]).await.unwrap();
        let next = call(&one, Mode::Plan);
        assert_eq!(next.todos().await.unwrap().len(), 1);
        assert_eq!(next.mode().await.unwrap(), "plan");
        let stranger = call(&other, Mode::Build);
        assert!(stranger.todos().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_list_beyond_the_limits_is_refused_and_the_old_one_stays() {
        let state = state();
        let call = call(&state, Mode::Build);
        let fits = vec![item(&"é".repeat(LONGEST_TODO)); MOST_TODOS];
        call.set_todos(fits).await.unwrap();
        let beside = TodoItem {
            metadata: vec![("id".into(), "x".repeat(LONGEST_TODO + 1))],
            ..item("a")
        };
        for items in [
            vec![item("a"); MOST_TODOS + 1],
            vec![item(&"é".repeat(LONGEST_TODO + 1))],
            vec![beside],
        ] {
            let failure = call.set_todos(items).await.unwrap_err();
            assert_eq!(failure.code, "too-large");
        }
        assert_eq!(call.todos().await.unwrap().len(), MOST_TODOS);
    }

    #[tokio::test]
    async fn a_plan_is_for_plan_mode_and_one_at_a_time() {
        let state = state();
        let building = call(&state, Mode::Build);
        let failure = building.propose_plan("p").await.unwrap_err();
        assert_eq!(failure.code, "unsupported");
        let planning = call(&state, Mode::Plan);
        assert_eq!(planning.propose_plan("p").await.unwrap().0, "pending");
        let failure = planning.propose_plan("q").await.unwrap_err();
        assert_eq!(failure.code, "conflict");
    }
}
