//! Finds where the hunks of a patch belong in a text, and changes it there. Pure.
//!
//! Each hunk is looked for behind the one before. Where its lines are not there exactly, they may differ in space at their ends, in
//! space around them, and in typographic punctuation, if only one place is left then; what was allowed is told. The lines that lead to a
//! hunk are written without what indents them.

use std::borrow::Cow;

use floe_editing::fold;

use crate::patch::{Change, Hunk};

/// What was allowed to differ, by the pass that found a hunk.
const ALLOWED: [Option<&str>; 4] = [
    None,
    Some("matched ignoring space at the ends of lines"),
    Some("matched ignoring space around lines"),
    Some("matched ignoring typographic punctuation"),
];

/// What to do about a hunk that has no place.
const REMEDY: &str = "read it and copy the lines as they stand there, with more around them";

/// A text with its hunks applied, and what to tell of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) text: String,
    pub(crate) remarks: Vec<String>,
}

/// Applies all hunks.
///
/// # Errors
/// Each hunk that has no place, with its line of the patch.
pub(crate) fn apply(path: &str, text: &str, hunks: &[Hunk]) -> Result<Applied, Vec<String>> {
    let is_carriage =
        text.contains('\n') && text.matches('\n').count() == text.matches("\r\n").count();
    let ending = if is_carriage { "\r\n" } else { "\n" };
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let bare: Vec<&str> = lines.iter().map(|line| without_ending(line)).collect();
    let mut out = String::with_capacity(text.len());
    let (mut done, mut remarks, mut faults) = (0, Vec::new(), Vec::new());
    for hunk in hunks {
        let (at, allowed) = match place(&bare, done, hunk) {
            Ok(found) => found,
            Err(reason) => {
                faults.push(format!(
                    "patch line {}: {reason} in {path}; {REMEDY}",
                    hunk.line
                ));
                continue;
            }
        };
        if let Some(allowed) = allowed {
            remarks.push(format!("patch line {}: {allowed}", hunk.line));
        }
        lines[done..at].iter().for_each(|line| out.push_str(line));
        done = at;
        for change in &hunk.lines {
            match change {
                // What stays is the file's, not the patch's idea of it.
                Change::Keep(_) => {
                    out.push_str(lines[done]);
                    done += 1;
                }
                Change::Remove(_) => done += 1,
                Change::Add(line) => {
                    if !out.is_empty() && !out.ends_with('\n') {
                        out.push_str(ending);
                    }
                    out.push_str(line);
                    out.push_str(ending);
                }
            }
        }
        let is_last = done == lines.len();
        let had_ending = lines.last().is_none_or(|line| line.ends_with('\n'));
        if is_last && !had_ending && out.ends_with(ending) {
            // A file without a final line ending stays one.
            out.truncate(out.len() - ending.len());
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    lines[done..].iter().for_each(|line| out.push_str(line));
    Ok(Applied { text: out, remarks })
}

/// Where a hunk belongs, at or behind line `from`, and what was allowed to differ.
fn place(
    lines: &[&str],
    from: usize,
    hunk: &Hunk,
) -> Result<(usize, Option<&'static str>), String> {
    let mut from = from;
    for anchor in &hunk.anchors {
        from = behind(lines, from, anchor).ok_or_else(|| {
            format!("the line `{anchor}` was not found, or not in one place only,")
        })?;
    }
    let old: Vec<&str> = hunk
        .lines
        .iter()
        .filter_map(|change| match change {
            Change::Keep(line) | Change::Remove(line) => Some(line.as_str()),
            Change::Add(_) => None,
        })
        .collect();
    if old.is_empty() {
        // Nothing says where: behind the anchor, else at the end.
        let at = if hunk.anchors.is_empty() {
            lines.len()
        } else {
            from
        };
        return Ok((at, None));
    }
    let found = seek(lines, from, &old, hunk.at_end).or_else(|| {
        // Some repeat the line that leads to a hunk as its first one.
        let led = from.checked_sub(1).filter(|_| !hunk.anchors.is_empty())?;
        let end = lines.len().min(led + old.len());
        seek(&lines[..end], led, &old, false)
    });
    let (at, pass) = found.ok_or_else(|| {
        let first = old
            .iter()
            .find(|line| !line.trim().is_empty())
            .unwrap_or(&old[0]);
        format!("the lines from `{first}` on were not found, or not in one place only,")
    })?;
    Ok((at, ALLOWED[pass]))
}

/// Behind the first line that is the anchor but for what indents it; else behind the only one that differs in punctuation.
fn behind(lines: &[&str], from: usize, anchor: &str) -> Option<usize> {
    let rest = lines.iter().enumerate().skip(from);
    let is_same = |line: &str| line.trim() == anchor;
    if let Some((at, _)) = rest.clone().find(|(_, line)| is_same(line)) {
        return Some(at + 1);
    }
    let anchor = plain(anchor);
    let mut found = rest.filter(|(_, line)| plain(line) == anchor);
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Some(at + 1),
        _ => None,
    }
}

/// The first place where `wanted` is, with the pass that found it. A pass that lets lines differ counts only where it finds one place.
fn seek(lines: &[&str], from: usize, wanted: &[&str], at_end: bool) -> Option<(usize, usize)> {
    let last = lines.len().checked_sub(wanted.len())?;
    let passes: [fn(&str) -> Cow<'_, str>; 4] = [
        |line| Cow::Borrowed(line),
        |line| Cow::Borrowed(line.trim_end()),
        |line| Cow::Borrowed(line.trim()),
        |line| Cow::Owned(plain(line)),
    ];
    for (pass, plain) in passes.into_iter().enumerate() {
        let wanted: Vec<Cow<'_, str>> = wanted.iter().map(|line| plain(line)).collect();
        let is_at = |at: &usize| {
            lines[*at..*at + wanted.len()]
                .iter()
                .zip(&wanted)
                .all(|(line, wanted)| plain(line) == *wanted)
        };
        if at_end && last >= from && is_at(&last) {
            return Some((last, pass));
        }
        let mut found = (from..=last).filter(is_at);
        match (found.next(), pass > 0 && found.next().is_some()) {
            (Some(at), false) => return Some((at, pass)),
            (Some(_), true) => return None,
            (None, _) => {}
        }
    }
    None
}

/// A line without space around it and without typographic punctuation.
fn plain(line: &str) -> String {
    line.trim().chars().map(fold).collect()
}

fn without_ending(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::{Action, parse};

    fn patched(text: &str, body: &str) -> Result<Applied, Vec<String>> {
        let patch = format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch");
        let sections = parse(&patch).unwrap();
        let Action::Update { hunks, .. } = &sections[0].action else {
            panic!("an update");
        };
        apply("f", text, hunks)
    }

    fn text(text: &str, body: &str) -> String {
        patched(text, body).unwrap().text
    }

    #[test]
    fn hunks_change_their_places_one_behind_the_other() {
        let before = "a\nb\nc\na\nb\nc\n";
        assert_eq!(
            text(before, "@@\n a\n-b\n+B\n@@\n a\n-b\n"),
            "a\nB\nc\na\nc\n"
        );
        assert_eq!(text(before, "@@ c\n a\n-b\n+B\n"), "a\nb\nc\na\nB\nc\n");
        assert_eq!(
            text(before, "-c\n+end\n*** End of File\n"),
            "a\nb\nc\na\nb\nend\n"
        );
    }

    #[test]
    fn lines_lead_to_a_hunk_one_behind_the_other_whatever_indents_them() {
        let before =
            "class A:\n    def run():\n        pass\nclass B:\n    def run():\n        pass\n";
        assert_eq!(
            text(
                before,
                "@@ class B:\n@@ def run():\n-        pass\n+        go()\n"
            ),
            "class A:\n    def run():\n        pass\nclass B:\n    def run():\n        go()\n"
        );
        assert_eq!(text("b\na\nx\n", "@@ a\n a\n-x\n+y\n"), "b\na\ny\n");
        assert_eq!(
            text("say(“a”)\nx\n", "@@ say(\"a\")\n-x\n+y\n"),
            "say(“a”)\ny\n"
        );
        assert!(patched("‘a’\n‘a’\nx\n", "@@ 'a'\n-x\n+y\n").is_err());
    }

    #[test]
    fn lines_without_old_ones_go_behind_the_anchor_or_to_the_end() {
        assert_eq!(text("a\nb\n", "@@ a\n+x\n"), "a\nx\nb\n");
        assert_eq!(text("a\nb\n", "+x\n"), "a\nb\nx\n");
        assert_eq!(text("", "+x\n"), "x\n");
    }

    #[test]
    fn line_endings_and_a_missing_last_one_are_kept() {
        assert_eq!(text("a\r\nb\r\n", " a\n-b\n+c\n+d\n"), "a\r\nc\r\nd\r\n");
        assert_eq!(text("a\r\nb\n", " a\n-b\n+c\n"), "a\r\nc\n");
        assert_eq!(text("a\nb", "-b\n+c\n"), "a\nc");
        assert_eq!(text("a\nb", " b\n+c\n"), "a\nb\nc");
    }

    #[test]
    fn lines_may_differ_where_one_place_is_left_and_that_is_told() {
        let applied = patched("x\n    say(“hi”);  \n", "-say(\"hi\");\n+bye();\n").unwrap();
        assert_eq!(applied.text, "x\nbye();\n");
        assert_eq!(
            applied.remarks,
            ["patch line 3: matched ignoring typographic punctuation"]
        );
        assert!(patched("  a\n\n    a\n", "-a\n+b\n").is_err());
        let kept = patched("  a\nb\n", " a\n-b\n+c\n").unwrap();
        assert_eq!(kept.text, "  a\nc\n");
    }

    #[test]
    fn every_hunk_without_a_place_is_told_with_its_line() {
        let faults = patched("a\n", "@@\n-x\n@@ nowhere\n-a\n").unwrap_err();
        assert_eq!(
            faults,
            [
                "patch line 3: the lines from `x` on were not found, or not in one place only, in f; read it and copy the lines as they stand there, with more around them",
                "patch line 5: the line `nowhere` was not found, or not in one place only, in f; read it and copy the lines as they stand there, with more around them"
            ]
        );
    }
}
