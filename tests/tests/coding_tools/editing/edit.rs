//! What `edit` finds and replaces, what it keeps of a file, and what it refuses.

use std::os::unix::fs::symlink;

use floe_protocol::{ApprovalMode, Permission};
use serde_json::json;

use super::{FILE_BYTES, beside, changes, edit, edit_all, mode, names, set_mode, with};
use crate::rig::Rig;

#[tokio::test]
async fn edit_replaces_what_is_there_once_and_shows_the_diff() {
    let rig = with(&[("a.rs", b"fn one() {}\nfn two() {}\nfn three() {}\n")]);
    let answer = edit(&rig, "a.rs", "fn two()", "fn deux()").await;
    assert_eq!(
        answer.completed(),
        "Edited a.rs: 1 replacement(s)\n--- a/a.rs\n+++ b/a.rs\n@@ -1,3 +1,3 @@\n fn one() {}\n-fn two() {}\n+fn deux() {}\n fn three() {}\n"
    );
    assert_eq!(
        rig.read_text("a.rs"),
        "fn one() {}\nfn deux() {}\nfn three() {}\n"
    );
    let told = answer.facts.structured.as_ref().unwrap();
    assert_eq!(told["replacements"], 1);
    assert_eq!(told.get("matched"), None);
    assert_eq!(changes(&answer)[0]["lines_added"], 1);
}

#[tokio::test]
async fn edit_of_an_ambiguous_text_says_how_often_and_where_it_matches_and_changes_nothing() {
    let rig = with(&[("a", b"x\ny\nx\nx\n")]);
    let answer = edit(&rig, "a", "x", "z").await;
    assert_eq!(
        answer.failed(),
        "`old_string` matches 3 times in a; pass `replace_all: true` or expand `old_string` so it is unique (lines 1, 3, 4)"
    );
    assert_eq!(rig.read("a"), b"x\ny\nx\nx\n");
}

#[tokio::test]
async fn edit_with_replace_all_replaces_every_match() {
    let rig = with(&[("a", b"x\ny\nx\nx\n")]);
    let answer = edit_all(&rig, "a", "x", "z").await;
    assert!(
        answer
            .completed()
            .starts_with("Edited a: 3 replacement(s)\n"),
        "{answer:?}"
    );
    assert_eq!(rig.read("a"), b"z\ny\nz\nz\n");
}

#[tokio::test]
async fn edit_of_a_text_that_is_not_there_is_an_error_that_says_so() {
    let rig = with(&[("a", b"entirely other\n")]);
    let answer = edit(&rig, "a", "1234567890", "x").await;
    assert!(
        answer.failed().starts_with("`old_string` not found in a"),
        "{answer:?}"
    );
    assert_eq!(rig.read("a"), b"entirely other\n");
}

#[tokio::test]
async fn edit_of_a_text_that_is_nearly_there_names_the_line_and_how_alike_it_is() {
    let rig = with(&[("a", b"one\ntwo\nfn total(prices: &[u32]) -> u32 {\n")]);
    let answer = edit(&rig, "a", "fn total(price: &[u64]) -> u64 {", "x").await;
    let text = answer.failed();
    assert!(
        text.starts_with("`old_string` not found in a; the most similar text starts at line 3 ("),
        "{text}"
    );
    let share: u32 = text
        .split(['(', ' '])
        .find_map(|word| word.parse().ok().filter(|share| *share > 3))
        .unwrap();
    assert!((60..100).contains(&share), "{text}");
}

#[tokio::test]
async fn a_cap_of_read_only_refuses_edit() {
    let rig = Rig::with(|options| options.max_permission = Some(Permission::ReadOnly));
    rig.write("a", "x");
    let answer = edit(&rig, "a", "x", "y").await;
    assert!(
        answer.aborted().contains("Tool call denied by policy."),
        "{answer:?}"
    );
    assert_eq!(rig.read("a"), b"x");
}

