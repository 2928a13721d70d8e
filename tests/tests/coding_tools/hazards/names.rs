//! Names that are hard to write down, and paths that are long or deep.

use std::fs::{self, File};
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use serde_json::json;

use crate::rig::Rig;

/// Makes folders below the Workspace, one within the other, however long the path gets, and a file in the last.
fn nest(rig: &Rig, names: &[String], file: &str, contents: &str) {
    let open = |above: &OwnedFd, name: &str| {
        openat(
            above,
            name,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = openat(CWD, rig.workspace(), flags, Mode::empty()).unwrap();
    for name in names {
        mkdirat(&folder, name.as_str(), Mode::RWXU).unwrap();
        folder = open(&folder, name).unwrap();
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let made = openat(&folder, file, flags, Mode::RUSR | Mode::WUSR).unwrap();
    std::io::Write::write_all(&mut File::from(made), contents.as_bytes()).unwrap();
}

#[tokio::test]
async fn composed_and_decomposed_names_are_two_names_and_each_opens_its_own() {
    let rig = Rig::new();
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}");
    rig.write(composed, "composed\n");
    rig.write(decomposed, "decomposed\n");
    let found = rig.call("glob", json!({"pattern": "caf*"})).await;
    let mut names: Vec<&str> = found.completed().lines().collect();
    names.sort_unstable();
    assert_eq!(names, [decomposed, composed]);
    for (name, contents) in [(composed, "composed\n"), (decomposed, "decomposed\n")] {
        let read = rig.call("file_read", json!({ "path": name })).await;
        assert_eq!(read.completed(), contents);
        let searched = rig
            .call("grep", json!({"pattern": "composed", "path": name}))
            .await;
        assert_eq!(searched.completed(), format!("{name}:1:{contents}"));
    }
}

/// Names with control characters, quotes, leading dashes and more, and how each is written on a line.
const ODD: [(&str, &str); 10] = [
    ("line\nbreak", "line\\nbreak"),
    ("tab\tstop", "tab\\tstop"),
    ("-rf", "-rf"),
    ("--help", "--help"),
    ("\u{1b}[31mred\u{1b}[0m", "\\u{1b}[31mred\\u{1b}[0m"),
    ("back\\slash", "back\\slash"),
    ("back\\slash\rreturn", "back\\\\slash\\rreturn"),
    (" spaces ", " spaces "),
    ("a:1:b", "a:1:b"),
    ("\u{202e}cod.txt", "\u{202e}cod.txt"),
];

#[tokio::test]
async fn odd_names_stay_on_their_line_and_open_by_what_stands_there() {
    let rig = Rig::new();
    for (name, _) in ODD {
        rig.write(name, format!("needle of {name:?}\n"));
    }
    let found = rig.call("glob", json!({"pattern": "*"})).await;
    let searched = rig
        .call("grep", json!({"pattern": "needle", "output_mode": "files"}))
        .await;
    let listed = rig.call("list", json!({})).await;
    for (name, written) in ODD {
        assert!(
            found.completed().lines().any(|line| line == written),
            "{found:?}"
        );
        assert!(
            searched.completed().lines().any(|line| line == written),
            "{searched:?}"
        );
        let entry = format!("file\t{written}");
        assert!(
            listed.completed().lines().any(|line| line == entry),
            "{listed:?}"
        );
        for path in [name, written] {
            let read = rig.call("file_read", json!({ "path": path })).await;
            assert_eq!(read.completed(), format!("needle of {name:?}\n"));
            let alone = rig
                .call(
                    "grep",
                    json!({"pattern": "needle", "path": path, "output_mode": "files"}),
                )
                .await;
            assert_eq!(alone.completed(), format!("{written}\n"));
        }
    }
    assert_eq!(found.completed().lines().count(), ODD.len());
}

#[tokio::test]
async fn a_name_that_would_forge_a_line_is_not_suggested() {
    let rig = Rig::new();
    rig.write("evil\nname\u{1b}[2J", "");
    let read = rig.call("file_read", json!({"path": "evil name[2J"})).await;
    let text = read.failed();
    assert!(!text.contains('\n') && !text.contains('\u{1b}'), "{text}");
}

#[tokio::test]
async fn a_name_of_255_bytes_is_a_name_and_a_longer_one_is_said_to_be_none() {
    let rig = Rig::new();
    let longest = "é".repeat(127) + "x";
    assert_eq!(longest.len(), 255);
    rig.write(&longest, "needle\n");
    let read = rig.call("file_read", json!({ "path": longest })).await;
    assert_eq!(read.completed(), "needle\n");
    let found = rig.call("glob", json!({"pattern": "*x"})).await;
    assert_eq!(found.completed(), format!("{longest}\n"));
    for (tool, argument) in [("file_read", "path"), ("list", "path")] {
        let answer = rig
            .call(tool, json!({argument: format!("{longest}x")}))
            .await;
        assert!(
            answer.failed().contains("too long for a file name"),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn a_path_of_four_kibibytes_opens_and_what_lies_deeper_is_counted_and_not_named() {
    let rig = Rig::new();
    let names: Vec<String> = (0..20).map(|level| format!("{level:0>202}")).collect();
    // 20 names of 202 bytes with a slash each are 4060 bytes.
    nest(&rig, &names, "leaf", "needle\n");
    let long = format!("{}/leaf", names.join("/"));
    assert_eq!(long.len(), 4064);
    let read = rig.call("file_read", json!({ "path": long })).await;
    assert_eq!(read.completed(), "needle\n");
    let found = rig.call("glob", json!({"pattern": "**/leaf"})).await;
    assert_eq!(found.completed(), format!("{long}\n"));
    let searched = rig
        .call("grep", json!({"pattern": "needle", "output_mode": "files"}))
        .await;
    assert_eq!(searched.completed(), format!("{long}\n"));
    fs::remove_dir_all(rig.path(&names[0])).unwrap();

    let names: Vec<String> = (0..30).map(|level| format!("{level:0>202}")).collect();
    nest(&rig, &names, "leaf", "needle\n");
    let found = rig.call("glob", json!({"pattern": "**/leaf"})).await;
    assert_eq!(found.completed(), "[no output]");
    let searched = rig.call("grep", json!({"pattern": "needle"})).await;
    assert_eq!(searched.completed(), "[skipped: 1 unreadable]");
    let deeper = format!("{}/leaf", names.join("/"));
    let read = rig.call("file_read", json!({ "path": deeper })).await;
    assert!(!read.failed().contains("needle"));
    let absurd = rig
        .call("file_read", json!({"path": "x/".repeat(1_000_000)}))
        .await;
    assert!(absurd.failed().starts_with("Failed to resolve file path: "));
}

#[tokio::test]
async fn a_tree_a_hundred_folders_deep_is_read_and_searched() {
    let rig = Rig::new();
    let folder = "d/".repeat(100);
    rig.write(format!("{folder}leaf"), "needle\n");
    let leaf = format!("{folder}leaf");
    let read = rig.call("file_read", json!({ "path": leaf })).await;
    assert_eq!(read.completed(), "needle\n");
    let found = rig.call("glob", json!({"pattern": "**/leaf"})).await;
    assert_eq!(found.completed(), format!("{leaf}\n"));
    let searched = rig.call("grep", json!({"pattern": "needle"})).await;
    assert_eq!(searched.completed(), format!("{leaf}:1:needle\n"));
    let listed = rig.call("list", json!({ "path": folder })).await;
    assert_eq!(listed.completed(), "file\tleaf\n");
}
