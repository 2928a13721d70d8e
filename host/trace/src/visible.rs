//! Text for a terminal.

use std::fmt::Write;

/// `text` with everything made visible that a terminal obeys rather than shows, or that lets a text look like another: control
/// characters, line and paragraph separators, direction marks, and characters without width.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            _ if character.is_control() || is_invisible(character) => {
                // Writing to a String cannot fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    shown
}

fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_as_an_escape() {
        assert_eq!(
            visible("a\u{1b}[2Jb\r\n\u{9b}1m\u{202e}txt.exe\u{7f}"),
            "a\\u{1b}[2Jb\\r\\n\\u{9b}1m\\u{202e}txt.exe\\u{7f}"
        );
    }

    #[test]
    fn ordinary_text_of_any_script_is_left_alone() {
        assert_eq!(visible("naïve 日本語 👍 שלום"), "naïve 日本語 👍 שלום");
    }
}
