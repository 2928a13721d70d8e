//! `file_read`: what a model reads of a file, and what it is told where it reads nothing.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use floe_environment::Rate;
use floe_protocol::Permission;
use serde_json::json;

use crate::rig::{Answer, Rig, definition};

/// What a call with nothing to print shows.
const NOTHING: &str = "[no output]";

async fn read(rig: &Rig, path: &str) -> Answer {
    rig.call("file_read", json!({ "path": path })).await
}

fn numbered(lines: u64) -> String {
    (1..=lines).map(|line| format!("line {line}\n")).collect()
}

#[test]
fn the_tool_is_called_file_read_and_requires_a_path() {
    let definition = definition("file_read");
    assert_eq!(definition.name, "file_read");
    assert_eq!(definition.permission, Permission::ReadOnly);
    assert_eq!(definition.parameters["required"], json!(["path"]));
}

#[tokio::test]
async fn existing_text_is_read_exactly() {
    let rig = Rig::new();
    rig.write("notes.txt", "alpha\n\n  beta\t\r\nlast");
    assert_eq!(
        read(&rig, "notes.txt").await.completed(),
        "alpha\n\n  beta\t\r\nlast"
    );
}

#[tokio::test]
async fn an_empty_file_has_no_text() {
    let rig = Rig::new();
    rig.write("empty", "");
    assert_eq!(read(&rig, "empty").await.completed(), NOTHING);
}

#[tokio::test]
async fn a_nested_path_is_read() {
    let rig = Rig::new();
    rig.write("a/b/c.txt", "deep\n");
    for path in ["a/b/c.txt", "./a//b/../b/c.txt", "/workspace/a/b/c.txt"] {
        assert_eq!(read(&rig, path).await.completed(), "deep\n");
    }
    let host = rig.path("a/b/c.txt").canonicalize().unwrap();
    let by_host_path = read(&rig, host.to_str().unwrap()).await;
    assert_eq!(by_host_path.completed(), "deep\n");
}

#[tokio::test]
async fn a_missing_file_is_an_error_that_names_up_to_three_near_names() {
    let rig = Rig::new();
    for name in ["main.rs", "mail.rs", "maid.rs", "mart.rs"] {
        rig.write(format!("src/{name}"), "");
    }
    let answer = read(&rig, "src/mian.rs").await;
    let text = answer.failed();
    assert!(text.starts_with("Failed to resolve file path: "), "{text}");
    assert!(
        text.contains("Did you mean \"src/main.rs\" or \"src/maid.rs\" or \"src/mail.rs\"?"),
        "{text}"
    );
    assert!(!text.contains("mart.rs"), "{text}");
}

#[tokio::test]
async fn a_path_that_climbs_out_is_not_allowed() {
    let rig = Rig::new();
    fs::write(rig.outside().join("secret"), "MARKER").unwrap();
    for path in ["../outside/secret", "a/../../outside/secret", "..", "../"] {
        let answer = read(&rig, path).await;
        let text = answer.failed();
        assert!(
            text.starts_with(&format!("Path \"{path}\" is outside the Workspace.")),
            "{text}"
        );
        assert!(!text.contains("MARKER"), "{text}");
    }
}

#[tokio::test]
async fn an_absolute_path_a_nul_and_the_empty_path_are_refused() {
    let rig = Rig::new();
    for path in ["/etc/passwd", "/", "/workspacex", "a\0b"] {
        let answer = read(&rig, path).await;
        let text = answer.failed();
        assert!(text.contains("is outside the Workspace."), "{text}");
        assert!(!text.contains("root:"), "{text}");
    }
    let empty = read(&rig, "").await;
    assert_eq!(
        empty.failed(),
        "Missing required argument \"path\" for file_read."
    );
}

#[tokio::test]
async fn a_missing_argument_is_an_error_that_names_it() {
    let rig = Rig::new();
    let answer = rig.call("file_read", json!({})).await;
    assert!(
        answer
            .failed()
            .contains("Missing required argument \"path\" for file_read.")
    );
}