#[tokio::test]
async fn a_person_who_cannot_be_asked_allows_no_edit() {
    let rig = Rig::with(|options| options.approval_mode = ApprovalMode::AlwaysAsk);
    rig.write("a", "x");
    let answer = edit(&rig, "a", "x", "y").await;
    assert_eq!(answer.aborted(), "Tool call denied by user.");
    assert_eq!(rig.read("a"), b"x");
}

#[tokio::test]
async fn edit_with_an_empty_old_string_is_refused() {
    let rig = with(&[("a", b"x")]);
    let answer = edit(&rig, "a", "", "y").await;
    assert!(
        answer
            .failed()
            .starts_with("`old_string` must not be empty"),
        "{answer:?}"
    );
    assert_eq!(rig.read("a"), b"x");
}

#[tokio::test]
async fn edit_with_identical_strings_is_refused() {
    let rig = with(&[("a", b"x")]);
    let answer = edit(&rig, "a", "x", "x").await;
    assert_eq!(
        answer.failed(),
        "`old_string` and `new_string` are identical — nothing to do"
    );
}

#[tokio::test]
async fn edit_requires_its_three_strings() {
    let rig = with(&[("a", b"x")]);
    for (arguments, name) in [
        (json!({"old_string": "x", "new_string": "y"}), "path"),
        (json!({"path": "a", "new_string": "y"}), "old_string"),
        (json!({"path": "a", "old_string": "x"}), "new_string"),
    ] {
        let answer = rig.call("edit", arguments).await;
        assert_eq!(
            answer.failed(),
            format!("Missing required argument \"{name}\" for edit.")
        );
    }
    assert_eq!(rig.read("a"), b"x");
}

#[tokio::test]
async fn edit_through_a_link_is_refused_and_the_link_stays() {
    let rig = with(&[("real", b"x")]);
    symlink("real", rig.path("link")).unwrap();
    let answer = edit(&rig, "link", "x", "y").await;
    assert!(
        answer
            .failed()
            .starts_with("Refusing to edit through symlink: \"link\""),
        "{answer:?}"
    );
    assert!(rig.path("link").is_symlink());
    assert_eq!(rig.read("real"), b"x");
}

#[tokio::test]
async fn a_crlf_file_is_edited_by_a_text_with_lf_and_stays_crlf() {
    let rig = with(&[("a", b"one\r\ntwo\r\nthree\r\n")]);
    let answer = edit(&rig, "a", "one\ntwo\n", "1\n2\n2b\n").await;
    assert!(
        answer
            .completed()
            .starts_with("Edited a: 1 replacement(s) (matched ignoring line endings)\n"),
        "{answer:?}"
    );
    assert_eq!(rig.read("a"), b"1\r\n2\r\n2b\r\nthree\r\n");
    // A text on one line is there exactly, and what it becomes has the endings of the file all the same.
    let answer = edit(&rig, "a", "three", "3\n4").await;
    assert!(
        answer
            .completed()
            .starts_with("Edited a: 1 replacement(s)\n"),
        "{answer:?}"
    );
    assert_eq!(rig.read("a"), b"1\r\n2\r\n2b\r\n3\r\n4\r\n");
}

#[tokio::test]
async fn a_byte_order_mark_is_kept() {
    let rig = with(&[("a", b"\xEF\xBB\xBFone\n")]);
    edit(&rig, "a", "one\n", "two\n").await.completed();
    assert_eq!(rig.read("a"), b"\xEF\xBB\xBFtwo\n");
}

#[tokio::test]
async fn a_file_in_utf_16_stays_in_utf_16_and_its_diff_is_shown() {
    let utf16 = |text: &str, unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        format!("\u{FEFF}{text}")
            .encode_utf16()
            .flat_map(unit)
            .collect()
    };
    for unit in [u16::to_le_bytes, u16::to_be_bytes] {
        let rig = Rig::new();
        rig.write("a", utf16("one 😀\r\ntwo\r\n", unit));
        let answer = edit(&rig, "a", "one 😀\ntwo", "1 é\n2").await;
        assert!(answer.completed().contains("+1 é"), "{answer:?}");
        assert_eq!(rig.read("a"), utf16("1 é\r\n2\r\n", unit));
    }
}

