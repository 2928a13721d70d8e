//! The client's messages as lines, one at a time and of bounded length. Blocking: it runs on a thread of its own.

use std::io::{self, BufRead, BufReader, Read};

/// Bytes of the longest message that is taken: room for the arguments that the first gate lets through, however they are escaped.
pub(crate) const MAX_LINE: usize = 16 << 20;

/// A line of the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Without its end.
    Text(Vec<u8>),
    /// Longer than is taken. It was passed over.
    TooLong,
}

/// Parts what a client writes into lines.
pub(crate) struct Lines<R> {
    source: BufReader<R>,
    limit: usize,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(source: R, limit: usize) -> Lines<R> {
        Lines {
            source: BufReader::with_capacity(64 << 10, source),
            limit,
        }
    }

    /// The next line; none where the client has closed its end. What it began and did not end is no message.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let mut too_long = false;
        loop {
            let part = match self.source.fill_buf() {
                Ok(part) => part,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if part.is_empty() {
                return Ok(None);
            }
            let end = part.iter().position(|byte| *byte == b'\n');
            let content = &part[..end.unwrap_or(part.len())];
            too_long |= line.len() + content.len() > self.limit;
            if too_long {
                line = Vec::new();
            } else {
                line.extend_from_slice(content);
            }
            let consumed = end.map_or(part.len(), |end| end + 1);
            self.source.consume(consumed);
            if end.is_some() {
                return Ok(Some(if too_long {
                    Line::TooLong
                } else {
                    Line::Text(line)
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(text, limit);
        std::iter::from_fn(|| lines.next().unwrap()).collect()
    }

    fn text(line: &[u8]) -> Line {
        Line::Text(line.to_vec())
    }

    #[test]
    fn lines_come_one_by_one_and_the_end_in_the_middle_of_one_is_no_line() {
        assert_eq!(
            all(b"a\n\nb c\nd", 9),
            [text(b"a"), text(b""), text(b"b c")]
        );
        assert!(all(b"", 9).is_empty());
    }

    #[test]
    fn a_line_over_the_limit_is_passed_over_and_the_next_one_is_read() {
        assert_eq!(
            all(b"12345\n123456\n1\n", 5),
            [text(b"12345"), Line::TooLong, text(b"1")]
        );
        let mut flood = vec![b'x'; 300 << 10];
        flood.extend(b"\nok\n");
        assert_eq!(all(&flood, 200 << 10), [Line::TooLong, text(b"ok")]);
    }
}