#[tokio::test]
async fn a_link_that_leads_out_is_refused_and_nothing_from_there_is_in_the_message() {
    let rig = Rig::new();
    fs::write(rig.outside().join("secret"), "MARKER").unwrap();
    symlink("../outside/secret", rig.path("relative")).unwrap();
    symlink(rig.outside().join("secret"), rig.path("absolute")).unwrap();
    symlink("../outside", rig.path("folder")).unwrap();
    for path in ["relative", "absolute", "folder/secret"] {
        let answer = read(&rig, path).await;
        let text = answer.failed();
        assert!(
            text.starts_with(&format!("Path \"{path}\" is outside the Workspace.")),
            "{text}"
        );
        assert!(!text.contains("MARKER"), "{text}");
        assert!(!text.contains(rig.outside().to_str().unwrap()), "{text}");
    }
}

#[tokio::test]
async fn a_link_that_stays_inside_is_followed() {
    let rig = Rig::new();
    rig.write("a/target", "inside\n");
    symlink("a/target", rig.path("link")).unwrap();
    assert_eq!(read(&rig, "link").await.completed(), "inside\n");
}

#[tokio::test]
async fn it_works_where_the_cap_is_read_only() {
    let rig = Rig::with(|options| options.max_permission = Some(Permission::ReadOnly));
    rig.write("a", "text\n");
    assert_eq!(read(&rig, "a").await.completed(), "text\n");
    let names: Vec<String> = rig
        .session
        .tools()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert!(names.contains(&"file_read".to_owned()), "{names:?}");
    assert!(!names.contains(&"file_write".to_owned()), "{names:?}");
}

#[tokio::test]
async fn a_budget_of_no_calls_ends_it_with_rate_limit_exceeded() {
    let rig = Rig::with(|options| {
        options.rate = Some(Rate {
            calls: 0,
            per: Duration::from_secs(3600),
        });
    });
    rig.write("a", "text");
    let answer = read(&rig, "a").await;
    assert!(
        answer.failed().contains("Rate limit exceeded"),
        "{answer:?}"
    );
    assert!(!answer.text.contains("text"), "{answer:?}");
}

#[tokio::test]
async fn a_missing_path_spends_budget_too() {
    let rig = Rig::with(|options| {
        options.rate = Some(Rate {
            calls: 1,
            per: Duration::from_secs(3600),
        });
    });
    rig.write("a", "text");
    assert!(
        read(&rig, "missing")
            .await
            .failed()
            .contains("Failed to resolve")
    );
    assert!(
        read(&rig, "a")
            .await
            .failed()
            .contains("Rate limit exceeded")
    );
}

#[tokio::test]
async fn more_than_ten_mebibytes_is_too_large_and_the_size_is_named() {
    let rig = Rig::new();
    let most = 10 * 1024 * 1024;
    let mut text = "0123456789abcde\n".repeat(most / 16);
    rig.write("fits", &text);
    text.push('x');
    rig.write("large", &text);
    let answer = read(&rig, "large").await;
    assert!(
        answer
            .failed()
            .starts_with("File too large: 10485761 bytes (limit: 10485760 bytes)."),
        "{answer:?}"
    );
    let fits = read(&rig, "fits").await;
    assert!(
        fits.completed()
            .ends_with("[lines 1–2000 of 655360; continue with offset 2001]"),
        "{}",
        fits.facts.truncated.is_some()
    );
}

#[tokio::test]
async fn a_file_beyond_the_limit_is_read_in_pages() {
    let rig = Rig::new();
    rig.write("large", "0123456789abcde\n".repeat(700_000));
    let answer = rig
        .call(
            "file_read",
            json!({"path": "large", "offset": 699_999, "limit": 10}),
        )
        .await;
    assert_eq!(
        answer.completed(),
        "0123456789abcde\n0123456789abcde\n\n[lines 699999–700000 of 700000]"
    );
}

#[tokio::test]
async fn bytes_that_are_no_utf_8_are_an_error_and_not_replaced() {
    let rig = Rig::new();
    rig.write("latin", b"na\xefve\n");
    let answer = read(&rig, "latin").await;
    let text = answer.failed();
    assert_eq!(
        text,
        "Failed to read file: \"latin\" is not UTF-8 text: line 1 holds other bytes."
    );
}

#[tokio::test]
async fn the_note_of_a_page_gives_the_call_for_the_next_until_the_file_is_read() {
    let rig = Rig::new();
    let file = format!("{}last, without an end", numbered(4500));
    rig.write("long", &file);
    let (mut gathered, mut arguments, mut calls) = (String::new(), json!({"path": "long"}), 0);
    loop {
        let answer = rig.call("file_read", arguments).await;
        calls += 1;
        let (page, note) = answer.completed().rsplit_once("\n[").unwrap();
        gathered.push_str(page);
        let Some((_, offset)) = note.split_once("continue with offset ") else {
            break;
        };
        let offset: u64 = offset.trim_end_matches(']').parse().unwrap();
        arguments = json!({"path": "long", "offset": offset});
    }
    assert_eq!(gathered, file);
    assert_eq!(calls, 3);
}

