//! `grep`.

use std::fs;
use std::os::unix::fs::symlink;

use floe_protocol::Permission;
use serde_json::{Value, json};

use crate::rig::{Answer, Rig, definition};

const NOTHING: &str = "[no output]";

async fn grep(rig: &Rig, arguments: Value) -> Answer {
    rig.call("grep", arguments).await
}

#[test]
fn the_tool_is_called_grep_and_requires_a_pattern() {
    let definition = definition("grep");
    assert_eq!(definition.name, "grep");
    assert_eq!(definition.permission, Permission::ReadOnly);
    assert_eq!(definition.parameters["required"], json!(["pattern"]));
}

#[tokio::test]
async fn a_match_is_path_line_and_text() {
    let rig = Rig::new();
    rig.write("a.txt", "alpha\nbeta\n");
    rig.write("src/b.txt", "beta\r\nalphabet\r\n");
    let answer = grep(&rig, json!({"pattern": "alpha"})).await;
    assert_eq!(answer.completed(), "a.txt:1:alpha\nsrc/b.txt:2:alphabet\n");
}

#[tokio::test]
async fn what_is_no_regex_is_an_invalid_regex() {
    let rig = Rig::new();
    let answer = grep(&rig, json!({"pattern": "a("})).await;
    let text = answer.failed();
    assert!(
        text.starts_with("Invalid regex: ") && text.contains("unclosed group"),
        "{text}"
    );
}

#[tokio::test]
async fn case_is_ignored_where_that_is_asked_for() {
    let rig = Rig::new();
    rig.write("a", "Alpha\nÉTÉ\n");
    assert_eq!(
        grep(&rig, json!({"pattern": "alpha"})).await.completed(),
        NOTHING
    );
    let answer = grep(
        &rig,
        json!({"pattern": "alpha|été", "case_insensitive": true}),
    )
    .await;
    assert_eq!(answer.completed(), "a:1:Alpha\na:2:ÉTÉ\n");
}

