//! A text with everything about its bytes that an edit must keep: encoding, byte order mark, line endings.

/// The bytes are no text in an encoding that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotText;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16Little,
    Utf16Big,
}

/// A text as it was read. Its line endings are part of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The text, without a byte order mark.
    pub text: String,
    encoding: Encoding,
    has_mark: bool,
}

impl Document {
    /// Reads bytes: UTF-8 with or without a byte order mark, UTF-16 with one. A text never holds NUL.
    ///
    /// # Errors
    /// They are none of these.
    pub fn decode(bytes: &[u8]) -> Result<Document, NotText> {
        let (encoding, has_mark, text) = match bytes {
            [0xEF, 0xBB, 0xBF, rest @ ..] => (Encoding::Utf8, true, utf8(rest)?),
            [0xFF, 0xFE, rest @ ..] => (
                Encoding::Utf16Little,
                true,
                utf16(rest, u16::from_le_bytes)?,
            ),
            [0xFE, 0xFF, rest @ ..] => (Encoding::Utf16Big, true, utf16(rest, u16::from_be_bytes)?),
            _ => (Encoding::Utf8, false, utf8(bytes)?),
        };
        if text.contains('\0') {
            return Err(NotText);
        }
        Ok(Document {
            text,
            encoding,
            has_mark,
        })
    }

    /// The bytes, as they were read where the text is the same.
    pub fn encode(&self) -> Vec<u8> {
        let mark = if self.has_mark { "\u{FEFF}" } else { "" };
        let units = || mark.encode_utf16().chain(self.text.encode_utf16());
        match self.encoding {
            Encoding::Utf8 => [mark.as_bytes(), self.text.as_bytes()].concat(),
            Encoding::Utf16Little => units().flat_map(u16::to_le_bytes).collect(),
            Encoding::Utf16Big => units().flat_map(u16::to_be_bytes).collect(),
        }
    }

    /// The same document with another text.
    #[must_use]
    pub fn with_text(&self, text: String) -> Document {
        Document {
            text,
            ..self.clone()
        }
    }

    /// The same document, written anew by somebody who says nothing of its bytes: encoding and mark stay, and so does CRLF where the text had no
    /// other line ending and the new one has none but LF.
    #[must_use]
    pub fn rewritten(&self, contents: &str) -> Rewritten {
        let mut kept = Vec::new();
        if self.encoding != Encoding::Utf8 {
            kept.push("UTF-16");
        } else if self.has_mark {
            kept.push("the byte order mark");
        }
        let contents = match self.has_mark {
            true => contents.strip_prefix('\u{FEFF}').unwrap_or(contents),
            false => contents,
        };
        let lines = self.text.matches('\n').count();
        let is_carriage = lines > 0 && self.text.matches("\r\n").count() == lines;
        let text = if is_carriage && contents.contains('\n') && !contents.contains('\r') {
            kept.push("CRLF line endings");
            contents.replace('\n', "\r\n")
        } else {
            contents.to_owned()
        };
        Rewritten {
            document: self.with_text(text),
            kept,
        }
    }
}

/// A document that was written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// As it is to be.
    pub document: Document,
    /// What it kept though the new contents did not say it.
    pub kept: Vec<&'static str>,
}

fn utf8(bytes: &[u8]) -> Result<String, NotText> {
    String::from_utf8(bytes.to_vec()).map_err(|_| NotText)
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, NotText> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(NotText);
    }
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    String::from_utf16(&units).map_err(|_| NotText)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn marks_and_encodings_come_back_byte_for_byte() {
        for bytes in [
            &b"plain"[..],
            b"\xEF\xBB\xBFmarked\r\n",
            b"\xFF\xFEa\0\xe9\0\n\0",
            b"\xFE\xFF\0a\0\xe9",
            b"",
            b"\xEF\xBB\xBF",
        ] {
            let document = Document::decode(bytes).unwrap();
            assert!(!document.text.starts_with('\u{FEFF}'));
            assert_eq!(document.encode(), bytes);
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for bytes in [
            &b"\xff"[..],
            b"a\0b",
            b"\xFF\xFEa",
            b"\xFF\xFE\x00\xD8",
            b"\xC3",
        ] {
            assert_eq!(Document::decode(bytes), Err(NotText));
        }
    }

    #[test]
    fn what_is_written_anew_keeps_what_a_text_cannot_say() {
        let anew = |old: &[u8], new: &str| {
            let Rewritten { document, kept } = Document::decode(old).unwrap().rewritten(new);
            (document.encode(), kept.join(", "))
        };
        let of = |bytes: &[u8], kept: &str| (bytes.to_vec(), kept.to_owned());
        assert_eq!(anew(b"a\n", "b\n"), of(b"b\n", ""));
        let crlf = "CRLF line endings";
        assert_eq!(anew(b"a\r\n", "b\nc\n"), of(b"b\r\nc\r\n", crlf));
        // Who writes a carriage return, or no line ending at all, has said it.
        assert_eq!(anew(b"a\r\n", "b\r\nc\n"), of(b"b\r\nc\n", ""));
        assert_eq!(anew(b"a\r\n", "b"), of(b"b", ""));
        assert_eq!(anew(b"a\r\nb\n", "c\n"), of(b"c\n", ""));
        let marked = b"\xEF\xBB\xBFb";
        assert_eq!(
            anew(b"\xEF\xBB\xBFa", "b"),
            of(marked, "the byte order mark")
        );
        assert_eq!(
            anew(b"\xEF\xBB\xBFa", "\u{FEFF}b"),
            of(marked, "the byte order mark")
        );
        assert_eq!(anew(b"\xFE\xFF\0a", "b"), of(b"\xFE\xFF\0b", "UTF-16"));
    }

    proptest! {
        #[test]
        fn whatever_can_be_read_is_written_as_it_was(bytes: Vec<u8>) {
            if let Ok(document) = Document::decode(&bytes) {
                prop_assert_eq!(document.encode(), bytes);
            }
        }
    }
}