#[tokio::test]
async fn an_offset_past_the_end_is_refused_with_the_number_of_lines() {
    let rig = Rig::new();
    rig.write("a", "one\ntwo\n");
    let answer = rig
        .call("file_read", json!({"path": "a", "offset": 3}))
        .await;
    assert_eq!(
        answer.failed(),
        "Failed to read file: \"a\" has 2 lines; offset 3 is past its end."
    );
}

#[tokio::test]
async fn a_page_never_starts_within_a_character_since_offsets_are_lines() {
    let rig = Rig::new();
    rig.write("a", "漢字\n🙂🙂\nе́\n");
    for (offset, line) in [(1, "漢字"), (2, "🙂🙂"), (3, "е́")] {
        let answer = rig
            .call(
                "file_read",
                json!({"path": "a", "offset": offset, "limit": 1}),
            )
            .await;
        assert_eq!(answer.completed().lines().next(), Some(line));
    }
    for offset in [json!(0), json!(-1), json!(1.5)] {
        let answer = rig
            .call("file_read", json!({"path": "a", "offset": offset}))
            .await;
        let text = answer.failed();
        assert!(
            text.contains("Invalid argument \"/offset\" for file_read"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_page_has_at_most_2000_lines_64_kib_and_2000_characters_a_line() {
    let rig = Rig::new();
    rig.write("lines", numbered(2001));
    let lines = read(&rig, "lines").await;
    assert_eq!(lines.completed().lines().count(), 2002, "with the note");
    rig.write("bytes", format!("{}\n", "x".repeat(1023)).repeat(100));
    let bytes = read(&rig, "bytes").await;
    assert!(
        bytes
            .completed()
            .ends_with("[lines 1–64 of 100; continue with offset 65]"),
        "{bytes:?}"
    );
    rig.write("line", format!("{}\nnext\n", "é".repeat(2001)));
    let line = read(&rig, "line").await;
    assert_eq!(
        line.completed(),
        format!(
            "{}… [1 more characters]\nnext\n\n[1 line longer than 2000 characters was cut]",
            "é".repeat(2000)
        )
    );
}

#[tokio::test]
async fn line_numbers_stand_before_the_lines_only_where_they_are_asked_for() {
    let rig = Rig::new();
    rig.write("a", "one\ntwo\n");
    assert_eq!(read(&rig, "a").await.completed(), "one\ntwo\n");
    let answer = rig
        .call("file_read", json!({"path": "a", "line_numbers": true}))
        .await;
    assert_eq!(answer.completed(), "     1\tone\n     2\ttwo\n");
}

#[tokio::test]
async fn a_binary_file_is_refused_with_its_size_and_what_it_is() {
    let rig = Rig::new();
    rig.write("program", b"\x7fELF\x02\x01\x01\0\0\0");
    assert_eq!(
        read(&rig, "program").await.failed(),
        "Failed to read file: \"program\" is binary, an ELF binary (10 bytes)."
    );
    // A NUL anywhere in the first four KiB.
    let mut late = vec![b'x'; 4095];
    late.push(0);
    rig.write("late", &late);
    assert_eq!(
        read(&rig, "late").await.failed(),
        "Failed to read file: \"late\" is binary, of an unknown type (4096 bytes)."
    );
    // More than three in ten that cannot be printed, and exactly three.
    rig.write("noise", b"\x01\x02\x03\x04abcdef");
    assert!(read(&rig, "noise").await.failed().contains("is binary"));
    rig.write("text", b"\x01\x02\x03abcdefg");
    assert_eq!(
        read(&rig, "text").await.completed(),
        "\u{1}\u{2}\u{3}abcdefg"
    );
}

#[tokio::test]
async fn an_image_and_a_pdf_are_answered_with_what_to_use_instead() {
    let rig = Rig::new();
    for (name, bytes, remedy) in [
        ("a.png", &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "read_image"),
        ("a.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF", "read_image"),
        ("a.gif", b"GIF89a printable", "read_image"),
        ("a.webp", b"RIFF\x01\x02\x03\x04WEBPVP8 ", "read_image"),
        ("a.bmp", b"BM\0\0\0\0", "convert it to PNG"),
        ("a.pdf", b"%PDF-1.7\nnothing but text\n", "pdftotext"),
    ] {
        rig.write(name, bytes);
        let answer = read(&rig, name).await;
        assert!(answer.failed().contains(remedy), "{answer:?}");
        assert!(
            answer.text.contains(&format!("({} bytes)", bytes.len())),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn a_byte_order_mark_is_kept_in_a_whole_file_and_stripped_from_every_other_view() {
    let rig = Rig::new();
    rig.write("a", "\u{feff}one\ntwo\n");
    assert_eq!(read(&rig, "a").await.completed(), "\u{feff}one\ntwo\n");
    for (arguments, text) in [
        (json!({"path": "a", "offset": 1}), "one\ntwo\n"),
        (json!({"path": "a", "limit": 5}), "one\ntwo\n"),
        (
            json!({"path": "a", "line_numbers": true}),
            "     1\tone\n     2\ttwo\n",
        ),
    ] {
        assert_eq!(rig.call("file_read", arguments).await.completed(), text);
    }
    rig.write("long", format!("\u{feff}{}", numbered(3000)));
    let long = read(&rig, "long").await;
    assert!(long.completed().starts_with("line 1\n"));
}

#[tokio::test]
async fn utf_16_is_shown_as_utf_8_and_said_to_be() {
    let rig = Rig::new();
    let text = "naïve 漢字 🙂\r\nnext\n";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    rig.write("little", [&b"\xff\xfe"[..], &little].concat());
    rig.write("big", [&b"\xfe\xff"[..], &big].concat());
    for name in ["little", "big"] {
        assert_eq!(
            read(&rig, name).await.completed(),
            format!("{text}\n[UTF-16, shown as UTF-8]")
        );
    }
    let answer = rig
        .call("file_read", json!({"path": "big", "offset": 2}))
        .await;
    assert_eq!(
        answer.completed(),
        "next\n\n[lines 2–2 of 2]\n[UTF-16, shown as UTF-8]"
    );
}

#[tokio::test]
async fn utf_16_that_cannot_be_told_for_sure_or_is_broken_is_refused() {
    let rig = Rig::new();
    let text: Vec<u8> = "plain words"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    rig.write("unmarked", &text);
    assert!(
        read(&rig, "unmarked")
            .await
            .failed()
            .contains("is UTF-16 text without a byte order mark; convert it first"),
    );
    rig.write("broken", b"\xff\xfea\0\x3d\xd8b\0");
    assert!(
        read(&rig, "broken")
            .await
            .failed()
            .contains("starts like UTF-16 text but holds other bytes")
    );
}

#[tokio::test]
async fn a_folder_is_answered_with_list() {
    let rig = Rig::new();
    fs::create_dir(rig.path("src")).unwrap();
    assert_eq!(
        read(&rig, "src").await.failed(),
        "Failed to read file: \"src\" is a directory. Use list to see what is in it."
    );
    assert!(read(&rig, ".").await.failed().contains("Use list"));
}

#[tokio::test]
async fn an_unknown_argument_is_refused_with_those_it_takes() {
    let rig = Rig::new();
    rig.write("a", "text");
    let answer = rig
        .call("file_read", json!({"path": "a", "lines": 3}))
        .await;
    let text = answer.failed();
    assert!(
        text.contains("Unknown argument \"lines\" for file_read; it takes "),
        "{text}"
    );
}

#[tokio::test]
async fn the_whole_output_of_a_cut_call_is_read_and_searched_where_its_note_says() {
    let rig = Rig::new();
    let cut = rig
        .call("exec_command", json!({"cmd": "seq 1 20000"}))
        .await;
    let kept = cut.facts.full_output.clone().unwrap();
    assert!(kept.starts_with("/floe/outputs/"), "{kept}");
    let page = rig
        .call("file_read", json!({"path": kept, "offset": 19_999}))
        .await;
    assert_eq!(
        page.completed(),
        "19999\n20000\n\n[lines 19999–20000 of 20000]"
    );
    let found = rig
        .call(
            "grep",
            json!({"pattern": "^1234.$", "path": kept, "max_matches": 1}),
        )
        .await;
    assert!(
        found
            .completed()
            .starts_with(&format!("{kept}:12340:12340\n")),
        "{found:?}"
    );
}
