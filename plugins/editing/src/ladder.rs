//! Finds what is to be replaced: exactly if it is there, else by steps that allow more and more. A step counts only where it finds one place, or
//! where all are to be replaced; which step it was is always told.

use std::ops::Range;

use crate::lines::{Line, lines, numbers, with_endings_of};
use crate::nearest::nearest;

/// What was allowed to differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Exact,
    /// Line endings.
    LineEndings,
    /// Space at the ends of lines.
    TrailingSpace,
    /// Indentation, by the same in every line.
    Indentation,
    /// Typographic quotes, dashes and spaces.
    Punctuation,
}

impl Step {
    /// What to tell of the step; nothing of an exact one.
    pub fn told(self) -> Option<&'static str> {
        match self {
            Step::Exact => None,
            Step::LineEndings => Some("matched ignoring line endings"),
            Step::TrailingSpace => Some("matched ignoring space at the ends of lines"),
            Step::Indentation => Some("matched ignoring indentation"),
            Step::Punctuation => Some("matched ignoring typographic punctuation"),
        }
    }
}

/// A text with its replacements made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The new text.
    pub text: String,
    /// How many places were replaced.
    pub count: usize,
    /// What was allowed to differ.
    pub step: Step,
}

/// Why nothing was replaced.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// It is nowhere; where it is most alike and how much, if anywhere.
    NotFound(Option<(usize, f64)>),
    /// It is in several places, at these lines.
    Ambiguous(Vec<usize>),
}

/// A place and what is to stand there.
type Change = (Range<usize>, String);
/// Finds the places of a text for another, and what is to stand there.
type Find = fn(&str, &str, &str) -> Vec<Change>;

/// Replaces `old`, which is not empty, by `new`.
///
/// # Errors
/// See [`Fault`].
pub fn replace(text: &str, old: &str, new: &str, all: bool) -> Result<Replaced, Fault> {
    let new = with_endings_of(text, new);
    let steps: [(Step, Find); 5] = [
        (Step::Exact, exact),
        (Step::LineEndings, without_endings),
        (Step::TrailingSpace, without_trailing_space),
        (Step::Indentation, shifted),
        (Step::Punctuation, folded),
    ];
    for (step, find) in steps {
        let changes = find(text, old, &new);
        match changes.len() {
            0 => {}
            1 => return Ok(apply(text, changes, step)),
            _ if all => return Ok(apply(text, changes, step)),
            _ => {
                let starts = changes.iter().map(|(place, _)| place.start);
                return Err(Fault::Ambiguous(numbers(text, starts)));
            }
        }
    }
    Err(Fault::NotFound(nearest(text, old)))
}

fn apply(text: &str, changes: Vec<Change>, step: Step) -> Replaced {
    let count = changes.len();
    let mut result = String::with_capacity(text.len());
    let mut from = 0;
    for (place, new) in changes {
        result.push_str(&text[from..place.start]);
        result.push_str(&new);
        from = place.end;
    }
    result.push_str(&text[from..]);
    Replaced {
        text: result,
        count,
        step,
    }
}

fn exact(text: &str, old: &str, new: &str) -> Vec<Change> {
    text.match_indices(old)
        .map(|(start, _)| (start..start + old.len(), new.to_owned()))
        .collect()
}

fn without_endings(text: &str, old: &str, new: &str) -> Vec<Change> {
    let plain = text.replace("\r\n", "\n");
    let old = old.replace("\r\n", "\n");
    // Where each carriage return was taken out of the plain text.
    let mut taken = Vec::new();
    for (nth, (at, _)) in text.match_indices("\r\n").enumerate() {
        taken.push(at - nth);
    }
    let start = |at: usize| at + taken.partition_point(|taken| *taken < at);
    plain
        .match_indices(&old)
        .map(|(at, _)| (start(at)..start(at + old.len()), new.to_owned()))
        .collect()
}

fn without_trailing_space(text: &str, old: &str, new: &str) -> Vec<Change> {
    by_lines(text, old, |line, wanted| {
        line.trim_end() == wanted.trim_end()
    })
    .into_iter()
    .map(|place| (place, new.to_owned()))
    .collect()
}

/// The places whose lines are alike, one by one, to those of `old`. They end with a line ending where `old` does.
fn by_lines(text: &str, old: &str, alike: impl Fn(&str, &str) -> bool) -> Vec<Range<usize>> {
    let (lines, wanted) = (lines(text), lines(old));
    let mut found = Vec::new();
    let mut from = 0;
    while !wanted.is_empty() && from + wanted.len() <= lines.len() {
        let window = &lines[from..from + wanted.len()];
        let is_here = window
            .iter()
            .zip(&wanted)
            .all(|(line, wanted)| alike(line.text, wanted.text));
        if is_here {
            found.push(place(window, old));
            from += wanted.len();
        } else {
            from += 1;
        }
    }
    found
}

