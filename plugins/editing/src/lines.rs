//! Lines with their places, and line endings.

use std::ops::Range;

/// One line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line<'t> {
    /// Without its ending.
    pub(crate) text: &'t str,
    /// Where its text lies.
    pub(crate) at: Range<usize>,
    /// Behind its ending.
    pub(crate) next: usize,
}

/// The lines of a text; a text that ends with a line ending has no empty line behind it.
pub(crate) fn lines(text: &str) -> Vec<Line<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let (end, next) = match text[start..].find('\n') {
            Some(length) => (start + length, start + length + 1),
            None => (text.len(), text.len()),
        };
        let is_carriage = next > end && text[start..end].ends_with('\r');
        let at = start..end - usize::from(is_carriage);
        found.push(Line {
            text: &text[at.clone()],
            at,
            next,
        });
        start = next;
    }
    found
}

/// The numbers of the lines that hold these places, from 1 on; the places come in order.
pub(crate) fn numbers(text: &str, places: impl Iterator<Item = usize>) -> Vec<usize> {
    let (mut line, mut from) = (1, 0);
    places
        .map(|at| {
            let passed = &text.as_bytes()[from..at];
            line += passed.iter().filter(|byte| **byte == b'\n').count();
            from = at;
            line
        })
        .collect()
}

/// Text whose line endings are those of `model`: CRLF where all of its are, LF where none is; else as they are.
pub(crate) fn with_endings_of(model: &str, text: &str) -> String {
    let all = model.matches('\n').count();
    let carriages = model.matches("\r\n").count();
    if all == 0 || (carriages > 0 && carriages < all) {
        return text.to_owned();
    }
    let plain = text.replace("\r\n", "\n");
    if carriages == all {
        plain.replace('\n', "\r\n")
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_know_their_places() {
        let found = lines("a\r\nbc\n\nd");
        let told: Vec<_> = found
            .iter()
            .map(|line| (line.text, line.at.start, line.next))
            .collect();
        assert_eq!(told, [("a", 0, 3), ("bc", 3, 6), ("", 6, 7), ("d", 7, 8)]);
        assert_eq!(lines("a\n").len(), 1);
        assert!(lines("").is_empty());
        assert_eq!(numbers("a\nb\nc", [0, 1, 2, 4].into_iter()), [1, 1, 2, 3]);
    }

    #[test]
    fn endings_follow_a_model_that_has_one_kind() {
        assert_eq!(with_endings_of("a\r\nb\r\n", "x\ny\r\n"), "x\r\ny\r\n");
        assert_eq!(with_endings_of("a\nb\n", "x\r\ny\n"), "x\ny\n");
        assert_eq!(with_endings_of("a\r\nb\n", "x\r\ny\n"), "x\r\ny\n");
        assert_eq!(with_endings_of("one line", "x\r\ny\n"), "x\r\ny\n");
    }
}
