//! Bytes of the web become text: by their byte order mark, else by the charset that the response declares, else by the one that the
//! page declares of itself. Pure.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Where a page has to say its charset, in bytes.
const PRESCAN: usize = 1024;

/// A body as text.
#[derive(Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The text, with a replacement character for what could not be read.
    pub text: String,
    /// The name of the charset, in lower case.
    pub charset: String,
    /// True where nothing said which charset it is, and it is not UTF-8 either.
    pub is_guess: bool,
    /// True where some bytes are none of that charset.
    pub is_lossy: bool,
}

/// Reads a body as text. `content_type` is the header as it came; a body that was cut may end inside a character.
pub fn decode(bytes: &[u8], content_type: Option<&str>, is_cut: bool) -> Decoded {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return with(encoding, &bytes[mark..], false);
    }
    let declared = content_type
        .and_then(|value| charset_in(value.as_bytes()))
        .or_else(|| declared_by_page(&bytes[..bytes.len().min(PRESCAN)]));
    if let Some(encoding) = declared {
        return with(encoding, bytes, false);
    }
    let is_utf8 = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => is_cut && error.error_len().is_none(),
    };
    if is_utf8 {
        with(UTF_8, bytes, false)
    } else {
        with(WINDOWS_1252, bytes, true)
    }
}

fn with(encoding: &'static Encoding, bytes: &[u8], is_guess: bool) -> Decoded {
    let (text, is_lossy) = encoding.decode_without_bom_handling(bytes);
    Decoded {
        text: text.into_owned(),
        charset: encoding.name().to_ascii_lowercase(),
        is_guess,
        is_lossy,
    }
}

/// The charset of the first `meta` element that names one.
fn declared_by_page(beginning: &[u8]) -> Option<&'static Encoding> {
    let lower = beginning.to_ascii_lowercase();
    let mut rest = lower.as_slice();
    while let Some(start) = find(rest, b"<meta") {
        let element = &rest[start + 5..];
        let end = find(element, b">").unwrap_or(element.len());
        if let Some(encoding) = charset_in(&element[..end]) {
            // A page that was read as ASCII to find this cannot be in UTF-16.
            let is_wide = encoding.name().starts_with("UTF-16");
            return Some(if is_wide { UTF_8 } else { encoding });
        }
        rest = &element[end..];
    }
    None
}

/// What follows `charset=`.
fn charset_in(text: &[u8]) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let after = &lower[find(&lower, b"charset")? + 7..];
    let after = after
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let label = after
        .split(|byte| b"\"'; \t\r\n>/".contains(byte))
        .find(|part| !part.is_empty())?;
    Encoding::for_label(label)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(bytes: &[u8], content_type: Option<&str>) -> (String, String) {
        let decoded = decode(bytes, content_type, false);
        assert!(!decoded.is_lossy && !decoded.is_guess, "{decoded:?}");
        (decoded.text, decoded.charset)
    }

    #[test]
    fn the_charset_of_the_response_is_used() {
        assert_eq!(
            told(b"na\xefve", Some("text/plain; charset=ISO-8859-1")),
            ("naïve".into(), "windows-1252".into())
        );
        assert_eq!(
            told(
                b"\x93\xfa\x96\x7b",
                Some("text/html; Charset=\"Shift_JIS\"")
            ),
            ("日本".into(), "shift_jis".into())
        );
    }

    #[test]
    fn the_charset_that_a_page_declares_is_used_where_the_response_names_none() {
        let page = b"<html><head><meta charset=shift_jis>\x93\xfa\x96\x7b";
        assert!(told(page, Some("text/html")).0.ends_with("日本"));
        let page = b"<META http-equiv='Content-Type' content='text/html; charset=euc-kr'>\xc7\xd1";
        assert!(told(page, None).0.ends_with("한"));
    }

    #[test]
    fn the_response_is_believed_before_the_page_and_a_mark_before_both() {
        let page = b"<meta charset=shift_jis>\xe9";
        assert!(
            told(page, Some("text/html; charset=latin1"))
                .0
                .ends_with('é')
        );
        let marked = b"\xef\xbb\xbf<meta charset=shift_jis>\xc3\xa9";
        let (text, charset) = told(marked, Some("text/html; charset=latin1"));
        assert_eq!(
            (text.as_str(), charset.as_str()),
            ("<meta charset=shift_jis>é", "utf-8")
        );
        assert_eq!(told(b"\xff\xfea\0", None), ("a".into(), "utf-16le".into()));
    }

    #[test]
    fn what_declares_nothing_is_utf_8_where_it_can_be_and_else_a_guess() {
        assert_eq!(told("naïve".as_bytes(), None).1, "utf-8");
        assert_eq!(
            told("naïve".as_bytes(), Some("text/html; charset=nonsense")).1,
            "utf-8"
        );
        let guessed = decode(b"na\xefve", None, false);
        assert!(guessed.is_guess && guessed.text == "naïve", "{guessed:?}");
        assert_eq!(decode(b"caf\xe9", None, false).text, "café");
    }

    #[test]
    fn a_body_that_was_cut_inside_a_character_is_still_utf_8() {
        let cut = decode("漢字".as_bytes().split_last().unwrap().1, None, true);
        assert_eq!((cut.text.as_str(), cut.is_guess), ("漢\u{fffd}", false));
    }

    #[test]
    fn bytes_that_are_none_of_the_charset_are_replaced_and_told() {
        let decoded = decode(b"a\xffb", Some("text/plain; charset=utf-8"), false);
        assert!(decoded.is_lossy);
        assert_eq!(decoded.text, "a\u{fffd}b");
    }
}
