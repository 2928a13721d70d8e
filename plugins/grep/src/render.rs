//! Matches as text: `path:line:text`, and `path-line-text` for the lines around them. Pure.

use floe_tool::output::push_on_one_line;

use crate::search::{Match, line_end, line_start, trim_end};

/// A line is shown up to so many bytes around its match.
const LINE_BYTES: usize = 2000;

/// Writes the matches of one file with the lines around them. Groups of lines that do not touch are parted by `--`, as the first of them
/// is from what came before where `is_first` is false.
pub(crate) fn content(
    path: &str,
    data: &str,
    matches: &[Match],
    around: (usize, usize),
    is_first: bool,
    out: &mut String,
) {
    let (before, after) = around;
    let mut shown_to: Option<usize> = None;
    for (index, found) in matches.iter().enumerate() {
        let start = above(data, found.lines.start, before);
        let from = shown_to.map_or(start, |shown| start.max(shown));
        let touches = shown_to.is_some_and(|shown| start <= shown);
        if before + after > 0 && !touches && !(is_first && index == 0) {
            out.push_str("--\n");
        }
        let mut number = found.line - count_lines(data, from, found.lines.start);
        for line in lines(data, from, found.lines.start) {
            push_line(path, number, '-', &data[line.0..line.1], None, out);
            number += 1;
        }
        let end = line_end(data.as_bytes(), found.lines.end);
        let mut at = Some(found.at);
        for line in lines(data, found.lines.start, end) {
            let within = at.take().map(|at| at.saturating_sub(line.0));
            push_line(path, number, ':', &data[line.0..line.1], within, out);
            number += 1;
        }
        let mut stop = below(data, end, after);
        if let Some(next) = matches.get(index + 1) {
            stop = stop.min(next.lines.start);
        }
        for line in lines(data, end, stop) {
            push_line(path, number, '-', &data[line.0..line.1], None, out);
            number += 1;
        }
        shown_to = Some(stop.max(end));
    }
}

fn push_line(path: &str, number: u64, mark: char, text: &str, at: Option<usize>, out: &mut String) {
    push_on_one_line(path, out);
    out.push(mark);
    out.push_str(&number.to_string());
    out.push(mark);
    let (start, end) = window(text, at.unwrap_or(0));
    if start > 0 {
        out.push('…');
    }
    out.push_str(&text[start..end]);
    if end < text.len() {
        out.push('…');
    }
    out.push('\n');
}

/// The part of a long line that holds `at`, with a quarter of it before.
fn window(text: &str, at: usize) -> (usize, usize) {
    if text.len() <= LINE_BYTES {
        return (0, text.len());
    }
    let latest = text.len() - LINE_BYTES;
    let start = text.floor_char_boundary(at.saturating_sub(LINE_BYTES / 4).min(latest));
    (start, text.floor_char_boundary(start + LINE_BYTES))
}

/// The start of the line that is `count` above the one that starts at `start`.
fn above(data: &str, mut start: usize, count: usize) -> usize {
    for _ in 0..count {
        if start == 0 {
            break;
        }
        start = line_start(data.as_bytes(), start - 1);
    }
    start
}

/// The end of the `count` lines from `start` on.
fn below(data: &str, mut start: usize, count: usize) -> usize {
    for _ in 0..count {
        if start == data.len() {
            break;
        }
        start = line_end(data.as_bytes(), start);
    }
    start
}

fn count_lines(data: &str, start: usize, end: usize) -> u64 {
    lines(data, start, end).count() as u64
}

/// The lines from `start`, where one starts, to `end`, where one ends: each from its start to the end of its text.
fn lines(data: &str, start: usize, end: usize) -> impl Iterator<Item = (usize, usize)> {
    let bytes = data.as_bytes();
    let mut at = start;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let stop = line_end(bytes, at);
        let line = (at, trim_end(bytes, at, stop));
        at = stop;
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Pattern, Syntax};

    fn rendered(pattern: &str, text: &str, around: (usize, usize)) -> String {
        let syntax = Syntax {
            multi_line: pattern.contains("\\n"),
            ..Syntax::default()
        };
        let mut matches = Vec::new();
        let take = |found| {
            matches.push(found);
            true
        };
        Pattern::new(pattern, syntax)
            .unwrap()
            .search(text.as_bytes(), take)
            .unwrap();
        let mut out = String::new();
        content("f", text, &matches, around, true, &mut out);
        out
    }

    #[test]
    fn a_match_is_path_line_text() {
        assert_eq!(rendered("a", "xax\nb\r\na\r\n", (0, 0)), "f:1:xax\nf:3:a\n");
        assert_eq!(rendered("a", "a", (0, 0)), "f:1:a\n");
    }

    #[test]
    fn lines_around_are_shown_once_and_groups_that_do_not_touch_are_parted() {
        let text = "1\n2\na\n4\na\n6\n7\n8\n9\na\n";
        assert_eq!(
            rendered("a", text, (1, 1)),
            "f-2-2\nf:3:a\nf-4-4\nf:5:a\nf-6-6\n--\nf-9-9\nf:10:a\n"
        );
        assert_eq!(
            rendered("a", text, (0, 2)),
            "f:3:a\nf-4-4\nf:5:a\nf-6-6\nf-7-7\n--\nf:10:a\n"
        );
        assert_eq!(
            rendered("a", text, (9, 0)),
            "f-1-1\nf-2-2\nf:3:a\nf-4-4\nf:5:a\nf-6-6\nf-7-7\nf-8-8\nf-9-9\nf:10:a\n"
        );
    }

    #[test]
    fn a_match_over_lines_shows_all_of_them() {
        assert_eq!(
            rendered("a\\nb", "x\na\nb\ny\n", (1, 1)),
            "f-1-x\nf:2:a\nf:3:b\nf-4-y\n"
        );
    }

    #[test]
    fn a_long_line_is_shown_around_its_match() {
        let long = format!("{}é{}", "x".repeat(10_000), "y".repeat(10_000));
        let shown = rendered("é", &long, (0, 0));
        assert!(shown.starts_with("f:1:…x") && shown.ends_with("y…\n"));
        assert!(shown.contains('é') && shown.len() < LINE_BYTES + 20);
        let end = format!("{}z", "x".repeat(10_000));
        assert!(rendered("z", &end, (0, 0)).ends_with("xz\n"));
    }

    #[test]
    fn a_name_cannot_break_its_line() {
        let mut out = String::new();
        push_on_one_line("a\nb", &mut out);
        assert_eq!(out, "a\\nb");
    }
}
