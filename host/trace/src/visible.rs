//! Text for a terminal.

use std::fmt::Write;
use std::path::Path;

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

/// A path, made visible.
pub(crate) fn visible_path(path: &Path) -> String {
    visible(&path.to_string_lossy())
}

/// Direction marks and separators, and what Unicode calls ignorable, but the two selectors that choose between text and emoji style.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
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
        assert_eq!(visible("naïve 日本語 ❤️ שלום"), "naïve 日本語 ❤️ שלום");
    }

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
            assert_eq!(visible(&hidden.to_string()), shown);
        }
    }
}
