//! The text form of a patch: parsed, not yet applied. Pure.

/// More hunks than this are refused (spec/coding-tools.md, appendix A).
const HUNKS: usize = 256;

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    /// The line of the patch where it starts, from 1 on.
    pub(crate) line: usize,
    pub(crate) path: String,
    pub(crate) action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Add {
        contents: String,
    },
    Delete,
    Update {
        move_to: Option<String>,
        hunks: Vec<Hunk>,
    },
}

/// One place of a file that changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    /// The line of the patch where it starts, from 1 on.
    pub(crate) line: usize,
    /// Lines of the file somewhere before it, one behind the other.
    pub(crate) anchors: Vec<String>,
    pub(crate) lines: Vec<Change>,
    /// Its last line is the last of the file.
    pub(crate) at_end: bool,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Keep(String),
    Remove(String),
    Add(String),
}

/// Parses a patch.
///
/// # Errors
/// What is wrong, with the line of the patch.
pub(crate) fn parse(text: &str) -> Result<Vec<Section>, String> {
    let mut lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.strip_suffix('\r').unwrap_or(line)))
        .collect();
    let is_blank =
        |line: Option<&(usize, &str)>| line.is_some_and(|(_, line)| line.trim().is_empty());
    while is_blank(lines.last()) {
        lines.pop();
    }
    let skipped = lines
        .iter()
        .take_while(|(_, line)| line.trim().is_empty())
        .count();
    let lines = &lines[skipped..];
    let (Some((first, begin)), Some((last, end))) = (lines.first(), lines.last()) else {
        return Err("The patch is empty.".to_owned());
    };
    if begin.trim() != "*** Begin Patch" {
        return Err(format!(
            "patch line {first}: expected `*** Begin Patch`, found `{}`",
            shown(begin)
        ));
    }
    if end.trim() != "*** End Patch" || lines.len() < 2 {
        return Err(format!(
            "patch line {last}: expected `*** End Patch`, found `{}`",
            shown(end)
        ));
    }
    let sections = Parser {
        lines: &lines[1..lines.len() - 1],
        hunks: 0,
    }
    .sections()?;
    if sections.is_empty() {
        return Err("The patch changes nothing: there is no section in it.".to_owned());
    }
    Ok(sections)
}

struct Parser<'t> {
    lines: &'t [(usize, &'t str)],
    hunks: usize,
}

impl<'t> Parser<'t> {
    fn sections(mut self) -> Result<Vec<Section>, String> {
        let mut sections = Vec::new();
        while let Some((number, line)) = self.next() {
            if line.trim().is_empty() {
                continue;
            }
            let (path, action) = if let Some(path) = header(line, "*** Add File:") {
                let contents = self.added()?;
                (path, Action::Add { contents })
            } else if let Some(path) = header(line, "*** Delete File:") {
                self.deleted()?;
                (path, Action::Delete)
            } else if let Some(path) = header(line, "*** Update File:") {
                (path, self.update(path.trim(), number)?)
            } else {
                return Err(format!(
                    "patch line {number}: expected `*** Add File:`, `*** Delete File:` or `*** Update File:`, found `{}`",
                    shown(line)
                ));
            };
            sections.push(Section {
                line: number,
                path: named(path, number)?,
                action,
            });
        }
        Ok(sections)
    }

    fn next(&mut self) -> Option<(usize, &'t str)> {
        let (first, rest) = self.lines.split_first()?;
        self.lines = rest;
        Some(*first)
    }

    /// The next line, unless a section starts there.
    fn next_of_section(&mut self) -> Option<(usize, &'t str)> {
        let (_, line) = self.lines.first()?;
        let starts = ["*** Add File:", "*** Delete File:", "*** Update File:"];
        if starts.iter().any(|start| line.starts_with(start)) {
            return None;
        }
        self.next()
    }

    fn added(&mut self) -> Result<String, String> {
        let mut contents = String::new();
        while let Some((number, line)) = self.next_of_section() {
            let Some(text) = line.strip_prefix('+') else {
                if line.trim().is_empty() {
                    continue;
                }
                return Err(format!(
                    "patch line {number}: a line of a new file must start with +, found `{}`",
                    shown(line)
                ));
            };
            contents.push_str(text);
            contents.push('\n');
        }
        Ok(contents)
    }

