//! Tells text from what is none, by the first bytes of a file. Pure.

/// How much of a file is looked at.
const SAMPLE: usize = 4096;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Files that are recognised by how they begin.
const MAGIC: [(&[u8], &str); 15] = [
    (b"\x89PNG", "a PNG image; use read_image"),
    (b"\xff\xd8\xff", "a JPEG image; use read_image"),
    (b"GIF8", "a GIF image; use read_image"),
    (b"%PDF-", "a PDF document"),
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
];

/// Fine for text; else what the file is instead, to follow its name.
pub(crate) fn check(beginning: &[u8]) -> Result<(), String> {
    let sample = &beginning[..beginning.len().min(SAMPLE)];
    if sample.starts_with(b"\xff\xfe") || sample.starts_with(b"\xfe\xff") {
        return Err("is UTF-16 text; convert it to UTF-8 first, for example with iconv".into());
    }
    if sample.contains(&0) || unprintable(sample) * 10 > sample.len() * 3 {
        let kind = MAGIC
            .iter()
            .find(|(magic, _)| sample.starts_with(magic))
            .map_or("of an unknown type", |(_, kind)| kind);
        return Err(format!("is binary, {kind}"));
    }
    Ok(())
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
        ] {
            assert_eq!(check(text.as_bytes()), Ok(()), "{text:?}");
        }
    }

    #[test]
    fn a_character_cut_at_the_end_of_the_sample_is_no_reason() {
        let text = "漢".repeat(SAMPLE);
        assert_eq!(check(text.as_bytes()), Ok(()));
    }

    #[test]
    fn a_zero_byte_or_much_that_is_unprintable_is_binary_and_named() {
        assert_eq!(check(b"a\0b"), Err("is binary, of an unknown type".into()));
        assert_eq!(
            check(b"\x7fELF\x02\x01\x01\0"),
            Err("is binary, an ELF binary".into())
        );
        assert_eq!(
            check(b"\x89PNG\r\n\x1a\n\0\0"),
            Err("is binary, a PNG image; use read_image".into())
        );
        assert_eq!(
            check(b"\x01\x02\x03ab"),
            Err("is binary, of an unknown type".into())
        );
        assert_eq!(check(b"\x01\x02abcdef"), Ok(()));
    }

    #[test]
    fn utf_16_is_named() {
        assert!(
            check(b"\xff\xfea\0")
                .unwrap_err()
                .starts_with("is UTF-16 text")
        );
    }

    #[test]
    fn the_byte_order_mark_goes_and_nothing_else() {
        assert_eq!(without_byte_order_mark(b"\xef\xbb\xbfa"), b"a");
        assert_eq!(without_byte_order_mark(b"a\xef\xbb\xbf"), b"a\xef\xbb\xbf");
    }
}
