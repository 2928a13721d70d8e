//! Cuts a page of lines out of a file that comes in pieces, holding no more than the page. Pure.

/// Lines of a page where no limit is given.
pub(crate) const LINES_DEFAULT: u64 = 2000;
/// Characters of a line that are shown.
const LINE_CHARACTERS: usize = 2000;
/// Bytes of a page.
const PAGE_BYTES: usize = 64 * 1024;
/// More than the shown part of a line can take.
const LINE_BYTES: usize = LINE_CHARACTERS * 4 + 4;

/// What is shown of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) note: Option<String>,
}

/// The line that is being gathered: its first bytes, and how long it is.
#[derive(Debug, Default)]
struct Line {
    beginning: Vec<u8>,
    characters: usize,
    bytes: usize,
}

/// Takes a file piece by piece and keeps one page of it.
#[derive(Debug)]
pub(crate) struct Pager {
    first: u64,
    limit: u64,
    numbers: bool,
    text: String,
    line: Line,
    /// Lines that are complete so far.
    lines: u64,
    /// Number of the last line in the page; one less than `first` for none.
    last: u64,
    cut_lines: u64,
    full: bool,
    /// The file so far ends inside a line.
    inside_line: bool,
    all_counted: bool,
    not_text: Option<u64>,
}

impl Pager {
    /// A page of at most `limit` lines from line `first` on.
    pub(crate) fn new(first: u64, limit: u64, numbers: bool) -> Pager {
        let first = first.max(1);
        Pager {
            first,
            limit: limit.max(1),
            numbers,
            text: String::new(),
            line: Line::default(),
            lines: 0,
            last: first - 1,
            cut_lines: 0,
            full: false,
            inside_line: false,
            all_counted: true,
            not_text: None,
        }
    }

    /// Takes the next piece of the file.
    pub(crate) fn feed(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            if self.full {
                self.lines += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
                self.inside_line = piece.last() != Some(&b'\n');
                return;
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let (part, rest) = piece.split_at(end.map_or(piece.len(), |end| end + 1));
            piece = rest;
            self.inside_line = end.is_none();
            if self.lines + 1 >= self.first {
                self.line.extend(part);
            }
            if end.is_some() {
                self.end_line();
            }
        }
    }

    /// True when the page is complete and only lines are counted.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Says that the rest of the file is not fed.
    pub(crate) fn stop_counting(&mut self) {
        self.all_counted = false;
        // The line that is not read to its end is one of those that are not counted.
        self.inside_line = false;
    }

    /// The page, or why there is none, to follow the name of the file.
    pub(crate) fn finish(mut self) -> Result<Page, String> {
        if self.inside_line {
            self.end_line();
        }
        if let Some(line) = self.not_text {
            return Err(format!("is not UTF-8 text: line {line} holds other bytes."));
        }
        if self.first > self.lines && self.first > 1 {
            return Err(format!(
                "has {} lines; offset {} is past its end.",
                self.lines, self.first
            ));
        }
        Ok(Page {
            note: self.note(),
            text: self.text,
        })
    }

    fn note(&self) -> Option<String> {
        let mut notes = Vec::new();
        let of = if self.all_counted {
            self.lines.to_string()
        } else {
            format!("more than {}", self.lines)
        };
        if self.last < self.lines {
            notes.push(format!(
                "[lines {}–{} of {of}; continue with offset {}]",
                self.first,
                self.last,
                self.last + 1
            ));
        } else if self.first > 1 {
            notes.push(format!("[lines {}–{} of {of}]", self.first, self.last));
        }
        match self.cut_lines {
            0 => {}
            1 => notes.push(format!(
                "[1 line longer than {LINE_CHARACTERS} characters was cut]"
            )),
            count => notes.push(format!(
                "[{count} lines longer than {LINE_CHARACTERS} characters were cut]"
            )),
        }
        (!notes.is_empty()).then(|| notes.join("\n"))
    }