fn place(window: &[Line<'_>], old: &str) -> Range<usize> {
    let start = window.first().map_or(0, |line| line.at.start);
    let end = window.last().map_or(start, |line| {
        if old.ends_with('\n') {
            line.next
        } else {
            line.at.end
        }
    });
    start..end
}

/// Lines that are those of `old` with the same indentation added to each, or taken from each; blank lines fit any.
fn shifted(text: &str, old: &str, new: &str) -> Vec<Change> {
    let (found, wanted) = (lines(text), lines(old));
    let Some(first) = wanted.iter().position(|line| !line.text.trim().is_empty()) else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    let mut from = 0;
    while from + wanted.len() <= found.len() {
        let window = &found[from..from + wanted.len()];
        let shift = Shift::between(wanted[first].text, window[first].text);
        let is_here = |shift: &Shift| {
            window.iter().zip(&wanted).all(|(line, wanted)| {
                let (line, wanted) = (line.text.trim_end(), wanted.text.trim_end());
                if wanted.is_empty() {
                    line.is_empty()
                } else {
                    shift.apply(wanted).is_some_and(|shifted| shifted == line)
                }
            })
        };
        match shift.filter(is_here) {
            Some(shift) => {
                changes.push((place(window, old), shift.apply_all(new)));
                from += wanted.len();
            }
            None => from += 1,
        }
    }
    changes
}

/// Indentation that is added or taken away.
#[derive(Debug)]
enum Shift {
    Add(String),
    Take(String),
}

impl Shift {
    fn between(from: &str, to: &str) -> Option<Shift> {
        let indentation = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
        let (from, to) = (indentation(from), indentation(to));
        if let Some(added) = to.strip_suffix(from.as_str()) {
            return Some(Shift::Add(added.to_owned()));
        }
        from.strip_suffix(to.as_str())
            .map(|taken| Shift::Take(taken.to_owned()))
    }

    /// A line that is not blank, shifted; none where it has less indentation than is taken.
    fn apply(&self, line: &str) -> Option<String> {
        match self {
            Shift::Add(added) => Some(format!("{added}{line}")),
            Shift::Take(taken) => line.strip_prefix(taken.as_str()).map(str::to_owned),
        }
    }

    /// A whole text, shifted as far as its lines can be.
    fn apply_all(&self, text: &str) -> String {
        text.split_inclusive('\n')
            .map(|line| {
                if line.trim().is_empty() {
                    line.to_owned()
                } else {
                    self.apply(line)
                        .unwrap_or_else(|| line.trim_start().to_owned())
                }
            })
            .collect()
    }
}

fn folded(text: &str, old: &str, new: &str) -> Vec<Change> {
    let plain: String = text.chars().map(fold).collect();
    let old: String = old.chars().map(fold).collect();
    if plain == text && !plain.contains(&old) {
        return Vec::new();
    }
    // Folding keeps the number of characters, not that of bytes.
    let starts: Vec<(usize, usize)> = plain
        .char_indices()
        .zip(text.char_indices())
        .map(|((plain, _), (text, _))| (plain, text))
        .chain([(plain.len(), text.len())])
        .collect();
    let at = |place: usize| {
        let index = starts.partition_point(|(plain, _)| *plain < place);
        starts[index.min(starts.len() - 1)].1
    };
    plain
        .match_indices(&old)
        .map(|(start, _)| (at(start)..at(start + old.len()), new.to_owned()))
        .collect()
}

/// The plain character for a typographic quote, dash or space; any other as it is.
pub fn fold(character: char) -> char {
    match character {
        '\u{2018}' | '\u{2019}' | '\u{201A}' | '\u{201B}' | '\u{2032}' => '\'',
        '\u{201C}' | '\u{201D}' | '\u{201E}' | '\u{201F}' | '\u{2033}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn once(text: &str, old: &str, new: &str) -> (String, Step) {
        let replaced = replace(text, old, new, false).unwrap();
        assert_eq!(replaced.count, 1);
        (replaced.text, replaced.step)
    }

    #[test]
    fn what_is_there_exactly_is_replaced_there() {
        assert_eq!(once("abc", "b", "x"), ("axc".into(), Step::Exact));
        let all = replace("b b b", "b", "x", true).unwrap();
        assert_eq!((all.text.as_str(), all.count), ("x x x", 3));
        assert_eq!(replace("aaa", "aa", "b", true).unwrap().text, "ba");
    }

    #[test]
    fn several_places_are_told_by_their_lines_and_nothing_is_guessed() {
        let fault = replace("b\na\nb\n", "b", "x", false).unwrap_err();
        assert_eq!(fault, Fault::Ambiguous(vec![1, 3]));
        // Nor by a step that allows more.
        let fault = replace("  a\n\n    a\n", "a\n", "x\n", false).unwrap_err();
        assert_eq!(fault, Fault::Ambiguous(vec![1, 3]));
    }

    #[test]
    fn a_text_that_is_everywhere_in_the_longest_file_is_counted_at_once() {
        let text = "a\n".repeat(2_600_000);
        let begin = std::time::Instant::now();
        let Err(Fault::Ambiguous(lines)) = replace(&text, "a", "b", false) else {
            panic!("in several places");
        };
        assert_eq!((lines.len(), lines[2_599_999]), (2_600_000, 2_600_000));
        assert!(begin.elapsed().as_secs() < 60);
    }

    #[test]
    fn line_endings_may_differ_and_those_of_the_file_stay() {
        let text = "one\r\ntwo\r\nthree\r\n";
        assert_eq!(
            once(text, "one\ntwo", "1\n2\n2b"),
            ("1\r\n2\r\n2b\r\nthree\r\n".into(), Step::LineEndings)
        );
        assert_eq!(once(text, "two", "2\n2b").0, "one\r\n2\r\n2b\r\nthree\r\n");
        assert_eq!(
            once("a\nb\n", "a\r\nb", "x\r\ny"),
            ("x\ny\n".into(), Step::LineEndings)
        );
    }

    #[test]
    fn space_at_the_ends_of_lines_may_differ() {
        assert_eq!(
            once("a  \nb\t\nc", "a\nb", "x\ny"),
            ("x\ny\nc".into(), Step::TrailingSpace)
        );
        assert_eq!(once("a\nb \n", "b  \n", "x\n").0, "a\nx\n");
    }

    #[test]
    fn indentation_may_differ_by_the_same_in_every_line() {
        let text = "if x {\n        a();\n\n        if b {\n            c();\n        }\n}\n";
        let old = "    a();\n\n    if b {\n        c();\n    }\n";
        let new = "    a();\n    d {\n        e();\n    }\n";
        assert_eq!(
            once(text, old, new),
            (
                "if x {\n        a();\n        d {\n            e();\n        }\n}\n".into(),
                Step::Indentation
            )
        );
        assert_eq!(
            once("\ta\n\tb\n", "\t\t\ta\n\t\t\tb\n", "\t\t\tx\n"),
            ("\tx\n".into(), Step::Indentation)
        );
        assert!(replace("  a\n    b\n", "a\nb\n", "x", false).is_err());
    }

    #[test]
    fn typographic_punctuation_may_differ() {
        assert_eq!(
            once("say “hi” — é\n", "\"hi\" - é", "bye"),
            ("say bye\n".into(), Step::Punctuation)
        );
        assert_eq!(once("a 'b'", "‘b’", "c"), ("a c".into(), Step::Punctuation));
    }

    #[test]
    fn what_is_nowhere_names_where_it_nearly_is() {
        let fault = replace(
            "fn a() {}\nfn total(x: u8) {}\n",
            "fn total(y: u8) {}",
            "",
            false,
        );
        let Err(Fault::NotFound(Some((line, similarity)))) = fault else {
            panic!("{fault:?}");
        };
        assert_eq!(line, 2);
        assert!(similarity > 0.6);
        assert_eq!(replace("", "a", "b", false), Err(Fault::NotFound(None)));
    }

    proptest! {
        #[test]
        fn outside_the_place_not_one_byte_changes(
            before in "(?s)[a-c \\t\\r\\né]{0,20}", old in "[x-z“]{1,8}", after in "(?s)[a-c \\t\\r\\né]{0,20}", new in "(?s)[a-z\\n]{0,8}",
        ) {
            let text = format!("{before}{old}{after}");
            if let Ok(replaced) = replace(&text, &old, &new, false)
                && replaced.step == Step::Exact
            {
                prop_assert!(replaced.text.starts_with(&before));
                prop_assert!(replaced.text.ends_with(&after));
            }
        }

        #[test]
        fn no_text_makes_it_panic(
            text in "(?s)[ab \\t\\r\\n“”‘é]{0,40}", old in "(?s)[ab \\t\\r\\n\"'é]{1,10}", new in "(?s).{0,5}", all: bool,
        ) {
            let _ = replace(&text, &old, &new, all);
        }
    }
}
