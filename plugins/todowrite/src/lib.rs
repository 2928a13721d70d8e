//! The tool `todowrite`: the todo list of a Session, replaced whole.

use floe_tool::session_state::{self, TodoItem, TodoStatus};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};

/// Items of a list, and characters of each (spec/coding-tools.md, appendix A).
const ITEMS: usize = 100;
const CHARACTERS: usize = 500;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The whole list, in order; an empty one clears it.
    #[schemars(length(max = 100))]
    todos: Vec<Todo>,
}

#[derive(Debug, Clone, serde::Deserialize, schemars::JsonSchema)]
#[schemars(inline)]
struct Todo {
    /// What is to be done.
    content: String,
    /// How far it is; only one may be in_progress.
    status: Status,
    /// A name for it that stays the same.
    id: Option<String>,
    /// What to show while it is under way.
    active_form: Option<String>,
    /// How important it is.
    priority: Option<Priority>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Status {
    Pending,
    InProgress,
    Completed,
}

#[derive(Debug, Clone, Copy, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Priority {
    High,
    Medium,
    Low,
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

/// The list as it is kept.
fn tidy(mut todos: Vec<Todo>) -> Result<Vec<Todo>, String> {
    if todos.len() > ITEMS {
        return Err(format!("Too many todos: {} (max {ITEMS})", todos.len()));
    }
    for (index, todo) in todos.iter_mut().enumerate() {
        todo.content = todo.content.trim().to_owned();
        if todo.content.is_empty() {
            return Err("todo `content` must not be empty".to_owned());
        }
        let length = todo.content.chars().count();
        if length > CHARACTERS {
            return Err(format!(
                "todos[{index}]: `content` is too long: {length} characters (max {CHARACTERS})"
            ));
        }
    }
    let under_way = todos
        .iter()
        .filter(|todo| todo.status == Status::InProgress)
        .count();
    if under_way > 1 {
        return Err(format!(
            "Only one todo may be `in_progress` at a time (got {under_way})"
        ));
    }
    Ok(todos)
}

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

fn render(todos: &[Todo]) -> String {
    let mut text = format!("Todo list updated ({} item(s)):\n", todos.len());
    for todo in todos {
        text.push_str(match todo.status {
            Status::Pending => "[ ] ",
            Status::InProgress => "[~] ",
            Status::Completed => "[x] ",
        });
        // An item is one line, whatever is in it.
        text.push_str(
            &todo
                .content
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
        );
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn todo(content: &str, status: Status) -> Todo {
        Todo {
            content: content.into(),
            status,
            id: None,
            active_form: None,
            priority: None,
        }
    }

    #[test]
    fn the_list_is_shown_with_a_mark_for_each_status() {
        let todos = [
            todo("a", Status::Pending),
            todo("b\nb", Status::InProgress),
            todo("c", Status::Completed),
        ];
        assert_eq!(
            render(&todos),
            "Todo list updated (3 item(s)):\n[ ] a\n[~] b b\n[x] c\n"
        );
        assert_eq!(render(&[]), "Todo list updated (0 item(s)):\n");
    }

    #[test]
    fn a_blank_item_two_under_way_and_too_much_are_refused() {
        let refused = |todos: Vec<Todo>| tidy(todos).unwrap_err();
        assert_eq!(
            refused(vec![todo(" \n", Status::Pending)]),
            "todo `content` must not be empty"
        );
        let two = vec![todo("a", Status::InProgress), todo("b", Status::InProgress)];
        assert_eq!(
            refused(two),
            "Only one todo may be `in_progress` at a time (got 2)"
        );
        let long = "é".repeat(501);
        assert!(refused(vec![todo(&long, Status::Pending)]).contains("501 characters"));
        assert!(refused(vec![todo("a", Status::Pending); 101]).contains("max 100"));
        assert!(tidy(Vec::new()).unwrap().is_empty());
        assert_eq!(
            tidy(vec![todo(" a ", Status::Pending)]).unwrap()[0].content,
            "a"
        );
    }

    #[test]
    fn what_else_is_known_of_an_item_is_kept_beside_it() {
        let kept = item(&Todo {
            id: Some("7".into()),
            priority: Some(Priority::High),
            ..todo("a", Status::Completed)
        });
        let expected = [("id", "7"), ("priority", "high")];
        assert_eq!(
            kept.metadata,
            expected.map(|(name, value)| (name.into(), value.into()))
        );
    }
}
