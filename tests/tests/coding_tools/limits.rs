//! Limits that a model meets without asking for them: what is just within passes, and one more does not.

use serde_json::json;

use crate::rig::Rig;

/// The largest file that `grep` searches.
const SEARCHED_BYTES: usize = 5 * 1024 * 1024;

#[tokio::test]
async fn grep_shows_200_matches_where_nothing_else_is_asked_for() {
    let rig = Rig::new();
    let lines = |count: usize| "needle\n".repeat(count);
    rig.write("a", lines(200));
    let answer = rig.call("grep", json!({"pattern": "needle"})).await;
    assert_eq!(answer.completed().matches("a:").count(), 200);
    assert!(!answer.text.contains('['), "{}", answer.text);
    rig.write("a", lines(201));
    let answer = rig.call("grep", json!({"pattern": "needle"})).await;
    assert_eq!(answer.completed().matches("a:").count(), 200);
    assert!(answer.text.contains("there are more"), "{}", answer.text);
}

#[tokio::test]
async fn grep_searches_a_file_of_5_mib_and_counts_one_of_a_byte_more() {
    let rig = Rig::new();
    let file = |length: usize| {
        let mut contents = vec![b'\n'; length];
        contents[length - 7..].copy_from_slice(b"needle\n");
        contents
    };
    rig.write("a", file(SEARCHED_BYTES));
    rig.write("b", file(SEARCHED_BYTES + 1));
    let answer = rig.call("grep", json!({"pattern": "needle"})).await;
    let text = answer.completed();
    assert!(text.starts_with("a:") && !text.contains("\nb:"), "{text}");
    assert!(text.contains("1 larger than 5 MiB"), "{text}");
}

#[tokio::test]
async fn glob_names_500_files_where_nothing_else_is_asked_for() {
    let rig = Rig::new();
    for number in 0..500 {
        rig.write(format!("f{number}"), "");
    }
    let answer = rig.call("glob", json!({"pattern": "f*"})).await;
    assert_eq!(answer.completed().lines().count(), 500);
    rig.write("f500", "");
    let answer = rig.call("glob", json!({"pattern": "f*"})).await;
    let named = answer
        .completed()
        .lines()
        .filter(|line| line.starts_with('f'));
    assert_eq!(named.count(), 500);
    assert!(answer.text.contains("501"), "{}", answer.text);
}