    fn end_line(&mut self) {
        self.lines += 1;
        let line = std::mem::take(&mut self.line);
        if self.lines < self.first || self.full {
            return;
        }
        let Some((shown, was_cut)) = line.shown() else {
            self.not_text.get_or_insert(self.lines);
            self.full = true;
            return;
        };
        let number = if self.numbers {
            format!("{:>6}\t", self.lines)
        } else {
            String::new()
        };
        let is_first = self.last < self.first;
        if !is_first && self.text.len() + number.len() + shown.len() > PAGE_BYTES {
            self.full = true;
            return;
        }
        self.text.push_str(&number);
        self.text.push_str(&shown);
        self.cut_lines += u64::from(was_cut);
        self.last = self.lines;
        self.full = self.last - self.first + 1 >= self.limit;
    }
}

impl Line {
    fn extend(&mut self, part: &[u8]) {
        let room = LINE_BYTES
            .saturating_sub(self.beginning.len())
            .min(part.len());
        self.beginning.extend_from_slice(&part[..room]);
        self.bytes += part.len();
        // Each character has exactly one byte that does not continue another.
        self.characters += part.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
    }

    /// What is shown of the line, and whether something was cut; none where it is not UTF-8.
    fn shown(self) -> Option<(String, bool)> {
        let is_whole = self.bytes == self.beginning.len();
        let text = match String::from_utf8(self.beginning) {
            Ok(text) => text,
            // The gathered part may end inside a character.
            Err(error) if !is_whole && error.utf8_error().error_len().is_none() => {
                let valid = error.utf8_error().valid_up_to();
                let mut bytes = error.into_bytes();
                bytes.truncate(valid);
                String::from_utf8(bytes).ok()?
            }
            Err(_) => return None,
        };
        let ending = if text.ends_with("\r\n") {
            2
        } else {
            usize::from(text.ends_with('\n'))
        };
        if is_whole && self.characters - ending <= LINE_CHARACTERS {
            return Some((text, false));
        }
        let shown: String = text.chars().take(LINE_CHARACTERS).collect();
        let more = self.characters - LINE_CHARACTERS - usize::from(!is_whole || ending > 0);
        Some((format!("{shown}… [{more} more characters]\n"), true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(
        file: &[u8],
        first: u64,
        limit: u64,
        numbers: bool,
        piece: usize,
    ) -> Result<Page, String> {
        let mut pager = Pager::new(first, limit, numbers);
        for piece in file.chunks(piece.max(1)) {
            pager.feed(piece);
        }
        pager.finish()
    }

    fn whole(file: &str) -> Page {
        page_of(file.as_bytes(), 1, LINES_DEFAULT, false, 1 << 20).unwrap()
    }

    fn numbered(lines: u64) -> String {
        (1..=lines).map(|line| format!("line {line}\n")).collect()
    }

    #[test]
    fn a_small_file_comes_back_byte_for_byte() {
        for file in [
            "",
            "a",
            "a\n",
            "a\r\nb\n\n",
            "\n\n",
            "no newline\nat the end",
            &numbered(2000),
        ] {
            assert_eq!(
                whole(file),
                Page {
                    text: file.into(),
                    note: None
                }
            );
        }
    }

    #[test]
    fn a_longer_file_comes_in_pages_with_the_offset_to_go_on_with() {
        let file = numbered(4500);
        let first = whole(&file);
        assert_eq!(first.text, numbered(2000));
        assert_eq!(
            first.note.as_deref(),
            Some("[lines 1–2000 of 4500; continue with offset 2001]")
        );
        let last = page_of(file.as_bytes(), 4001, LINES_DEFAULT, false, 1 << 20).unwrap();
        assert_eq!(last.text.lines().count(), 500);
        assert_eq!(last.note.as_deref(), Some("[lines 4001–4500 of 4500]"));
    }

    #[test]
    fn pages_one_after_the_other_are_the_file() {
        let file = format!("{}last", "word ".repeat(30) + "\n").repeat(1000);
        let (mut offset, mut gathered) = (1, String::new());
        loop {
            let page = page_of(file.as_bytes(), offset, 300, false, 1000).unwrap();
            gathered.push_str(&page.text);
            offset += page.text.lines().count() as u64;
            match page.note {
                Some(note) if note.contains("continue") => assert!(
                    note.ends_with(&format!("continue with offset {offset}]")),
                    "{note}"
                ),
                _ => break,
            }
        }
        assert_eq!(gathered, file);
    }

    #[test]
    fn a_page_holds_at_most_64_kib_and_at_least_a_line() {
        let file = format!("{}\n", "x".repeat(1000)).repeat(100);
        let page = whole(&file);
        assert_eq!(page.text.len(), 65 * 1001);
        assert_eq!(
            page.note.as_deref(),
            Some("[lines 1–65 of 100; continue with offset 66]")
        );
    }

    #[test]
    fn a_long_line_is_cut_and_says_how_much_is_left() {
        let page = whole(&format!("{}\r\nshort\n", "é".repeat(2000)));
        assert_eq!(page.note, None);
        let page = whole(&format!("{}\nshort\n", "é".repeat(2003)));
        assert_eq!(
            page.text,
            format!("{}… [3 more characters]\nshort\n", "é".repeat(2000))
        );
        assert_eq!(
            page.note.as_deref(),
            Some("[1 line longer than 2000 characters was cut]")
        );
    }

    #[test]
    fn a_line_of_many_megabytes_is_not_held() {
        let file = vec![b'x'; 20_000_000];
        let mut pager = Pager::new(1, 10, false);
        for piece in file.chunks(1 << 20) {
            pager.feed(piece);
            assert!(pager.line.beginning.capacity() < 64 * 1024);
        }
        let page = pager.finish().unwrap();
        assert!(page.text.starts_with("xxxx") && page.text.len() < 2100);
    }

    #[test]
    fn line_numbers_are_the_numbers_of_the_file() {
        let page = page_of(b"a\nb\nc\n", 2, 1, true, 2).unwrap();
        assert_eq!(
            page,
            Page {
                text: "     2\tb\n".into(),
                note: Some("[lines 2–2 of 3; continue with offset 3]".into())
            }
        );
    }

    #[test]
    fn an_offset_past_the_end_is_refused_with_the_number_of_lines() {
        assert_eq!(
            page_of(b"a\nb\n", 3, 10, false, 9),
            Err("has 2 lines; offset 3 is past its end.".into())
        );
        assert_eq!(page_of(b"a\nb", 2, 10, false, 9).unwrap().text, "b");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_only_where_they_would_be_shown() {
        assert_eq!(
            page_of(b"a\n\xff\n", 1, 10, false, 9),
            Err("is not UTF-8 text: line 2 holds other bytes.".into())
        );
        assert_eq!(page_of(b"a\n\xff\n", 1, 1, false, 9).unwrap().text, "a\n");
    }

    #[test]
    fn how_the_file_is_cut_into_pieces_does_not_matter() {
        let file = format!("first\n{}\nmiddle 漢字\r\n\nlast", "漢".repeat(2500));
        let expected = page_of(file.as_bytes(), 1, 4, true, file.len());
        for piece in 1..64 {
            assert_eq!(
                page_of(file.as_bytes(), 1, 4, true, piece),
                expected,
                "{piece}"
            );
        }
    }

    #[test]
    fn a_file_that_is_not_counted_to_its_end_says_so() {
        let mut pager = Pager::new(1, 1, false);
        pager.feed(b"a\nb\nc\nd");
        assert!(pager.is_full());
        pager.stop_counting();
        assert_eq!(
            pager.finish().unwrap().note.as_deref(),
            Some("[lines 1–1 of more than 3; continue with offset 2]")
        );
    }
}
