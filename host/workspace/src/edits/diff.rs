//! What a change looks like: a unified diff, and its lines by number.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use similar::{ChangeTag, TextDiff};

/// A diff is not worked out for files of more bytes; its time grows with the product of what differs.
const LONGEST: usize = 1024 * 1024;

/// How long the files of one transaction are compared together. Texts can be made that take minutes; what is not compared by then is told as
/// replaced line by line, which is no less true.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// How a file changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Diff {
    /// In the unified form, with three lines around each change.
    pub(super) text: String,
    pub(super) added: u32,
    pub(super) removed: u32,
}

/// Compares two versions of a file, closely until the deadline; none is no file.
pub(super) fn compare(
    path: &str,
    old: Option<&[u8]>,
    new: Option<&[u8]>,
    deadline: Instant,
) -> Diff {
    let (from, to) = match (old, new) {
        (None, _) => ("/dev/null".to_owned(), format!("b/{path}")),
        (_, None) => (format!("a/{path}"), "/dev/null".to_owned()),
        _ => (format!("a/{path}"), format!("b/{path}")),
    };
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let (Some(old), Some(new)) = (text(old), text(new)) else {
        return Diff {
            text: format!("Binary files {from} and {to} differ\n"),
            ..Diff::default()
        };
    };
    if old.len() + new.len() > LONGEST {
        let count = |text: &str| u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
        return Diff {
            text: format!("Files {from} and {to} are too long to be compared line by line\n"),
            added: count(&new),
            removed: count(&old),
        };
    }
    let lines = TextDiff::configure()
        .deadline(deadline)
        .diff_lines(old.as_ref(), new.as_ref());
    let mut diff = Diff::default();
    for change in lines.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => diff.added += 1,
            ChangeTag::Delete => diff.removed += 1,
            ChangeTag::Equal => {}
        }
    }
    diff.text = lines
        .unified_diff()
        .context_radius(3)
        .header(&from, &to)
        .to_string();
    diff
}

/// The text of a file in UTF-8, or in UTF-16 with its byte order mark.
fn text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let (unit, rest): (fn([u8; 2]) -> u16, _) = match bytes {
        [0xFF, 0xFE, rest @ ..] => (u16::from_le_bytes, rest),
        [0xFE, 0xFF, rest @ ..] => (u16::from_be_bytes, rest),
        _ => return std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
    };
    let (pairs, []) = rest.as_chunks::<2>() else {
        return None;
    };
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    String::from_utf16(&units).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> Diff {
        super::compare(path, old, new, Instant::now() + PATIENCE)
    }

    #[test]
    fn where_the_time_is_over_a_diff_is_coarser_and_still_true() {
        let old: String = (0..20_000_u32)
            .map(|n| format!("{}\n", n.wrapping_mul(2_654_435_761) >> 30))
            .collect();
        let new: String = old.lines().rev().map(|line| format!("{line}\n")).collect();
        let over = Instant::now();
        let diff = super::compare("f", Some(old.as_bytes()), Some(new.as_bytes()), over);
        let close = compare("f", Some(old.as_bytes()), Some(new.as_bytes()));
        assert!(diff.added > close.added, "{} {}", diff.added, close.added);
        assert_eq!(diff.added, diff.removed);
    }

    #[test]
    fn a_diff_names_both_versions_and_counts_its_lines() {
        let diff = compare("f", Some(b"a\nb\nc\n"), Some(b"a\nB\nc\nd\n"));
        assert_eq!((diff.added, diff.removed), (2, 1));
        assert_eq!(
            diff.text,
            "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n"
        );
        assert!(
            compare("f", None, Some(b"x"))
                .text
                .starts_with("--- /dev/null\n+++ b/f\n")
        );
        assert!(
            compare("f", Some(b"x"), None)
                .text
                .starts_with("--- a/f\n+++ /dev/null\n")
        );
    }

    #[test]
    fn what_is_no_text_is_not_compared() {
        for bytes in [&b"\xff"[..], b"\xFF\xFEa", b"\xFF\xFE\x00\xD8"] {
            let diff = compare("f", Some(bytes), Some(b"a"));
            assert_eq!(diff.text, "Binary files a/f and b/f differ\n");
        }
    }

    #[test]
    fn texts_in_utf_16_are_compared_as_texts() {
        let diff = compare("f", Some(b"\xFF\xFEa\0"), Some(b"\xFE\xFF\0b"));
        assert!(diff.text.contains("\n-a\n") && diff.text.contains("\n+b\n"));
    }
}
