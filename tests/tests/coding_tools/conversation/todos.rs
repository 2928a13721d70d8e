//! `todowrite`: the list of one Session, replaced whole.

use floe_protocol::{Body, EventMsg, Permission, Todo, TodoStatus};
use serde_json::{Value, json};

use crate::rig::{Rig, definition};

const TOOL: &str = "todowrite";

fn todo(content: &str, status: &str) -> Value {
    json!({"content": content, "status": status})
}

fn lists(rig: &Rig) -> Vec<Vec<Todo>> {
    let messages = rig.messages().into_iter();
    messages
        .filter_map(|message| match message.body {
            Body::EventMsg(EventMsg::TodoList { todos }) => Some(todos),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn each_status_has_its_mark() {
    let rig = Rig::new();
    let todos = json!([
        todo("write", "pending"),
        todo("test", "in_progress"),
        todo("look", "completed")
    ]);
    let answer = rig.call(TOOL, json!({"todos": todos})).await;
    assert_eq!(
        answer.completed().trim_end(),
        "Todo list updated (3 item(s)):\n[ ] write\n[~] test\n[x] look"
    );
    assert_eq!(definition(TOOL).permission, Permission::None);
}

#[tokio::test]
async fn a_list_replaces_the_one_before_and_an_empty_one_clears_it() {
    let rig = Rig::new();
    for (todos, shown) in [
        (
            json!([todo("a", "pending"), todo("b", "pending")]),
            "(2 item(s)):\n[ ] a\n[ ] b",
        ),
        (json!([todo("c", "completed")]), "(1 item(s)):\n[x] c"),
        (json!([]), "(0 item(s)):"),
    ] {
        let answer = rig.call(TOOL, json!({"todos": todos})).await;
        assert_eq!(
            answer.completed().trim_end(),
            format!("Todo list updated {shown}")
        );
    }
    let lengths: Vec<usize> = lists(&rig).iter().map(Vec::len).collect();
    assert_eq!(lengths, [2, 1, 0], "each list is an event");
}

#[tokio::test]
async fn the_list_is_an_event_with_the_status_of_each_item() {
    let rig = Rig::new();
    rig.call(TOOL, json!({"todos": [todo("a", "in_progress")]}))
        .await
        .completed();
    assert_eq!(
        lists(&rig),
        [[Todo {
            content: "a".into(),
            status: TodoStatus::InProgress
        }]]
    );
}

#[tokio::test]
async fn two_items_in_progress_are_refused_and_the_old_list_stays() {
    let rig = Rig::new();
    let todos = json!([todo("a", "in_progress"), todo("b", "in_progress")]);
    let answer = rig.call(TOOL, json!({"todos": todos})).await;
    assert!(
        answer
            .failed()
            .starts_with("Only one todo may be `in_progress` at a time (got 2)")
    );
    assert!(lists(&rig).is_empty());
}

#[tokio::test]
async fn an_item_without_content_is_refused() {
    let rig = Rig::new();
    let answer = rig
        .call(TOOL, json!({"todos": [todo(" \n", "pending")]}))
        .await;
    assert!(
        answer
            .failed()
            .starts_with("todo `content` must not be empty")
    );
}

#[tokio::test]
async fn what_is_no_list_of_todos_is_refused() {
    let rig = Rig::new();
    for todos in [
        json!({"content": "a"}),
        json!([todo("a", "doing")]),
        json!([{"status": "pending"}]),
        json!(7),
    ] {
        rig.call(TOOL, json!({"todos": todos})).await.failed();
    }
    assert!(lists(&rig).is_empty());
}

#[tokio::test]
async fn a_list_has_at_most_100_items_of_500_characters() {
    let rig = Rig::new();
    let most = vec![todo(&"é".repeat(500), "pending"); 100];
    let answer = rig.call(TOOL, json!({"todos": most})).await;
    answer.completed();
    let many = vec![todo("a", "pending"); 101];
    rig.call(TOOL, json!({"todos": many})).await.failed();
    let long = [todo(&"é".repeat(501), "pending")];
    let answer = rig.call(TOOL, json!({"todos": long})).await;
    assert!(answer.failed().contains("501 characters"), "{answer:?}");
    assert_eq!(lists(&rig).len(), 1);
}

#[tokio::test]
async fn two_sessions_do_not_share_a_list() {
    let (one, other) = (Rig::new(), Rig::new());
    one.call(TOOL, json!({"todos": [todo("mine", "pending")]}))
        .await
        .completed();
    let answer = other
        .call(TOOL, json!({"todos": [todo("yours", "pending")]}))
        .await;
    assert!(!answer.completed().contains("mine"));
    assert_eq!(lists(&one).concat()[0].content, "mine");
    assert_eq!(lists(&other).concat()[0].content, "yours");
}
