//! The text of a file, with its lines in both countings: that of the protocol, which also ends lines at a lone CR, and that of Floe's tools,
//! which end them at LF.

use crate::position::{Encoding, WirePosition, WireRange};
use crate::query::Position;

/// Characters of a line that are shown.
const SHOWN: usize = 200;

/// The text of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Text {
    content: String,
    /// Where lines start as tools count them. A file may be all lines, so each costs four bytes and no more.
    lines: Vec<u32>,
    /// Where lines start as the protocol counts them, where that is another counting.
    wire_lines: Option<Vec<u32>>,
}

impl Text {
    /// The text of a file with these bytes; none where they are no text. A mark of the byte order is no part of it.
    pub(crate) fn of_file(bytes: Vec<u8>) -> Option<Text> {
        if bytes.contains(&0) {
            return None;
        }
        let content = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Some(Text::new(match content.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => content,
        }))
    }

    pub(crate) fn new(content: String) -> Text {
        let bytes = content.as_bytes();
        let mut lines: Vec<u32> = vec![0];
        // Both countings are one up to the first lone CR.
        let mut wire_lines: Option<Vec<u32>> = None;
        for (at, byte) in bytes.iter().enumerate() {
            let Ok(next) = u32::try_from(at + 1) else {
                break;
            };
            match byte {
                b'\n' => {
                    lines.push(next);
                    if let Some(wire_lines) = &mut wire_lines {
                        wire_lines.push(next);
                    }
                }
                b'\r' if bytes.get(at + 1) != Some(&b'\n') => {
                    wire_lines.get_or_insert_with(|| lines.clone()).push(next);
                }
                _ => {}
            }
        }
        Text {
            lines,
            wire_lines,
            content,
        }
    }

    /// The memory that it takes.
    pub(crate) fn size(&self) -> usize {
        let wire_lines = self.wire_lines.as_ref().map_or(0, Vec::len);
        self.content.len() + 4 * (self.lines.len() + wire_lines)
    }

    fn wire_lines(&self) -> &[u32] {
        self.wire_lines.as_deref().unwrap_or(&self.lines)
    }

    /// All of it.
    pub(crate) fn content(&self) -> &str {
        &self.content
    }

    /// The byte at which a place lies.
    ///
    /// # Errors
    ///
    /// There is no such place; the words say what there is.
    pub(crate) fn offset_of(&self, position: Position) -> Result<usize, String> {
        let Position { line, character } = position;
        let at = (line as usize).checked_sub(1);
        let Some(at) = at.filter(|at| *at < self.lines.len()) else {
            let last = self.lines.len();
            return Err(format!("There is no line {line}; the file has {last}."));
        };
        let text = line_at(&self.content, &self.lines, at);
        let before = (character as usize).checked_sub(1);
        let mut places = text.char_indices().map(|(at, _)| at);
        match before.map(|before| (before, places.nth(before))) {
            Some((_, Some(inside))) => Ok(self.lines[at] as usize + inside),
            Some((before, None)) if before == text.chars().count() => {
                Ok(self.lines[at] as usize + text.len())
            }
            _ => Err(format!(
                "There is no character {character} in line {line}, which has {}.",
                text.chars().count()
            )),
        }
    }

    /// The place of a byte.
    pub(crate) fn position_of(&self, offset: usize) -> Position {
        let (at, start) = line_of(&self.lines, offset);
        let before = self.content[start..offset].chars().count();
        Position {
            line: number(at),
            character: number(before),
        }
    }

    /// A byte's place in the words of the protocol.
    pub(crate) fn to_wire(&self, offset: usize, encoding: Encoding) -> WirePosition {
        let (at, start) = line_of(self.wire_lines(), offset);
        let units = encoding.units(&self.content[start..offset]);
        WirePosition {
            line: u32::try_from(at).unwrap_or(u32::MAX),
            character: u32::try_from(units).unwrap_or(u32::MAX),
        }
    }

    /// The byte of a place in the words of the protocol. What lies behind the end of its line or of the text is that end.
    pub(crate) fn offset_of_wire(&self, position: WirePosition, encoding: Encoding) -> usize {
        let at = position.line as usize;
        let Some(start) = self.wire_lines().get(at) else {
            return self.content.len();
        };
        let line = line_at(&self.content, self.wire_lines(), at);
        *start as usize + encoding.byte_of(line, position.character as usize)
    }

    /// The places of both ends of a range.
    pub(crate) fn range(&self, range: WireRange, encoding: Encoding) -> (Position, Position) {
        let place = |position| self.position_of(self.offset_of_wire(position, encoding));
        (place(range.start), place(range.end))
    }

    /// A line, from 1, as it is shown beside a place: without the space around it, and not longer than a screen is wide.
    pub(crate) fn shown_line(&self, line: u32) -> String {
        let at = (line as usize).saturating_sub(1).min(self.lines.len() - 1);
        let text = line_at(&self.content, &self.lines, at).trim();
        match text.char_indices().nth(SHOWN) {
            Some((cut, _)) => format!("{}…", &text[..cut]),
            None => text.to_owned(),
        }
    }

    /// The bytes at which `word` stands as a word of its own, in order.
    pub(crate) fn words<'t>(&'t self, word: &'t str) -> impl Iterator<Item = usize> + 't {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let found = self.content.match_indices(word).map(|(at, _)| at);
        found.filter(move |at| {
            let before = self.content[..*at].chars().next_back();
            let after = self.content[at + word.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
    }
}

/// The line that a byte lies in, and where it starts.
fn line_of(starts: &[u32], offset: usize) -> (usize, usize) {
    let at = starts.partition_point(|start| *start as usize <= offset) - 1;
    (at, starts[at] as usize)
}

/// A line without its end.
fn line_at<'t>(content: &'t str, starts: &[u32], at: usize) -> &'t str {
    let start = starts[at] as usize;
    let Some(end) = starts.get(at + 1) else {
        return &content[start..];
    };
    let line = &content[start..*end as usize];
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

fn number(from_zero: usize) -> u32 {
    u32::try_from(from_zero).map_or(u32::MAX, |number| number.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ENCODINGS: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn characters_before_a_place_are_counted_in_the_unit_of_the_server() {
        // One, two, three and four bytes; one unit of UTF-16 each but the last, which is a surrogate pair.
        let text = Text::new("aé€😀x\n".to_owned());
        let offset = text.offset_of(at(1, 5)).unwrap();
        let wire = |encoding| text.to_wire(offset, encoding).character;
        assert_eq!(ENCODINGS.map(wire), [10, 5, 4]);
    }

    #[test]
    fn a_place_within_a_character_is_that_character() {
        let text = Text::new("😀x".to_owned());
        for (encoding, inside) in [
            (Encoding::Utf8, 1),
            (Encoding::Utf8, 3),
            (Encoding::Utf16, 1),
        ] {
            let wire = WirePosition {
                line: 0,
                character: inside,
            };
            assert_eq!(
                text.position_of(text.offset_of_wire(wire, encoding)),
                at(1, 1)
            );
        }
    }

    #[test]
    fn a_place_behind_the_end_is_the_end() {
        let text = Text::new("ab\r\nc\n".to_owned());
        let place = |line, character| {
            let wire = WirePosition { line, character };
            text.position_of(text.offset_of_wire(wire, Encoding::Utf16))
        };
        assert_eq!(place(0, 99), at(1, 3));
        assert_eq!(place(u32::MAX, u32::MAX), at(3, 1));
    }

    #[test]
    fn lines_that_end_at_a_lone_cr_for_the_server_do_not_for_the_tools() {
        let text = Text::new("a\rb\nc".to_owned());
        let wire = |position| {
            let offset = text.offset_of(position).unwrap();
            let WirePosition { line, character } = text.to_wire(offset, Encoding::Utf8);
            (line, character)
        };
        assert_eq!(wire(at(1, 3)), (1, 0));
        assert_eq!(wire(at(2, 1)), (2, 0));
    }

    #[test]
    fn a_place_that_is_not_there_is_refused_with_what_there_is() {
        let text = Text::new("ab\n".to_owned());
        let refused = |line, character| text.offset_of(at(line, character)).unwrap_err();
        assert_eq!(refused(9, 1), "There is no line 9; the file has 2.");
        assert_eq!(refused(0, 1), "There is no line 0; the file has 2.");
        assert_eq!(
            refused(1, 4),
            "There is no character 4 in line 1, which has 2."
        );
        assert!(text.offset_of(at(1, 3)).is_ok());
        assert!(refused(1, 0).starts_with("There is no character 0"));
    }

    #[test]
    fn a_mark_of_the_byte_order_is_no_character_and_binary_files_are_no_text() {
        let text = Text::of_file("\u{feff}ab".into()).unwrap();
        assert_eq!(text.content(), "ab");
        assert_eq!(Text::of_file(vec![b'a', 0]), None);
    }

    #[test]
    fn a_word_is_found_where_it_stands_alone() {
        let text = Text::new("area re re_x pre re(".to_owned());
        assert_eq!(text.words("re").collect::<Vec<_>>(), [5, 17]);
    }

    proptest! {
        #[test]
        fn every_place_comes_back_from_the_server_as_it_went(
            content in "[a😀é€\u{10ffff}\t \r\n]{0,40}",
            index in any::<prop::sample::Index>(),
        ) {
            let text = Text::new(content.clone());
            let mut places: Vec<usize> = content.char_indices().map(|(at, _)| at).collect();
            places.push(content.len());
            let offset = *index.get(&places);
            for encoding in ENCODINGS {
                let wire = text.to_wire(offset, encoding);
                // Between CR and LF there is no place: the line has ended.
                let between = content[..offset].ends_with('\r') && content[offset..].starts_with('\n');
                if !between {
                    prop_assert_eq!(text.offset_of_wire(wire, encoding), offset);
                    let position = text.position_of(offset);
                    prop_assert_eq!(text.offset_of(position), Ok(offset));
                }
            }
        }

        #[test]
        fn whatever_a_server_says_is_a_place_of_the_text(
            content in "[a😀é\r\n]{0,30}", line: u32, character: u32, near in 0u32..9,
        ) {
            let text = Text::new(content.clone());
            for wire in [(line, character), (near, character), (near, near)] {
                let wire = WirePosition { line: wire.0, character: wire.1 };
                for encoding in ENCODINGS {
                    let offset = text.offset_of_wire(wire, encoding);
                    prop_assert!(content.is_char_boundary(offset));
                    let position = text.position_of(offset);
                    prop_assert!(position.line >= 1 && position.character >= 1);
                }
            }
        }
    }
}
