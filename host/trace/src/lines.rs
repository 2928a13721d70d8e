//! Lines of a file that may be damaged in any way, in bounded memory.

use std::io::{self, BufRead};

/// The longest line that is kept. What is longer is no record: the host bounds what it writes far below.
const LONGEST: usize = 256 * 1024 * 1024;

/// Reads lines into a buffer that is used again.
pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    number: u64,
}

/// One line, without its newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'b> {
    /// From 1.
    pub(crate) number: u64,
    pub(crate) bytes: &'b [u8],
    /// False for a last line that no newline ends.
    pub(crate) ended: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(source: R) -> Lines<R> {
        Lines {
            source,
            buffer: Vec::new(),
            number: 0,
        }
    }

    /// The next line; `None` at the end of the file. A line above the limit is cut there, and the rest of it is skipped.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let mut any = false;
        let ended = loop {
            let available = match self.source.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                break false;
            }
            any = true;
            let newline = available.iter().position(|byte| *byte == b'\n');
            let text = &available[..newline.unwrap_or(available.len())];
            let room = LONGEST - self.buffer.len();
            self.buffer.extend_from_slice(&text[..text.len().min(room)]);
            let used = text.len() + usize::from(newline.is_some());
            self.source.consume(used);
            if newline.is_some() {
                break true;
            }
        };
        if !any {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some(Line {
            number: self.number,
            bytes: &self.buffer,
            ended,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_a_last_one_without_a_newline_is_marked() {
        let mut lines = Lines::new(io::BufReader::with_capacity(2, &b"abc\n\nde"[..]));
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            seen.push((line.number, line.bytes.to_vec(), line.ended));
        }
        assert_eq!(
            seen,
            [
                (1, b"abc".to_vec(), true),
                (2, b"".to_vec(), true),
                (3, b"de".to_vec(), false)
            ]
        );
    }
}