    fn deleted(&mut self) -> Result<(), String> {
        while let Some((number, line)) = self.next_of_section() {
            if !line.trim().is_empty() {
                return Err(format!(
                    "patch line {number}: nothing may follow `*** Delete File:` but another section, found `{}`",
                    shown(line)
                ));
            }
        }
        Ok(())
    }

    fn update(&mut self, path: &str, started: usize) -> Result<Action, String> {
        let mut move_to = None;
        let mut hunks: Vec<Hunk> = Vec::new();
        while let Some((number, line)) = self.next_of_section() {
            if let Some(to) = header(line, "*** Move to:") {
                if !hunks.is_empty() || move_to.is_some() {
                    return Err(format!(
                        "patch line {number}: `*** Move to:` must follow `*** Update File:`"
                    ));
                }
                move_to = Some(named(to, number)?);
            } else if line.trim_end() == "*** End of File" {
                match hunks.last_mut() {
                    Some(hunk) => hunk.at_end = true,
                    None => {
                        return Err(format!(
                            "patch line {number}: `*** End of File` before any hunk"
                        ));
                    }
                }
            } else if let Some(rest) = line.strip_prefix("@@") {
                match hunks.last_mut() {
                    // The line before was one, too: it leads to this one.
                    Some(hunk) if hunk.lines.is_empty() && !hunk.anchors.is_empty() => {
                        hunk.anchors.extend(anchor(rest));
                    }
                    _ => {
                        self.count(number)?;
                        hunks.push(Hunk {
                            line: number,
                            anchors: anchor(rest).into_iter().collect(),
                            ..Hunk::default()
                        });
                    }
                }
            } else {
                let change = change(line).ok_or_else(|| {
                    format!(
                        "patch line {number}: a line of a hunk must start with a space, - or +, found `{}`",
                        shown(line)
                    )
                })?;
                if hunks.last().is_none_or(|hunk| hunk.at_end) {
                    self.count(number)?;
                    hunks.push(Hunk {
                        line: number,
                        ..Hunk::default()
                    });
                }
                if let Some(hunk) = hunks.last_mut() {
                    hunk.lines.push(change);
                }
            }
        }
        // Blank lines before the next section belong to nothing.
        for hunk in &mut hunks {
            let is_blank = |change: Option<&Change>| matches!(change, Some(Change::Keep(text)) if text.is_empty());
            let changes = hunk
                .lines
                .iter()
                .any(|change| !matches!(change, Change::Keep(_)));
            if changes && self.lines.is_empty() && is_blank(hunk.lines.last()) {
                hunk.lines.pop();
            }
        }
        if let Some(hunk) = hunks.iter().find(|hunk| hunk.lines.is_empty()) {
            return Err(format!("patch line {}: the hunk is empty", hunk.line));
        }
        if hunks.is_empty() && move_to.is_none() {
            return Err(format!(
                "patch line {started}: the update of {path} changes nothing"
            ));
        }
        Ok(Action::Update { move_to, hunks })
    }

    fn count(&mut self, line: usize) -> Result<(), String> {
        self.hunks += 1;
        if self.hunks > HUNKS {
            return Err(format!("patch line {line}: more than {HUNKS} hunks"));
        }
        Ok(())
    }
}

fn header<'t>(line: &'t str, start: &str) -> Option<&'t str> {
    line.strip_prefix(start)
}

fn named(path: &str, line: usize) -> Result<String, String> {
    match path.trim() {
        "" => Err(format!("patch line {line}: a path is missing")),
        path => Ok(path.to_owned()),
    }
}

/// What follows `@@`; the ranges of a unified diff (`-1,3 +1,4 @@ text`) say nothing here but their text.
fn anchor(rest: &str) -> Option<String> {
    let rest = rest.trim();
    let text = match rest
        .strip_prefix('-')
        .and_then(|ranges| ranges.split_once("@@"))
    {
        Some((_, text)) => text.trim(),
        None => rest.strip_suffix("@@").unwrap_or(rest).trim(),
    };
    (!text.is_empty()).then(|| text.to_owned())
}

fn change(line: &str) -> Option<Change> {
    let Some(mark) = line.chars().next() else {
        return Some(Change::Keep(String::new()));
    };
    let text = line[mark.len_utf8()..].to_owned();
    match mark {
        ' ' => Some(Change::Keep(text)),
        '-' => Some(Change::Remove(text)),
        '+' => Some(Change::Add(text)),
        _ => None,
    }
}

