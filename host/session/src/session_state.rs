//! The todo list of a Session and its mode, as tools see them. Nobody else's Session shares it.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use floe_protocol::Mode;
use floe_runtime::capability::Failure;
use floe_runtime::capability::session_state::{SessionState, TodoItem};

/// The list of a Session. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Todos(Arc<Mutex<Vec<TodoItem>>>);

/// What one call sees: the list, and the mode in which it was decided.
#[derive(Debug)]
pub(crate) struct StateOfCall {
    todos: Todos,
    mode: Mode,
}

impl Todos {
    pub(crate) fn for_call(&self, mode: Mode) -> StateOfCall {
        StateOfCall {
            todos: self.clone(),
            mode,
        }
    }
}

#[async_trait]
impl SessionState for StateOfCall {
    async fn todos(&self) -> Result<Vec<TodoItem>, Failure> {
        let todos = self.todos.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(todos.clone())
    }

    async fn set_todos(&self, items: Vec<TodoItem>) -> Result<(), Failure> {
        *self.todos.0.lock().unwrap_or_else(PoisonError::into_inner) = items;
        Ok(())
    }

    async fn propose_plan(&self, _plan: &str) -> Result<(String, Option<String>), Failure> {
        Err(Failure::new(
            "unsupported",
            "Plans cannot be decided on in this Session yet.",
        )
        .with_hint(
            "End your turn with the plan as text; the person starts another Session in build mode.",
        ))
    }

    async fn mode(&self) -> Result<String, Failure> {
        Ok(match self.mode {
            Mode::Plan => "plan",
            Mode::Build => "build",
        }
        .to_owned())
    }
}

#[cfg(test)]
mod tests {
    use floe_runtime::capability::session_state::TodoStatus;

    use super::*;

    #[tokio::test]
    async fn calls_of_one_session_share_its_list_and_two_sessions_do_not() {
        let (one, other) = (Todos::default(), Todos::default());
        let item = TodoItem {
            content: "a".into(),
            status: TodoStatus::Pending,
            metadata: Vec::new(),
        };
        let call = one.for_call(Mode::Build);
        call.set_todos(vec![item]).await.unwrap();
        let next = one.for_call(Mode::Plan);
        assert_eq!(next.todos().await.unwrap().len(), 1);
        assert_eq!(next.mode().await.unwrap(), "plan");
        assert!(
            other
                .for_call(Mode::Build)
                .todos()
                .await
                .unwrap()
                .is_empty()
        );
    }
}
