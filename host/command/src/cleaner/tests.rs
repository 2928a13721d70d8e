use super::*;
use proptest::prelude::*;

fn clean(text: &str) -> String {
    clean_pieces([text])
}

fn clean_pieces<'t>(pieces: impl IntoIterator<Item = &'t str>) -> String {
    let mut cleaner = Cleaner::default();
    let mut out = String::new();
    for piece in pieces {
        cleaner.clean(piece, &mut out);
    }
    cleaner.finish(&mut out);
    out
}

#[test]
fn ordinary_text_passes_unchanged() {
    for text in [
        "",
        "a\n",
        "no newline",
        "ä€😀\n\ttab\u{7}bell\u{8}back\n",
        "\u{A0}\u{BF}",
    ] {
        assert_eq!(clean(text), text);
    }
}

#[test]
fn control_sequences_and_nul_are_removed() {
    let cases = [
        ("\u{1B}[31mred\u{1B}[0m", "red"),
        ("\u{1B}[2J\u{1B}[1;1Hx", "x"),
        ("\u{1B}[?2004hx\u{1B}[38;5;12my", "xy"),
        ("\u{1B}]0;title\u{7}x", "x"),
        ("\u{1B}]0;title\u{1B}\\x", "x"),
        ("\u{1B}]52;c;aGk=\u{9C}x", "x"),
        ("\u{1B}]8;;http://a\u{7}link\u{1B}]8;;\u{7}", "link"),
        ("\u{1B}P1;2qdata\u{1B}\\x", "x"),
        (
            "\u{1B}Xsos\u{1B}\\\u{1B}^pm\u{1B}\\\u{1B}_apc\u{1B}\\x",
            "x",
        ),
        ("\u{1B}Pa bell does\u{7} not end it\u{1B}\\x", "x"),
        ("\u{1B}(Bx\u{1B}7\u{1B}8\u{1B}=\u{1B}>\u{1B}cy", "xy"),
        ("\u{9B}31mx", "x"),
        ("a\0b\0", "ab"),
        ("\u{9D}0;title\u{7}x", "x"),
        ("\u{9D}52;c;aGk=\u{9C}x", "x"),
        (
            "\u{90}1;2qdata\u{1B}\\x\u{98}sos\u{9C}y\u{9E}pm\u{9C}\u{9F}apc\u{9C}z",
            "xyz",
        ),
        ("a\u{84}b\u{85}c\u{9C}d", "abcd"),
    ];
    for (given, wanted) in cases {
        assert_eq!(clean(given), wanted, "{given:?}");
    }
}

#[test]
fn an_unfinished_sequence_stops_at_the_end_of_its_line() {
    assert_eq!(clean("\u{1B}]0;never ended\nnext\n"), "\nnext\n");
    assert_eq!(clean("\u{1B}[12\nnext"), "\nnext");
    assert_eq!(clean("\u{1B}\nnext"), "\nnext");
    assert_eq!(clean("x\u{1B}]0;never ended"), "x");
}

#[test]
fn a_sequence_that_is_aborted_or_none_gives_the_text_back() {
    assert_eq!(clean("\u{1B}[1\u{18}x"), "x");
    assert_eq!(clean("\u{1B}äx"), "äx");
    assert_eq!(clean("\u{1B}\u{1B}[1mx"), "x");
    assert_eq!(clean("\u{1B}[1;\u{1B}[2mx"), "x");
    assert_eq!(clean("\u{1B}]0;t\u{1B}[1mx"), "x");
}

#[test]
fn endless_sequences_end_at_their_bound() {
    let control = format!("\u{1B}[{}", "1".repeat(1000));
    assert_eq!(clean(&control), "1".repeat(1000 - LONGEST_CONTROL));
    let string = format!("\u{1B}]{}", "s".repeat(LONGEST_STRING + 10));
    assert_eq!(clean(&string), "s".repeat(10));
}

#[test]
fn text_before_a_bare_carriage_return_on_its_line_is_dropped() {
    let cases = [
        ("a\rb\n", "b\n"),
        ("one\n10%\r20%\r30%\ntwo\n", "one\n30%\ntwo\n"),
        ("10%\r\u{1B}[K20%", "20%"),
        ("a\r\nb\r\n", "a\r\nb\r\n"),
        ("a\r\r\nb", "a\r\nb"),
        ("a\r\u{1B}[K\nb", "a\r\nb"),
        ("\ra", "a"),
        ("a\n\rb", "a\nb"),
        ("a\r", ""),
        ("x\ny\r", "x\n"),
    ];
    for (given, wanted) in cases {
        assert_eq!(clean(given), wanted, "{given:?}");
    }
}