fn shown(line: &str) -> String {
    line.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(body: &str) -> Result<Vec<Section>, String> {
        parse(&format!("*** Begin Patch\n{body}*** End Patch\n"))
    }

    #[test]
    fn the_four_kinds_of_section_are_understood() {
        let parsed = wrapped(
            "*** Add File: new.txt\n+one\n+\n*** Delete File: old.txt\n*** Update File: a.rs\n*** Move to: b.rs\n@@ fn main() {\n context\n-old\n+new\n*** End of File\n",
        )
        .unwrap();
        assert_eq!(
            parsed,
            [
                Section {
                    line: 2,
                    path: "new.txt".into(),
                    action: Action::Add {
                        contents: "one\n\n".into()
                    },
                },
                Section {
                    line: 5,
                    path: "old.txt".into(),
                    action: Action::Delete,
                },
                Section {
                    line: 6,
                    path: "a.rs".into(),
                    action: Action::Update {
                        move_to: Some("b.rs".into()),
                        hunks: vec![Hunk {
                            line: 8,
                            anchors: vec!["fn main() {".into()],
                            lines: vec![
                                Change::Keep("context".into()),
                                Change::Remove("old".into()),
                                Change::Add("new".into())
                            ],
                            at_end: true,
                        }],
                    },
                },
            ]
        );
    }

    #[test]
    fn a_first_hunk_needs_no_mark_and_ranges_of_a_unified_diff_are_passed_over() {
        assert_eq!(
            anchors("-x\n+y\n@@ -1,3 +1,4 @@ fn b()\n-z\n@@\n-w\n"),
            [vec![], vec!["fn b()"], vec![]]
        );
    }

    #[test]
    fn several_marks_in_a_row_lead_to_one_hunk() {
        assert_eq!(
            anchors("@@ class A\n@@ def b():\n-x\n@@ class C\n-y\n"),
            [vec!["class A", "def b():"], vec!["class C"]]
        );
    }

    /// What leads to each hunk of an update.
    fn anchors(hunks: &str) -> Vec<Vec<String>> {
        let sections = wrapped(&format!("*** Update File: a\n{hunks}")).unwrap();
        let Action::Update { hunks, .. } = &sections[0].action else {
            panic!("an update");
        };
        hunks.iter().map(|hunk| hunk.anchors.clone()).collect()
    }

    #[test]
    fn each_fault_names_its_line() {
        for (body, expected) in [
            ("", "no section"),
            ("nonsense\n", "patch line 2: expected `*** Add File:`"),
            ("*** Add File:\n", "patch line 2: a path is missing"),
            (
                "*** Add File: a\nx\n",
                "patch line 3: a line of a new file must start with +",
            ),
            (
                "*** Delete File: a\n-x\n",
                "patch line 3: nothing may follow `*** Delete File:`",
            ),
            (
                "*** Update File: a\n",
                "patch line 2: the update of a changes nothing",
            ),
            (
                "*** Update File: a\n@@\n",
                "patch line 3: the hunk is empty",
            ),
            (
                "*** Update File: a\n@@\nx\n",
                "patch line 4: a line of a hunk",
            ),
            (
                "*** Update File: a\n-x\n*** Move to: b\n",
                "patch line 4: `*** Move to:`",
            ),
            (
                "*** Update File: a\n*** End of File\n",
                "patch line 3: `*** End of File`",
            ),
        ] {
            let error = wrapped(body).unwrap_err();
            assert!(error.contains(expected), "{body:?}: {error}");
        }
        assert!(parse("").unwrap_err().contains("empty"));
        assert!(
            parse("*** Begin Patch\n")
                .unwrap_err()
                .contains("*** End Patch")
        );
        assert!(
            parse("x\n*** End Patch")
                .unwrap_err()
                .contains("patch line 1")
        );
        let many = "@@\n-x\n".repeat(HUNKS + 1);
        assert!(
            wrapped(&format!("*** Update File: a\n{many}"))
                .unwrap_err()
                .contains("more than 256")
        );
    }

    #[test]
    fn whatever_it_is_it_does_not_panic() {
        for text in [
            "*** Begin Patch\n*** End Patch",
            "*** Begin Patch",
            "é",
            "\n\n",
            "*** Begin Patch\n*** Update File: a\né\n*** End Patch",
        ] {
            let _ = parse(text);
        }
    }
}
