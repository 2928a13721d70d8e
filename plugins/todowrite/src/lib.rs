//! The tool `todowrite`: the todo list of a Session, replaced whole.

mod todos;

use floe_tool::session_state::{self, TodoItem, TodoStatus};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};

use todos::{Priority, Status, Todo, render, tidy};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The whole list, in order; an empty one clears it.
    #[schemars(length(max = 100))]
    todos: Vec<Todo>,
}

struct TodoWrite;

impl Tool for TodoWrite {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            "todowrite",
            "Replaces the todo list of this Session and shows it. Use it for work of several steps: write all steps, mark one in_progress, and \
             each completed when it is done.",
        )
        .permission(Permission::None)
        .timeout_ms(10_000)
        .max_output_length(16_000)
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        let todos = match tidy(arguments.todos) {
            Ok(todos) => todos,
            Err(message) => return Ok(Outcome::failed(message)),
        };
        let items: Vec<TodoItem> = todos.iter().map(item).collect();
        session_state::set_todos(&items)?;
        Ok(Outcome::text(render(&todos)))
    }
}

floe_tool::export!(TodoWrite);

fn item(todo: &Todo) -> TodoItem {
    let priority = todo.priority.map(|priority| match priority {
        Priority::High => "high".to_owned(),
        Priority::Medium => "medium".to_owned(),
        Priority::Low => "low".to_owned(),
    });
    let metadata = [
        ("id", todo.id.clone()),
        ("active-form", todo.active_form.clone()),
        ("priority", priority),
    ];
    TodoItem {
        content: todo.content.clone(),
        status: match todo.status {
            Status::Pending => TodoStatus::Pending,
            Status::InProgress => TodoStatus::InProgress,
            Status::Completed => TodoStatus::Completed,
        },
        metadata: metadata
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_else_is_known_of_an_item_is_kept_beside_it() {
        let kept = item(&Todo {
            id: Some("7".into()),
            priority: Some(Priority::High),
            content: "a".into(),
            status: Status::Completed,
            active_form: None,
        });
        let expected = [("id", "7"), ("priority", "high")];
        assert_eq!(
            kept.metadata,
            expected.map(|(name, value)| (name.into(), value.into()))
        );
    }
}