#[tokio::test]
async fn a_path_that_climbs_out_is_refused() {
    let rig = Rig::new();
    fs::write(rig.outside().join("secret"), "MARKER").unwrap();
    for path in ["../outside", "/etc", "a/../../outside"] {
        let answer = grep(&rig, json!({"pattern": "MARKER|root", "path": path})).await;
        let text = answer.failed();
        assert!(
            text.starts_with(&format!("Path \"{path}\" is outside the Workspace.")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn node_modules_and_git_are_skipped() {
    let rig = Rig::new();
    for folder in [
        "node_modules/x",
        ".git",
        "sub/node_modules",
        "target",
        ".next",
        "dist",
        "build",
        ".cache",
    ] {
        rig.write(format!("{folder}/file"), "needle\n");
    }
    rig.write("kept/file", "needle\n");
    let answer = grep(&rig, json!({"pattern": "needle"})).await;
    assert_eq!(answer.completed(), "kept/file:1:needle\n");
    let answer = grep(
        &rig,
        json!({"pattern": "needle", "no_ignore": true, "output_mode": "files"}),
    )
    .await;
    assert_eq!(answer.completed().lines().count(), 9);
}

#[tokio::test]
async fn max_matches_is_honoured_and_the_note_says_that_there_are_more() {
    let rig = Rig::new();
    rig.write("a", "x\n".repeat(7));
    let answer = grep(&rig, json!({"pattern": "x", "max_matches": 3})).await;
    assert_eq!(
        answer.completed(),
        "a:1:x\na:2:x\na:3:x\n\n[matches 1–3; there are more, continue with offset 3]"
    );
    let answer = grep(&rig, json!({"pattern": "x", "max_matches": 3, "offset": 6})).await;
    assert_eq!(answer.completed(), "a:7:x\n");
    let answer = grep(&rig, json!({"pattern": "x", "offset": 7})).await;
    assert_eq!(
        answer.completed(),
        "[offset 7 is past the end: there are 7 matches]"
    );
}

#[tokio::test]
async fn exactly_as_many_matches_as_asked_for_are_not_called_truncated() {
    let rig = Rig::new();
    rig.write("a", "x\n".repeat(200));
    let answer = grep(&rig, json!({"pattern": "x"})).await;
    assert_eq!(answer.completed().lines().count(), 200);
    assert!(!answer.text.contains('['), "{}", answer.text);
    rig.write("b", "x\n");
    let answer = grep(&rig, json!({"pattern": "x"})).await;
    assert!(
        answer
            .completed()
            .ends_with("[matches 1–200; there are more, continue with offset 200]"),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn a_file_that_is_too_large_is_not_searched_and_counted() {
    let rig = Rig::new();
    let most = 5 * 1024 * 1024;
    rig.write("large", format!("needle\n{}", "x".repeat(most)));
    rig.write("small", "needle\n");
    let answer = grep(&rig, json!({"pattern": "needle"})).await;
    assert_eq!(
        answer.completed(),
        "small:1:needle\n\n[skipped: 1 larger than 5 MiB]"
    );
}

#[tokio::test]
async fn a_link_that_leads_out_never_leaks_a_match() {
    let rig = Rig::new();
    fs::create_dir(rig.outside().join("sub")).unwrap();
    fs::write(rig.outside().join("secret"), "MARKER\n").unwrap();
    fs::write(rig.outside().join("sub/secret"), "MARKER\n").unwrap();
    symlink("../outside/secret", rig.path("file")).unwrap();
    symlink("../outside", rig.path("folder")).unwrap();
    rig.write("inside", "MARKER\n");
    let answer = grep(&rig, json!({"pattern": "MARKER"})).await;
    assert_eq!(answer.completed(), "inside:1:MARKER\n");
    for path in ["file", "folder", "folder/sub", "folder/secret"] {
        let answer = grep(&rig, json!({"pattern": "MARKER", "path": path})).await;
        let text = answer.failed();
        assert!(!text.contains("MARKER"), "{text}");
    }
}

#[tokio::test]
async fn the_start_is_searched_even_where_its_name_is_in_the_skip_set() {
    let rig = Rig::new();
    rig.write("build/a", "needle\n");
    rig.write("build/target/b", "needle\n");
    let answer = grep(&rig, json!({"pattern": "needle", "path": "build"})).await;
    assert_eq!(answer.completed(), "build/a:1:needle\n");
}

#[tokio::test]
async fn what_gitignore_and_ignore_name_is_left_out() {
    let rig = Rig::new();
    rig.write(".gitignore", "*.log\n/only-here\n!kept.log\n");
    rig.write(".ignore", "vendor/\n");
    for file in [
        "a.log",
        "kept.log",
        "vendor/a",
        "only-here",
        "sub/only-here",
        "sub/b",
    ] {
        rig.write(file, "needle\n");
    }
    rig.write("sub/.gitignore", "b\n");
    let found = |arguments: Value| grep(&rig, arguments);
    let answer = found(json!({"pattern": "needle", "output_mode": "files"})).await;
    assert_eq!(answer.completed(), "kept.log\nsub/only-here\n");
    let answer =
        found(json!({"pattern": "needle", "output_mode": "files", "no_ignore": true})).await;
    assert_eq!(answer.completed().lines().count(), 6);
}

#[tokio::test]
async fn what_is_skipped_is_counted_by_reason() {
    let rig = Rig::new();
    rig.write("binary", b"needle\0");
    rig.write("latin", b"needle na\xefve\n");
    rig.write("wide", b"\xff\xfen\0e\0");
    rig.write("text", "needle\n");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        rig.path("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let answer = grep(&rig, json!({"pattern": "[n]e*"})).await;
    assert_eq!(
        answer.completed(),
        "text:1:needle\n\n[skipped: 1 binary, 2 not UTF-8, 1 no regular file]"
    );
}

#[tokio::test]
async fn a_line_of_fifty_megabytes_ends_within_the_limits() {
    let rig = Rig::new();
    rig.write("line", "x".repeat(50_000_000));
    let answer = grep(&rig, json!({"pattern": "x+y"})).await;
    assert_eq!(answer.completed(), "[skipped: 1 larger than 5 MiB]");
    rig.write("line", "x".repeat(5_000_000));
    let answer = grep(&rig, json!({"pattern": "x+y"})).await;
    assert_eq!(answer.completed(), NOTHING);
}

#[tokio::test]
async fn paths_come_sorted_part_by_part() {
    let rig = Rig::new();
    for file in ["b", "a/z", "a.b", "a/b/c", "Z"] {
        rig.write(file, "x\n");
    }
    let answer = grep(&rig, json!({"pattern": "x", "output_mode": "files"})).await;
    assert_eq!(answer.completed(), "Z\na/b/c\na/z\na.b\nb\n");
}

#[tokio::test]
async fn files_and_counts_can_be_asked_for_instead_of_lines() {
    let rig = Rig::new();
    rig.write("a", "x x\nx\n");
    rig.write("b", "x\n");
    let answer = grep(&rig, json!({"pattern": "x", "output_mode": "files"})).await;
    assert_eq!(answer.completed(), "a\nb\n");
    let answer = grep(&rig, json!({"pattern": "x", "output_mode": "count"})).await;
    assert_eq!(answer.completed(), "a:2\nb:1\n");
    let answer = grep(
        &rig,
        json!({"pattern": "x", "output_mode": "count", "max_matches": 1}),
    )
    .await;
    assert_eq!(
        answer.completed(),
        "a:2\n\n[files 1–1; there are more, continue with offset 1]"
    );
}

#[tokio::test]
async fn lines_around_a_match_are_shown_and_marked() {
    let rig = Rig::new();
    rig.write("a", "1\n2\nx\n4\n5\n6\nx\n");
    let around = |arguments: Value| grep(&rig, arguments);
    let answer = around(json!({"pattern": "x", "context": 1})).await;
    assert_eq!(
        answer.completed(),
        "a-2-2\na:3:x\na-4-4\n--\na-6-6\na:7:x\n"
    );
    let answer = around(json!({"pattern": "x", "before": 1})).await;
    assert_eq!(answer.completed(), "a-2-2\na:3:x\n--\na-6-6\na:7:x\n");
    let answer = around(json!({"pattern": "x", "after": 1})).await;
    assert_eq!(answer.completed(), "a:3:x\na-4-4\n--\na:7:x\n");
}

#[tokio::test]
async fn include_and_exclude_are_globs_with_braces_over_whole_paths_or_names() {
    let rig = Rig::new();
    for file in ["a.rs", "src/b.rs", "src/c.toml", "src/deep/d.rs", "e.md"] {
        rig.write(file, "x\n");
    }
    for (include, exclude, found) in [
        (
            json!("*.rs"),
            Value::Null,
            "a.rs\nsrc/b.rs\nsrc/deep/d.rs\n",
        ),
        (
            json!("*.{rs,toml}"),
            json!("a.*"),
            "src/b.rs\nsrc/c.toml\nsrc/deep/d.rs\n",
        ),
        (json!("src/*.rs"), Value::Null, "src/b.rs\n"),
        (json!("src/**"), json!("src/deep"), "src/b.rs\nsrc/c.toml\n"),
    ] {
        let mut arguments = json!({"pattern": "x", "output_mode": "files", "include": include});
        if exclude.is_string() {
            arguments["exclude"] = exclude;
        }
        assert_eq!(grep(&rig, arguments).await.completed(), found, "{include}");
    }
    let answer = grep(&rig, json!({"pattern": "x", "include": "{a"})).await;
    assert!(
        answer.failed().starts_with("Invalid glob pattern"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_match_over_lines_is_found_where_that_is_asked_for() {
    let rig = Rig::new();
    rig.write("a", "fn one(\n  x: u8,\n) {}\n");
    let pattern = r"one\(\s+x";
    assert_eq!(
        grep(&rig, json!({"pattern": pattern})).await.completed(),
        NOTHING
    );
    let answer = grep(&rig, json!({"pattern": pattern, "multiline": true})).await;
    assert_eq!(answer.completed(), "a:1:fn one(\na:2:  x: u8,\n");
}

#[tokio::test]
async fn a_fixed_string_means_itself() {
    let rig = Rig::new();
    rig.write("a", "f(x)\nfx\na.c\nabc\n");
    let fixed = |pattern: &str| json!({"pattern": pattern, "fixed_strings": true});
    assert_eq!(grep(&rig, fixed("f(x")).await.completed(), "a:1:f(x)\n");
    assert_eq!(grep(&rig, fixed("a.c")).await.completed(), "a:3:a.c\n");
}

#[tokio::test]
async fn a_long_line_is_shown_around_its_match() {
    let rig = Rig::new();
    rig.write(
        "a",
        format!("{}needle{}\n", "x".repeat(30_000), "y".repeat(30_000)),
    );
    let answer = grep(&rig, json!({"pattern": "needle"})).await;
    let text = answer.completed();
    assert!(
        text.starts_with("a:1:…xxx") && text.trim_end().ends_with("yyy…"),
        "{text}"
    );
    assert!(text.contains("needle") && text.len() < 2100, "{text}");
}

#[tokio::test]
async fn a_file_as_path_is_searched_alone() {
    let rig = Rig::new();
    rig.write("a", "x\n");
    rig.write("b", "x\n");
    assert_eq!(
        grep(&rig, json!({"pattern": "x", "path": "a"}))
            .await
            .completed(),
        "a:1:x\n"
    );
}

#[tokio::test]
async fn a_missing_path_is_an_error_with_near_names() {
    let rig = Rig::new();
    rig.write("source/a", "x\n");
    let answer = grep(&rig, json!({"pattern": "x", "path": "sorce"})).await;
    let text = answer.failed();
    assert!(text.starts_with("Failed to resolve path: "), "{text}");
    assert!(text.contains("Did you mean \"source\"?"), "{text}");
}

#[tokio::test]
async fn the_limits_of_files_and_bytes_say_that_they_ended_the_search() {
    let rig = Rig::new();
    for name in ["a", "b", "c"] {
        rig.write(name, "x\n".repeat(500));
    }
    let answer = grep(
        &rig,
        json!({"pattern": "x", "max_files": 2, "output_mode": "count"}),
    )
    .await;
    assert_eq!(
        answer.completed(),
        "a:500\nb:500\n\n[stopped after 2 files]"
    );
    let answer = grep(
        &rig,
        json!({"pattern": "x", "max_bytes": 2000, "output_mode": "count"}),
    )
    .await;
    assert_eq!(
        answer.completed(),
        "a:500\nb:500\n\n[stopped after 2000 bytes]"
    );
}

#[tokio::test]
async fn a_file_that_may_not_be_read_is_counted_and_its_content_stays_away() {
    let rig = Rig::new();
    rig.write(".env", "needle=1\n");
    rig.write("a", "needle\n");
    let answer = grep(&rig, json!({"pattern": "needle"})).await;
    assert_eq!(
        answer.completed(),
        "a:1:needle\n\n[skipped: 1 not allowed to be read]"
    );
}
