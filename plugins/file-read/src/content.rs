//! Tells what a file holds by its first bytes: text in UTF-8 or UTF-16, or something that is no text, and what that is. Pure.

use crate::utf16::ByteOrder;

/// How much of a file is looked at.
const SAMPLE: usize = 4096;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Files that are never shown as text, even where most of their first bytes are printable.
const DOCUMENTS: [(&[u8], &str); 6] = [
    (b"\x89PNG", "a PNG image; use read_image to see it"),
    (b"\xff\xd8\xff", "a JPEG image; use read_image to see it"),
    (b"GIF87a", "a GIF image; use read_image to see it"),
    (b"GIF89a", "a GIF image; use read_image to see it"),
    (
        b"%PDF-",
        "a PDF document; extract its text with a command, for example pdftotext",
    ),
    (
        b"{\\rtf",
        "an RTF document; extract its text with a command, for example pandoc",
    ),
];

/// What other binary files are called.
const MAGIC: [(&[u8], &str); 17] = [
    (b"BM", "a BMP image; convert it to PNG and use read_image"),
    (
        b"II*\0",
        "a TIFF image; convert it to PNG and use read_image",
    ),
    (
        b"MM\0*",
        "a TIFF image; convert it to PNG and use read_image",
    ),
    (
        b"\0\0\x01\0",
        "an icon; convert it to PNG and use read_image",
    ),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x7fELF", "an ELF binary"),
    (b"\0asm", "a WebAssembly module"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"MZ", "a Windows executable"),
    (b"\xca\xfe\xba\xbe", "a class file or a Mach-O binary"),
    (b"!<arch>\n", "a static library"),
    (b"OggS", "Ogg audio or video"),
    (b"ID3", "MP3 audio"),
];

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-16 with its mark, two bytes, at the start.
    Utf16(ByteOrder),
}

/// The encoding of a text; else what the file is instead, to follow its name.
pub(crate) fn encoding(beginning: &[u8]) -> Result<Encoding, String> {
    let sample = &beginning[..beginning.len().min(SAMPLE)];
    let called = |names: &[(&[u8], &'static str)]| {
        let mut names = names.iter();
        names
            .find(|(magic, _)| sample.starts_with(magic))
            .map(|(_, name)| *name)
    };
    let is_webp = sample.starts_with(b"RIFF") && sample.get(8..12) == Some(b"WEBP");
    let document =
        called(&DOCUMENTS).or_else(|| is_webp.then_some("a WebP image; use read_image to see it"));
    if let Some(document) = document {
        return Err(format!("is {document}"));
    }
    match sample {
        [0xff, 0xfe, ..] => return Ok(Encoding::Utf16(ByteOrder::Little)),
        [0xfe, 0xff, ..] => return Ok(Encoding::Utf16(ByteOrder::Big)),
        _ => {}
    }
    if sample.contains(&0) || unprintable(sample) * 10 > sample.len() * 3 {
        if is_utf16_without_mark(sample) {
            return Err(
                "is UTF-16 text without a byte order mark; convert it first, for example with iconv"
                    .into(),
            );
        }
        let kind = called(&MAGIC).unwrap_or("of an unknown type");
        return Err(format!("is binary, {kind}"));
    }
    Ok(Encoding::Utf8)
}

/// Every second byte is zero in most text of Western languages, and in nothing else.
fn is_utf16_without_mark(sample: &[u8]) -> bool {
    let zeros = |first: usize| {
        sample
            .iter()
            .skip(first)
            .step_by(2)
            .filter(|byte| **byte == 0)
            .count()
    };
    let (even, odd) = (zeros(0), zeros(1));
    let most = sample.len() / 2;
    most >= 2 && even.min(odd) == 0 && even.max(odd) * 10 >= most * 9
}

/// Bytes that are no part of UTF-8 text, and control characters other than white space and escape.
fn unprintable(sample: &[u8]) -> usize {
    let mut count = 0;
    for chunk in sample.utf8_chunks() {
        count += chunk
            .valid()
            .chars()
            .filter(|character| {
                character.is_control() && !"\t\n\r\u{b}\u{c}\u{1b}".contains(*character)
            })
            .count();
        count += chunk.invalid().len();
    }
    count
}

/// The text after the mark that some editors put at the start of a file.
pub(crate) fn without_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_any_language_is_text() {
        for text in [
            "",
            "a\tb\r\n",
            "naïve – 漢字 🙂",
            "\u{1b}[1mbold\u{1b}[0m",
            "\u{feff}with a mark",
            "BM and MZ may start a sentence",
        ] {
            assert_eq!(encoding(text.as_bytes()), Ok(Encoding::Utf8), "{text:?}");
        }
    }

    #[test]
    fn a_character_cut_at_the_end_of_the_sample_is_no_reason() {
        let text = "漢".repeat(SAMPLE);
        assert_eq!(encoding(text.as_bytes()), Ok(Encoding::Utf8));
    }

    #[test]
    fn a_zero_byte_or_much_that_is_unprintable_is_binary_and_named() {
        let refused = |bytes: &[u8]| encoding(bytes).unwrap_err();
        assert_eq!(refused(b"a\0b"), "is binary, of an unknown type");
        assert_eq!(
            refused(b"\x7fELF\x02\x01\x01\0"),
            "is binary, an ELF binary"
        );
        assert_eq!(refused(b"\x01\x02\x03ab"), "is binary, of an unknown type");
        assert_eq!(encoding(b"\x01\x02abcdef"), Ok(Encoding::Utf8));
    }

    #[test]
    fn images_and_documents_are_named_with_what_to_use_however_printable_they_are() {
        for (bytes, words) in [
            (&b"\x89PNG\r\n\x1a\n\0\0"[..], "read_image"),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", "read_image"),
            (b"GIF89a printable", "read_image"),
            (b"%PDF-1.7\nall of it printable\n", "pdftotext"),
        ] {
            let refused = encoding(bytes).unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn utf_16_is_told_by_its_mark_and_guessed_without() {
        assert_eq!(
            encoding(b"\xff\xfea\0"),
            Ok(Encoding::Utf16(ByteOrder::Little))
        );
        assert_eq!(
            encoding(b"\xfe\xff\0a"),
            Ok(Encoding::Utf16(ByteOrder::Big))
        );
        for bytes in [b"a\0b\0c\0", b"\0a\0b\0c"] {
            let refused = encoding(bytes).unwrap_err();
            assert!(refused.starts_with("is UTF-16 text without"), "{refused}");
        }
    }

    #[test]
    fn the_byte_order_mark_goes_and_nothing_else() {
        assert_eq!(without_byte_order_mark(b"\xef\xbb\xbfa"), b"a");
        assert_eq!(without_byte_order_mark(b"a\xef\xbb\xbf"), b"a\xef\xbb\xbf");
    }
}
