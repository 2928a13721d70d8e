//! A todo list: what it may hold and how it is shown. Pure.

/// Items of a list, and characters of each (spec/coding-tools.md, appendix A).
const ITEMS: usize = 100;
const CHARACTERS: usize = 500;

#[derive(Debug, Clone, serde::Deserialize, schemars::JsonSchema)]
#[schemars(inline)]
pub(crate) struct Todo {
    /// What is to be done.
    pub(crate) content: String,
    /// How far it is; only one may be in_progress.
    pub(crate) status: Status,
    /// A name for it that stays the same.
    pub(crate) id: Option<String>,
    /// What to show while it is under way.
    pub(crate) active_form: Option<String>,
    /// How important it is.
    pub(crate) priority: Option<Priority>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Status {
    Pending,
    InProgress,
    Completed,
}

#[derive(Debug, Clone, Copy, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Priority {
    High,
    Medium,
    Low,
}

/// The list as it is kept.
pub(crate) fn tidy(mut todos: Vec<Todo>) -> Result<Vec<Todo>, String> {
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

/// The list for the model.
pub(crate) fn render(todos: &[Todo]) -> String {
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
}
