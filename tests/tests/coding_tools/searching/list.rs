//! `list`.

use std::fs;
use std::os::unix::fs::symlink;

use floe_protocol::Permission;
use serde_json::{Value, json};

use crate::rig::{Answer, Rig, definition};

async fn list(rig: &Rig, arguments: Value) -> Answer {
    rig.call("list", arguments).await
}

#[test]
fn the_tool_is_called_list_and_requires_nothing() {
    let definition = definition("list");
    assert_eq!(definition.name, "list");
    assert_eq!(definition.permission, Permission::ReadOnly);
    assert_eq!(definition.parameters.get("required"), None);
}

#[tokio::test]
async fn an_entry_is_its_kind_a_tab_and_its_name_sorted_by_name() {
    let rig = Rig::new();
    rig.write("src/a.rs", "");
    rig.write("b.txt", "text");
    rig.write(".env", "");
    fs::create_dir(rig.path("node_modules")).unwrap();
    assert_eq!(
        list(&rig, json!({})).await.completed(),
        "file\t.env\nfile\tb.txt\ndir\tnode_modules\ndir\tsrc\n"
    );
    assert_eq!(
        list(&rig, json!({"path": "src"})).await.completed(),
        "file\ta.rs\n"
    );
}

#[tokio::test]
async fn a_path_that_climbs_out_is_refused() {
    let rig = Rig::new();
    fs::write(rig.outside().join("only-outside"), "").unwrap();
    symlink("../outside", rig.path("folder")).unwrap();
    for path in ["../outside", "/etc", "folder"] {
        let answer = list(&rig, json!({"path": path})).await;
        let text = answer.failed();
        assert!(
            text.starts_with(&format!("Path \"{path}\" is outside the Workspace.")),
            "{text}"
        );
        assert!(!text.contains("only-outside"), "{text}");
    }
}

#[tokio::test]
async fn a_missing_folder_cannot_be_resolved() {
    let rig = Rig::new();
    let answer = list(&rig, json!({"path": "missing"})).await;
    let text = answer.failed();
    assert!(text.starts_with("Failed to resolve path: "), "{text}");
}

#[tokio::test]
async fn a_file_as_path_is_no_directory() {
    let rig = Rig::new();
    rig.write("a.txt", "");
    assert_eq!(
        list(&rig, json!({"path": "a.txt"})).await.failed(),
        "Failed to read directory: \"a.txt\" is not a directory. Use file_read for a file."
    );
}

#[tokio::test]
async fn a_link_is_told_as_a_link_wherever_it_leads() {
    let rig = Rig::new();
    rig.write("a", "");
    symlink("a", rig.path("inside")).unwrap();
    symlink("../outside", rig.path("out")).unwrap();
    symlink("nowhere", rig.path("zero")).unwrap();
    assert_eq!(
        list(&rig, json!({})).await.completed(),
        "file\ta\nlink\tinside\nlink\tout\nlink\tzero\n"
    );
}

#[tokio::test]
async fn of_1001_entries_the_first_1000_by_name_are_shown_and_one_more_is_told() {
    let rig = Rig::new();
    for number in (0..1001).rev() {
        rig.write(format!("{number:04}"), "");
    }
    let answer = list(&rig, json!({})).await;
    let text = answer.completed();
    assert!(text.starts_with("file\t0000\nfile\t0001\n"), "{text}");
    assert!(
        text.ends_with(
            "file\t0999\n\n[entries 1–1000 of 1001; … 1 more, continue with offset 1001]"
        ),
        "{text}"
    );
    assert_eq!(
        list(&rig, json!({"offset": 1001})).await.completed(),
        "file\t1000\n\n[entries 1001–1001 of 1001]"
    );
    assert_eq!(
        list(&rig, json!({"offset": 1002})).await.failed(),
        "Offset 1002 is past the end: there are 1001 entries."
    );
}

#[tokio::test]
async fn a_newline_in_a_name_is_escaped() {
    let rig = Rig::new();
    rig.write("a\nfile\tforged", "");
    rig.write("\u{1b}[2Jgone", "");
    assert_eq!(
        list(&rig, json!({})).await.completed(),
        "file\t\\u{1b}[2Jgone\nfile\ta\\nfile\\tforged\n"
    );
}

#[tokio::test]
async fn sizes_are_a_third_column_only_where_they_are_asked_for() {
    let rig = Rig::new();
    rig.write("a", "12345");
    fs::create_dir(rig.path("b")).unwrap();
    assert_eq!(list(&rig, json!({})).await.completed(), "file\ta\ndir\tb\n");
    assert_eq!(
        list(&rig, json!({"size": true})).await.completed(),
        "file\ta\t5\ndir\tb\n"
    );
}

#[tokio::test]
async fn up_to_three_levels_can_be_listed_and_links_are_not_followed() {
    let rig = Rig::new();
    rig.write("a/b/c/d", "");
    symlink("a", rig.path("link")).unwrap();
    assert_eq!(
        list(&rig, json!({"depth": 3})).await.completed(),
        "dir\ta\ndir\ta/b\ndir\ta/b/c\nlink\tlink\n"
    );
    for depth in [0, 4] {
        let answer = list(&rig, json!({"depth": depth})).await;
        assert!(
            answer
                .failed()
                .contains("Invalid argument \"/depth\" for list"),
            "{answer:?}"
        );
    }
}