#[test]
fn a_complete_line_is_given_at_once_and_an_unfinished_one_is_held() {
    let mut cleaner = Cleaner::default();
    let mut out = String::new();
    cleaner.clean("one\ntwo", &mut out);
    assert_eq!(out, "one\n");
    assert!(cleaner.holds_prompt());
    cleaner.flush(&mut out);
    assert_eq!(out, "one\ntwo");
    assert!(!cleaner.holds_prompt());
}

#[test]
fn a_held_line_after_a_carriage_return_is_no_prompt_and_is_not_flushed_before_its_fate_is_known() {
    let mut cleaner = Cleaner::default();
    let mut out = String::new();
    cleaner.clean("10%\r", &mut out);
    assert!(!cleaner.holds_prompt());
    cleaner.flush(&mut out);
    assert_eq!(out, "");
    cleaner.clean("20%", &mut out);
    assert!(!cleaner.holds_prompt());
    cleaner.flush(&mut out);
    assert_eq!(out, "20%");
}

#[test]
fn a_version_of_a_line_that_was_given_away_is_ended_by_a_line_feed() {
    let mut cleaner = Cleaner::default();
    let mut out = String::new();
    cleaner.clean("10%", &mut out);
    cleaner.flush(&mut out);
    cleaner.clean("\r20%\r30%\n", &mut out);
    assert_eq!(out, "10%\n30%\n");
}

#[test]
fn a_prompt_that_was_given_away_goes_on_with_its_line() {
    let mut cleaner = Cleaner::default();
    let mut out = String::new();
    cleaner.clean("Name: ", &mut out);
    cleaner.flush(&mut out);
    cleaner.clean("\r\nHello\n", &mut out);
    assert_eq!(out, "Name: \r\nHello\n");
}

#[test]
fn a_huge_line_is_not_held() {
    let mut cleaner = Cleaner::default();
    let mut given = 0;
    let piece = "x".repeat(10_000);
    for _ in 0..5_000 {
        let mut out = String::new();
        cleaner.clean(&piece, &mut out);
        given += out.len();
        assert!(cleaner.line.held.capacity() <= 2 * LONGEST_HELD_LINE);
    }
    assert_eq!(given, 50_000_000);
    let mut out = String::new();
    cleaner.clean("\rshort\n", &mut out);
    assert_eq!(out, "\nshort\n");
}

/// What the rules say, without pieces: for texts of `a`, CR, LF and whole CSI sequences.
fn reference(text: &str) -> String {
    let plain = text.replace("\u{1B}[1m", "").replace('\0', "");
    let mut out = String::new();
    for line in plain.split_inclusive('\n') {
        let (body, end) = match line.strip_suffix('\n') {
            Some(body) if body.ends_with('\r') => (body.trim_end_matches('\r'), "\r\n"),
            Some(body) => (body, "\n"),
            None => (line, ""),
        };
        out.push_str(body.rsplit('\r').next().unwrap_or_default());
        out.push_str(end);
    }
    out
}

proptest! {
    #[test]
    fn the_result_is_what_the_rules_say(
        parts in prop::collection::vec(prop::sample::select(vec!["a", "€", "\r", "\n", "\u{1B}[1m", "\0"]), 0..40),
    ) {
        let text = parts.concat();
        prop_assert_eq!(clean(&text), reference(&text));
    }

    #[test]
    fn where_the_pieces_end_changes_nothing(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "a", "é", "\r", "\n", "\u{1B}", "[", "]", "P", "\\", "0;1", "m", "\u{7}", "\u{9B}", "\u{9C}", "\0", "\u{18}", "(",
            ]),
            0..40,
        ),
    ) {
        let text = parts.concat();
        let whole = clean(&text);
        prop_assert_eq!(clean_pieces(parts.iter().copied()), whole.clone());
        for (cut, _) in text.char_indices() {
            prop_assert_eq!(clean_pieces([&text[..cut], &text[cut..]]), whole.clone());
        }
    }

    #[test]
    fn no_escape_and_no_nul_survives(text in any::<String>()) {
        let cleaned = clean(&text);
        let survives = cleaned.contains(['\u{1B}', '\0', '\u{9B}']);
        prop_assert!(!survives);
    }
}
