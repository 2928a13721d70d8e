//! Any JSON is a todo list or is refused with a message; a list that is kept has no blank item, at most one under way, and is shown with one
//! line an item.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../plugins/todowrite/src/todos.rs"]
mod todos;

use todos::{Status, Todo, render, tidy};

fuzz_target!(|text: &str| {
    let Ok(list) = serde_json::from_str::<Vec<Todo>>(text) else {
        return;
    };
    let Ok(list) = tidy(list) else {
        return;
    };
    assert!(list.iter().all(|todo| !todo.content.trim().is_empty()));
    assert!(list.iter().filter(|todo| todo.status == Status::InProgress).count() <= 1);
    assert_eq!(render(&list).lines().count(), list.len() + 1);
});
