//! Lines of a file that may be damaged in any way, in bounded memory.

use std::io::{self, BufRead};

/// The longest line that is a record, without its newline, in bytes. A writer refuses to write a longer one.
pub(crate) const LONGEST: usize = 256 * 1024 * 1024;

/// Reads lines into a buffer that is used again.
pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    number: u64,
    longest: usize,
}

/// One line, without its newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'b> {
    /// From 1.
    pub(crate) number: u64,
    /// Nothing of a line that is too long for a record: its beginning must not be taken for one.
    pub(crate) bytes: &'b [u8],
    /// How many bytes the line has in the file.
    pub(crate) length: u64,
    /// False for a last line that no newline ends.
    pub(crate) ended: bool,
}

impl Line<'_> {
    /// True where the line is longer than any record.
    pub(crate) fn is_too_long(&self) -> bool {
        self.length > self.bytes.len() as u64
    }
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(source: R) -> Lines<R> {
        Lines {
            source,
            buffer: Vec::new(),
            number: 0,
            longest: LONGEST,
        }
    }

    /// The next line; `None` at the end of the file.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let mut length: u64 = 0;
        let ended = loop {
            let available = match self.source.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                break false;
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let text = &available[..newline.unwrap_or(available.len())];
            length += text.len() as u64;
            if length <= self.longest as u64 {
                self.buffer.extend_from_slice(text);
            } else {
                self.buffer = Vec::new();
            }
            let used = text.len() + usize::from(newline.is_some());
            self.source.consume(used);
            if newline.is_some() {
                break true;
            }
        };
        if length == 0 && !ended {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some(Line {
            number: self.number,
            bytes: &self.buffer,
            length,
            ended,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(text: &[u8], longest: usize) -> Vec<(u64, Vec<u8>, u64, bool)> {
        let mut lines = Lines::new(io::BufReader::with_capacity(2, text));
        lines.longest = longest;
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            seen.push((line.number, line.bytes.to_vec(), line.length, line.ended));
        }
        seen
    }

    #[test]
    fn lines_are_numbered_and_a_last_one_without_a_newline_is_marked() {
        assert_eq!(
            lines_of(b"abc\n\nde", 10),
            [
                (1, b"abc".to_vec(), 3, true),
                (2, b"".to_vec(), 0, true),
                (3, b"de".to_vec(), 2, false)
            ]
        );
    }

    #[test]
    fn of_a_line_that_is_too_long_for_a_record_only_its_length_is_kept() {
        assert_eq!(
            lines_of(b"abcd\nabcdefgh\nabc\nabcde", 4),
            [
                (1, b"abcd".to_vec(), 4, true),
                (2, b"".to_vec(), 8, true),
                (3, b"abc".to_vec(), 3, true),
                (4, b"".to_vec(), 5, false)
            ]
        );
    }
}
