//! Finds the matching lines of one file, over its whole buffer at once. Pure.

use std::ops::Range;

use grep_matcher::{LineMatchKind, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

/// A pattern that compiles to more is refused; a few characters can ask for any amount.
const COMPILED_BYTES: usize = 10 * 1024 * 1024;
/// What searching may hold beside that.
const SEARCH_BYTES: usize = 32 * 1024 * 1024;

/// How a pattern is understood.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Syntax {
    pub(crate) case_insensitive: bool,
    pub(crate) fixed_strings: bool,
    /// A match may go over several lines.
    pub(crate) multi_line: bool,
}

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    matcher: RegexMatcher,
    multi_line: bool,
    /// It asks where words of any script end. At the first character outside ASCII the fast engines give up on all that they were
    /// given, so such lines are given to them alone.
    apart: bool,
}

/// One match: whole lines, without the end of the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    /// The number of its first line, from 1 on.
    pub(crate) line: u64,
    /// Where its lines lie in the file.
    pub(crate) lines: Range<usize>,
    /// Where the match itself starts in the file.
    pub(crate) at: usize,
}

impl Pattern {
    /// Compiles it.
    ///
    /// # Errors
    /// The words of the regex library.
    pub(crate) fn new(pattern: &str, syntax: Syntax) -> Result<Pattern, String> {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(true)
            .case_insensitive(syntax.case_insensitive)
            .fixed_strings(syntax.fixed_strings)
            .dot_matches_new_line(syntax.multi_line)
            .size_limit(COMPILED_BYTES)
            .dfa_size_limit(SEARCH_BYTES);
        if !syntax.multi_line {
            builder.line_terminator(Some(b'\n')).crlf(true);
        }
        let matcher = builder
            .build(pattern)
            .map_err(|error| error.to_string().trim().to_owned())?;
        Ok(Pattern {
            matcher,
            multi_line: syntax.multi_line,
            apart: !syntax.multi_line && !syntax.fixed_strings && bounds_words(pattern),
        })
    }

    /// The matches of a file, in order, until `take` answers false.
    pub(crate) fn search(
        &self,
        data: &[u8],
        mut take: impl FnMut(Match) -> bool,
    ) -> Result<(), String> {
        let mut lines = Lines::default();
        let mut from = 0;
        let mut stretch = 0;
        while from < data.len() {
            let Some((at, end)) = self.next(data, from, &mut stretch)? else {
                return Ok(());
            };
            let start = line_start(data, at);
            let stop = line_end(data, end.max(at + 1) - 1);
            let found = Match {
                line: lines.number(data, start),
                lines: start..trim_end(data, start, stop),
                at,
            };
            if !take(found) {
                return Ok(());
            }
            from = stop;
        }
        Ok(())
    }

    /// The next match at or after `from`, which starts a line. What is searched at once ends at `stretch`, which this moves on.
    fn next(
        &self,
        data: &[u8],
        mut from: usize,
        stretch: &mut usize,
    ) -> Result<Option<(usize, usize)>, String> {
        let failed = |error: grep_matcher::NoError| error.to_string();
        if self.multi_line {
            let found = self.matcher.find_at(data, from).map_err(failed)?;
            let found = found.filter(|found| !is_behind(data, found.start()));
            return Ok(found.map(|found| (found.start(), found.end())));
        }
        while from < data.len() {
            if from >= *stretch {
                *stretch = match self.apart {
                    true => end_of_stretch(data, from),
                    false => data.len(),
                };
            }
            let rest = &data[from..*stretch];
            let (candidate, confirmed) =
                match self.matcher.find_candidate_line(rest).map_err(failed)? {
                    Some(LineMatchKind::Confirmed(at)) if !is_behind(rest, at) => (from + at, true),
                    Some(LineMatchKind::Candidate(at)) if !is_behind(rest, at) => {
                        (from + at, false)
                    }
                    _ => {
                        from = *stretch;
                        continue;
                    }
                };
            let start = line_start(data, candidate);
            let stop = line_end(data, candidate);
            let line = &data[start..trim_newline(data, start, stop)];
            match self.matcher.find(line).map_err(failed)? {
                Some(found) => return Ok(Some((start + found.start(), start + found.end()))),
                None if confirmed => return Ok(Some((candidate, candidate))),
                None => from = stop,
            }
        }
        Ok(None)
    }
}

/// Whether a pattern asks for the start or the end of a word by more than ASCII.
fn bounds_words(pattern: &str) -> bool {
    let parsed = regex_syntax::ParserBuilder::new()
        .utf8(false)
        .build()
        .parse(pattern);
    parsed.is_ok_and(|parsed| parsed.properties().look_set().contains_word_unicode())
}

/// Where the lines from `from` on end that are all ASCII or, where the first is not, where that one ends.
fn end_of_stretch(data: &[u8], from: usize) -> usize {
    /// Looked through at once.
    const BLOCK: usize = 256;
    let rest = &data[from..];
    let plain = rest.chunks(BLOCK).take_while(|block| block.is_ascii());
    let block = from + plain.map(<[u8]>::len).sum::<usize>();
    let Some(other) = data[block..].iter().position(|byte| !byte.is_ascii()) else {
        return data.len();
    };
    match line_start(data, block + other) {
        start if start > from => start,
        _ => line_end(data, block + other),
    }
}

/// Whether a match is behind the last line: after its end there is no further, empty one.
fn is_behind(data: &[u8], at: usize) -> bool {
    at == data.len() && data.ends_with(b"\n")
}

