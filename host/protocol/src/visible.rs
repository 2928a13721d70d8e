//! Makes text safe to show on a terminal: what would move the cursor, hide, reverse or join characters is written as an
//! escape that can be seen. Text that was made visible here never changes what is around it.

use std::fmt::Write as _;

/// Which characters may stay as they are beside the printable ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Line feeds and tabs: running text.
    LinesAndTabs,
    /// Nothing: one value on one line.
    Nothing,
}

/// `text` with every control, bidirectional and invisible character written as an escape.
pub fn visible(text: &str, keep: Keep) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        push(&mut shown, character, keep);
    }
    shown
}

/// JSON text with every hazardous character, which can only stand in a string of it, written as JSON writes it: the same
/// value, safe to show.
pub fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        if character != '\n' && is_hazardous(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(character);
        }
    }
    shown
}

fn push(shown: &mut String, character: char, keep: Keep) {
    match character {
        '\n' | '\t' if keep == Keep::LinesAndTabs => shown.push(character),
        '\n' => shown.push_str("\\n"),
        '\t' => shown.push_str("\\t"),
        '\r' => shown.push_str("\\r"),
        _ if is_hazardous(character) => {
            let code = u32::from(character);
            // Writing to a String cannot fail.
            let _ = if code < 0x100 {
                write!(shown, "\\x{code:02x}")
            } else {
                write!(shown, "\\u{{{code:x}}}")
            };
        }
        _ => shown.push(character),
    }
}

/// True for what a terminal would act on or a person could not see: C0 and C1 controls, bidirectional controls, zero-width
/// and other format characters, invisible fillers, line separators, variation selectors beyond the common two, and tags.
fn is_hazardous(character: char) -> bool {
    character.is_control()
        || matches!(u32::from(character),
            0x00ad                    // soft hyphen
            | 0x034f                  // combining grapheme joiner
            | 0x061c                  // Arabic letter mark
            | 0x115f | 0x1160         // Hangul fillers
            | 0x17b4 | 0x17b5         // Khmer inherent vowels
            | 0x180b..=0x180f         // Mongolian selectors and vowel separator
            | 0x200b..=0x200f         // zero-width, left-to-right and right-to-left marks
            | 0x2028..=0x202e         // separators, embeddings, overrides
            | 0x2060..=0x206f         // word joiner, invisible operators, isolates
            | 0x3164                  // Hangul filler
            | 0xfe00..=0xfe0d         // variation selectors but text and emoji style
            | 0xfeff                  // byte order mark
            | 0xffa0                  // half-width Hangul filler
            | 0xfff0..=0xfffb         // annotations
            | 0x1bca0..=0x1bca3       // shorthand controls
            | 0x1d173..=0x1d17a       // musical controls
            | 0xe0000..=0xe0fff) // tags and further selectors
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_has_no_width_and_could_carry_hidden_text_is_shown_as_an_escape() {
        for hidden in [
            '\u{34f}',
            '\u{3164}',
            '\u{fe01}',
            '\u{fff0}',
            '\u{e0041}',
            '\u{e0100}',
        ] {
            let shown = format!("\\u{{{:x}}}", u32::from(hidden));
            assert_eq!(visible(&hidden.to_string(), Keep::Nothing), shown);
        }
    }

    #[test]
    fn plain_text_in_any_script_stays_as_it_is() {
        let text = "cargo test — naïve 日本語 ❤️ שלום 🦀\n\tnext";
        assert_eq!(visible(text, Keep::LinesAndTabs), text);
    }

    #[test]
    fn escape_sequences_and_c1_controls_are_shown() {
        assert_eq!(
            visible("a\x1b[2Jb\u{9b}1m\x07", Keep::LinesAndTabs),
            "a\\x1b[2Jb\\x9b1m\\x07"
        );
    }

    #[test]
    fn a_carriage_return_cannot_hide_what_is_before_it() {
        assert_eq!(visible("rm -rf x\rls", Keep::Nothing), "rm -rf x\\rls");
    }

    #[test]
    fn bidirectional_overrides_and_zero_width_characters_are_shown() {
        assert_eq!(
            visible("a\u{202e}b\u{200b}c\u{2066}d\u{feff}", Keep::Nothing),
            "a\\u{202e}b\\u{200b}c\\u{2066}d\\u{feff}"
        );
    }

    #[test]
    fn a_line_feed_is_shown_in_a_single_value() {
        assert_eq!(visible("a\nb\tc", Keep::Nothing), "a\\nb\\tc");
    }

    proptest! {
        #[test]
        fn json_that_was_made_visible_is_the_same_value(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            let shown = visible_json(&json);
            prop_assert!(!shown.chars().any(is_hazardous));
            prop_assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
        }

        #[test]
        fn no_text_leaves_a_hazardous_character(text in any::<String>()) {
            let shown = visible(&text, Keep::LinesAndTabs);
            prop_assert!(!shown.chars().any(|c| c != '\n' && c != '\t' && is_hazardous(c)));
            prop_assert!(!visible(&text, Keep::Nothing).chars().any(is_hazardous));
        }
    }
}
