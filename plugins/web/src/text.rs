//! Tells text from what is none, whatever its content type claims. Pure.

/// How much is looked at, in characters.
const SAMPLE: usize = 4096;

/// Whether a decoded body is text: no NUL, and at most a tenth of control characters and of what could not be decoded. A PDF document
/// begins like text and is none.
pub fn is_text(text: &str) -> bool {
    let mut odd = 0;
    let mut seen = 0;
    for character in text.chars().take(SAMPLE) {
        seen += 1;
        match character {
            '\0' => return false,
            '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1b}' => {}
            other if other.is_control() || other == '\u{fffd}' => odd += 1,
            _ => {}
        }
    }
    odd * 10 <= seen && !text.starts_with("%PDF-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_any_language_is_text_and_an_image_is_none() {
        for text in [
            "",
            "a\tb\r\n",
            "漢字 🙂",
            "{\"a\": 1}",
            "one \u{fffd} in many words",
        ] {
            assert!(is_text(text), "{text:?}");
        }
        let image = crate::decode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", Some("text/html"), false);
        for text in [
            image.text.as_str(),
            "a\0b",
            "\u{1}\u{2}a",
            "%PDF-1.7\n1 0 obj",
        ] {
            assert!(!is_text(text), "{text:?}");
        }
    }
}