/// Counts lines from one match to the next.
#[derive(Debug, Default)]
struct Lines {
    counted: usize,
    number: u64,
}

impl Lines {
    /// The number of the line that starts at `start`, which is not before the last.
    fn number(&mut self, data: &[u8], start: usize) -> u64 {
        self.number += memchr::memchr_iter(b'\n', &data[self.counted..start]).count() as u64;
        self.counted = start;
        self.number + 1
    }
}

/// Where the line that holds `at` starts.
pub(crate) fn line_start(data: &[u8], at: usize) -> usize {
    memchr::memrchr(b'\n', &data[..at]).map_or(0, |newline| newline + 1)
}

/// Behind the line that holds `at`, its end included.
pub(crate) fn line_end(data: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &data[at.min(data.len())..])
        .map_or(data.len(), |newline| at + newline + 1)
}

fn trim_newline(data: &[u8], start: usize, stop: usize) -> usize {
    if stop > start && data[stop - 1] == b'\n' {
        stop - 1
    } else {
        stop
    }
}

/// The end of a line's text: without `\n` and a `\r` before it.
pub(crate) fn trim_end(data: &[u8], start: usize, stop: usize) -> usize {
    let end = trim_newline(data, start, stop);
    if end < stop && end > start && data[end - 1] == b'\r' {
        end - 1
    } else {
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(pattern: &str, syntax: Syntax, text: &str) -> Vec<(u64, String)> {
        let pattern = Pattern::new(pattern, syntax).unwrap();
        let mut matches = Vec::new();
        pattern
            .search(text.as_bytes(), |found| {
                matches.push((found.line, text[found.lines].to_owned()));
                true
            })
            .unwrap();
        matches
    }

    fn lines(pattern: &str, text: &str) -> Vec<(u64, String)> {
        found(pattern, Syntax::default(), text)
    }

    #[test]
    fn lines_are_numbered_from_one_and_each_is_told_once() {
        let text = "alpha alpha\nbeta\n\nalpha";
        let expected = [(1, "alpha alpha".to_owned()), (4, "alpha".to_owned())];
        assert_eq!(lines("alpha", text), expected);
        assert_eq!(lines("^$", text), [(3, String::new())]);
        assert!(lines("gamma", text).is_empty());
        assert!(lines("alpha", "").is_empty());
    }

    #[test]
    fn the_end_of_a_line_is_one_with_a_carriage_return_too() {
        assert_eq!(lines("a$", "ba\r\nab\r\n"), [(1, "ba".to_owned())]);
    }

    #[test]
    fn a_fixed_string_means_itself_and_case_can_be_ignored() {
        let fixed = Syntax {
            fixed_strings: true,
            ..Syntax::default()
        };
        assert_eq!(
            found("a.c(", fixed, "abc(\na.c(\n"),
            [(2, "a.c(".to_owned())]
        );
        let insensitive = Syntax {
            case_insensitive: true,
            ..Syntax::default()
        };
        assert_eq!(found("É", insensitive, "x é"), [(1, "x é".to_owned())]);
    }

    #[test]
    fn a_match_over_several_lines_is_all_of_them() {
        let multi = Syntax {
            multi_line: true,
            ..Syntax::default()
        };
        let text = "one {\n  two\n}\nthree {}\n";
        assert_eq!(
            found(r"\{\s+two\s+\}", multi, text),
            [(1, "one {\n  two\n}".to_owned())]
        );
        assert_eq!(found("x*", multi, "ab\nc\n").len(), 2);
    }

    #[test]
    fn no_empty_line_follows_the_end_of_the_last() {
        assert!(lines("^$", "alpha\n").is_empty());
        let multi = Syntax {
            multi_line: true,
            ..Syntax::default()
        };
        assert!(found("^$", multi, "alpha\n").is_empty());
        // Nor does the line behind a stretch match by being empty at first.
        assert!(lines(r"^$|\bzz\b", "alpha\né\nbeta\n").is_empty());
    }

    #[test]
    fn words_end_where_they_do_in_any_script_on_lines_of_each_kind() {
        let long = "plain\n".repeat(200);
        let text = format!("{long}né\n{long}éne né\nne\n");
        let found = lines(r"\bn\w\b", &text);
        let expected = [
            (201, "né".to_owned()),
            (402, "éne né".to_owned()),
            (403, "ne".to_owned()),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_no_pattern_is_refused_in_the_words_of_the_library() {
        let error = Pattern::new("(", Syntax::default()).unwrap_err();
        assert!(error.contains("unclosed group"), "{error}");
    }

    proptest! {
        #[test]
        fn the_lines_found_are_those_that_match_alone(
            pattern in "([ab]|\\(ab\\|b\\)|a\\+|\\[\\^a\\]|\\\\b|\\^a|b\\$|\\^\\$|\\.){1,4}",
            text in "[abé\\n ]{0,40}",
        ) {
            let compiled = regex::RegexBuilder::new(&pattern).multi_line(true).build();
            prop_assume!(compiled.is_ok());
            let compiled = compiled.unwrap();
            let mut expected = Vec::new();
            let mut split: Vec<&str> = text.split('\n').collect();
            if split.last() == Some(&"") {
                split.pop();
            }
            for (number, line) in split.iter().enumerate() {
                if compiled.is_match(line) {
                    expected.push((number as u64 + 1, (*line).to_owned()));
                }
            }
            prop_assert_eq!(lines(&pattern, &text), expected);
        }
    }
}