#[tokio::test]
async fn what_is_no_text_is_refused_and_stays() {
    for bytes in [&b"caf\xe9 one"[..], b"one\0two", b"\xFF\xFEo\0n\0e"] {
        let rig = with(&[("a", bytes)]);
        let answer = edit(&rig, "a", "one", "two").await;
        assert!(
            answer
                .failed()
                .contains("\"a\" is not text in UTF-8 or UTF-16."),
            "{answer:?}"
        );
        assert_eq!(rig.read("a"), bytes);
    }
}

#[tokio::test]
async fn a_missing_final_newline_stays_missing() {
    let rig = with(&[("a", b"one\ntwo")]);
    edit(&rig, "a", "two", "2").await.completed();
    assert_eq!(rig.read("a"), b"one\n2");
    edit(&rig, "a", "one\n", "1\n").await.completed();
    assert_eq!(rig.read("a"), b"1\n2");
}

#[tokio::test]
async fn mode_bits_are_kept() {
    let rig = with(&[("a", b"x")]);
    for bits in [0o600, 0o755, 0o640, 0o444] {
        set_mode(&rig, "a", bits);
        let (old, new) = if rig.read("a") == b"x" {
            ("x", "y")
        } else {
            ("y", "x")
        };
        edit(&rig, "a", old, new).await.completed();
        assert_eq!(mode(&rig, "a"), bits);
    }
}

#[tokio::test]
async fn every_step_of_the_ladder_finds_its_place_and_is_told() {
    for (file, old, new, expected, told) in [
        (
            "a  \nb\n",
            "a\nb\n",
            "c\n",
            "c\n",
            "space at the ends of lines",
        ),
        (
            "\tif x {\n\t\ty();\n\t}\n",
            "if x {\n\ty();\n}\n",
            "if z {\n\ty();\n}\n",
            "\tif z {\n\t\ty();\n\t}\n",
            "indentation",
        ),
        (
            "say “hi” — now\n",
            "say \"hi\" - now",
            "bye",
            "bye\n",
            "typographic punctuation",
        ),
        ("a\r\nb\r\n", "a\nb\n", "c\n", "c\r\n", "line endings"),
    ] {
        let rig = with(&[("f", file.as_bytes())]);
        let answer = edit(&rig, "f", old, new).await;
        let first = format!("Edited f: 1 replacement(s) (matched ignoring {told})\n");
        assert!(answer.completed().starts_with(&first), "{answer:?}");
        assert_eq!(rig.read_text("f"), expected);
        let matched = &answer.facts.structured.as_ref().unwrap()["matched"];
        assert_eq!(matched, &format!("matched ignoring {told}"));
    }
}

#[tokio::test]
async fn a_looser_step_counts_only_where_it_finds_one_place() {
    for (file, old) in [
        ("a  \nx\na\t\n", "a\n"),
        ("\ta();\n\n\ta();\n", "\t\ta();\n"),
        ("“a”\n‘x’\n“a”\n", "\"a\""),
        ("a\r\nb\r\na\r\nb\r\n", "a\nb"),
    ] {
        let rig = with(&[("f", file.as_bytes())]);
        let answer = edit(&rig, "f", old, "z").await;
        let text = answer.failed();
        assert!(
            text.starts_with("`old_string` matches 2 times in f;")
                || text.starts_with("`old_string` not found in f"),
            "{text}"
        );
        assert_eq!(rig.read_text("f"), file);
    }
}

