//! Finds what is to be replaced: exactly if it is there, else by steps that allow more and more. A step counts only where it finds one place, or
//! where all are to be replaced and are the same; which step it was is always told.

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
    /// It is nowhere exactly, and the places that are like it, at these lines, are not all the same.
    Unlike(Vec<usize>),
}

impl Fault {
    /// What to tell the model; `remedy` says how to name one of several places.
    pub fn told(&self, path: &str, remedy: &str) -> String {
        match self {
            Fault::NotFound(None) => format!(
                "`old_string` not found in {path}; read the file and copy the text as it stands there."
            ),
            Fault::NotFound(Some((line, similarity))) => format!(
                "`old_string` not found in {path}; the most similar text starts at line {line} ({:.0} % alike). Read it there and try again.",
                similarity * 100.0
            ),
            Fault::Ambiguous(lines) => format!(
                "`old_string` matches {} times in {path}; {remedy} (lines {})",
                lines.len(),
                first(lines)
            ),
            Fault::Unlike(lines) => format!(
                "`old_string` not found in {path} exactly; {} places are like it, but not like each other (lines {}). Replace them one by one.",
                lines.len(),
                first(lines)
            ),
        }
    }
}

/// The first of many line numbers.
fn first(lines: &[usize]) -> String {
    const SHOWN: usize = 20;
    let told: Vec<String> = lines.iter().take(SHOWN).map(usize::to_string).collect();
    let rest = if lines.len() > SHOWN { ", …" } else { "" };
    told.join(", ") + rest
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
        let starts = || numbers(text, changes.iter().map(|(place, _)| place.start));
        match changes.as_slice() {
            [] => {}
            [_] => return Ok(apply(text, changes, step)),
            _ if !all => return Err(Fault::Ambiguous(starts())),
            _ if are_the_same(text, &changes) => return Ok(apply(text, changes, step)),
            _ => return Err(Fault::Unlike(starts())),
        }
    }
    Err(Fault::NotFound(nearest(text, old)))
}

/// Whether one text stands in all places, so that replacing all of them is what was meant.
fn are_the_same(text: &str, changes: &[Change]) -> bool {
    let mut texts = changes.iter().map(|(place, _)| &text[place.clone()]);
    let first = texts.next();
    texts.all(|other| Some(other) == first)
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
mod tests;
