//! `file_read`: what a model reads of a file, and what it is told where it reads nothing.

use serde_json::json;

use crate::rig::Rig;

#[tokio::test]
async fn existing_text_is_read_exactly() {
    let rig = Rig::new();
    rig.write("notes.txt", "alpha\n\n  beta\t\nlast");
    let answer = rig.call("file_read", json!({"path": "notes.txt"})).await;
    assert_eq!(answer.completed(), "alpha\n\n  beta\t\nlast");
}