#[tokio::test]
async fn typographic_quotes_are_folded_only_where_one_place_is_meant() {
    let rig = with(&[
        ("one", "say(“a”)\n".as_bytes()),
        ("two", "say(“a”)\nsay(‟a”)\n".as_bytes()),
    ]);
    let answer = edit(&rig, "one", "say(\"a\")", "say(\"b\")").await;
    assert!(
        answer
            .completed()
            .contains("(matched ignoring typographic punctuation)"),
        "{answer:?}"
    );
    assert_eq!(rig.read_text("one"), "say(\"b\")\n");
    let answer = edit(&rig, "two", "say(\"a\")", "say(\"b\")").await;
    assert!(
        answer.failed().contains("matches 2 times in two"),
        "{answer:?}"
    );
    // Not even all of them, since they are not the same.
    let answer = edit_all(&rig, "two", "say(\"a\")", "say(\"b\")").await;
    assert!(
        answer
            .failed()
            .contains("2 places are like it, but not like each other (lines 1, 2)"),
        "{answer:?}"
    );
    assert_eq!(rig.read_text("two"), "say(“a”)\nsay(‟a”)\n");
}

#[tokio::test]
async fn a_diff_in_a_result_has_at_most_4_kib() {
    let rig = Rig::new();
    let old: String = (0..2000).map(|line| format!("old line {line}\n")).collect();
    rig.write("a", &old);
    let answer = edit_all(&rig, "a", "old", "new").await;
    let (first, diff) = answer.completed().split_once('\n').unwrap();
    assert_eq!(first, "Edited a: 2000 replacement(s)");
    assert!(diff.len() <= 4096 && diff.len() > 3500, "{}", diff.len());
    let last = diff.lines().last().unwrap();
    assert!(
        last.starts_with('[') && last.ends_with("more lines of the diff]"),
        "{last}"
    );
}

#[tokio::test]
async fn a_file_of_exactly_5_mib_is_edited_and_one_byte_more_is_not() {
    let rig = Rig::new();
    let mut contents = vec![b'\n'; FILE_BYTES];
    contents[..3].copy_from_slice(b"one");
    rig.write("most", &contents);
    edit(&rig, "most", "one", "two").await.completed();
    contents[..3].copy_from_slice(b"two");
    assert_eq!(rig.read("most"), contents);
    contents.push(b'\n');
    rig.write("over", &contents);
    let answer = edit(&rig, "over", "two", "six").await;
    assert!(
        answer
            .failed()
            .starts_with("file too large (5242881 bytes)"),
        "{answer:?}"
    );
    assert_eq!(rig.read("over"), contents);
}

#[tokio::test]
async fn writers_of_one_file_in_two_sessions_take_their_turns_and_lose_no_update() {
    const LINES: usize = 8;
    let first = Rig::new();
    let lines = |word: &str| -> String {
        (0..2 * LINES)
            .map(|line| format!("{word} {line}.\n"))
            .collect()
    };
    first.write("shared", lines("old"));
    let second = beside(&first);
    let work = async |rig: &Rig, from: usize| {
        for line in from..from + LINES {
            let (old, new) = (format!("old {line}."), format!("new {line}."));
            // Refused where the other one came first, and then tried again on what is there now.
            loop {
                let answer = edit(rig, "shared", &old, &new).await;
                if answer.stop_reason == floe_protocol::StopReason::Completed {
                    break;
                }
                assert!(answer.failed().contains("has changed since"), "{answer:?}");
                rig.call("file_read", json!({"path": "shared"}))
                    .await
                    .completed();
            }
        }
    };
    tokio::join!(work(&first, 0), work(&second, LINES));
    assert_eq!(first.read_text("shared"), lines("new"));
    assert_eq!(names(&first), ["shared"]);
}

#[tokio::test]
async fn edits_of_one_session_at_the_same_time_lose_no_update() {
    let rig = with(&[("a", b"one\ntwo\nthree\n")]);
    let change = async |old: &str, new: &str| {
        for _ in 0..100 {
            let answer = edit(&rig, "a", old, new).await;
            if answer.stop_reason == floe_protocol::StopReason::Completed {
                return;
            }
            assert!(answer.failed().contains("has changed since"), "{answer:?}");
        }
        panic!("{old} was never changed");
    };
    tokio::join!(change("one", "1"), change("two", "2"), change("three", "3"));
    assert_eq!(rig.read_text("a"), "1\n2\n3\n");
}
