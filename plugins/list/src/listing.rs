//! Sorts, cuts and renders entries. Pure.

use floe_tool::output::push_on_one_line;
use floe_tool::workspace::EntryKind;
use std::fmt::Write;

/// Entries of one call.
pub(crate) const PAGE: usize = 1000;

/// One entry, its name relative to the folder that is listed.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) kind: EntryKind,
    pub(crate) name: String,
    pub(crate) size: u64,
}

/// What is shown of a listing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) note: Option<String>,
}

/// The page that starts at entry number `offset`, from 1 on. `complete` is false where more entries exist than were gathered.
pub(crate) fn page(
    mut lines: Vec<Line>,
    offset: u64,
    with_size: bool,
    complete: bool,
) -> Result<Page, String> {
    lines.sort_by(|one, other| one.name.cmp(&other.name));
    let total = lines.len();
    let skipped = usize::try_from(offset.max(1) - 1).unwrap_or(usize::MAX);
    if skipped > 0 && skipped >= total {
        return Err(format!(
            "Offset {offset} is past the end: there are {total} entries."
        ));
    }
    let mut text = String::new();
    for line in lines.iter().skip(skipped).take(PAGE) {
        render(line, with_size, &mut text);
    }
    let last = (skipped + PAGE).min(total);
    let count = |count: usize| match complete {
        true => count.to_string(),
        false => format!("more than {count}"),
    };
    let of = count(total);
    let note = if last < total {
        Some(format!(
            "[entries {}–{last} of {of}; … {} more, continue with offset {}]",
            skipped + 1,
            count(total - last),
            last + 1
        ))
    } else if skipped > 0 || !complete {
        Some(format!("[entries {}–{last} of {of}]", skipped + 1))
    } else {
        None
    };
    Ok(Page { text, note })
}

fn render(line: &Line, with_size: bool, text: &mut String) {
    text.push_str(match line.kind {
        EntryKind::Directory => "dir",
        EntryKind::File => "file",
        EntryKind::Symlink => "link",
        EntryKind::Other => "other",
    });
    text.push('\t');
    push_on_one_line(&line.name, text);
    if with_size && line.kind == EntryKind::File {
        let _ = write!(text, "\t{}", line.size);
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> Line {
        Line {
            kind: EntryKind::File,
            name: name.into(),
            size: 7,
        }
    }

    fn numbered(count: usize) -> Vec<Line> {
        (1..=count)
            .rev()
            .map(|number| file(&format!("{number:05}")))
            .collect()
    }

    #[test]
    fn entries_are_kind_tab_name_sorted_by_name() {
        let lines = vec![
            file("b.txt"),
            Line {
                kind: EntryKind::Directory,
                name: "src".into(),
                size: 0,
            },
            Line {
                kind: EntryKind::Symlink,
                name: "a".into(),
                size: 0,
            },
            Line {
                kind: EntryKind::Other,
                name: "pipe".into(),
                size: 0,
            },
        ];
        let page = page(lines, 1, false, true).unwrap();
        assert_eq!(
            page,
            Page {
                text: "link\ta\nfile\tb.txt\nother\tpipe\ndir\tsrc\n".into(),
                note: None
            }
        );
    }

    #[test]
    fn the_cut_comes_after_sorting_and_is_noted_with_the_offset_to_go_on_with() {
        let first = page(numbered(1001), 1, false, true).unwrap();
        assert_eq!(first.text.lines().count(), 1000);
        assert!(first.text.starts_with("file\t00001\n"));
        assert_eq!(
            first.note.as_deref(),
            Some("[entries 1–1000 of 1001; … 1 more, continue with offset 1001]")
        );
        let second = page(numbered(1001), 1001, false, true).unwrap();
        assert_eq!(second.text, "file\t01001\n");
        assert_eq!(second.note.as_deref(), Some("[entries 1001–1001 of 1001]"));
    }

    #[test]
    fn exactly_a_page_has_no_note() {
        assert_eq!(page(numbered(1000), 1, false, true).unwrap().note, None);
    }

    #[test]
    fn an_offset_past_the_end_is_refused() {
        assert_eq!(
            page(numbered(3), 4, false, true),
            Err("Offset 4 is past the end: there are 3 entries.".into())
        );
        assert_eq!(page(Vec::new(), 1, false, true).unwrap().text, "");
    }

    #[test]
    fn control_characters_in_a_name_cannot_forge_a_line() {
        let page = page(vec![file("a\nfile\tb"), file("é\u{1b}[2J")], 1, false, true).unwrap();
        assert_eq!(page.text, "file\ta\\nfile\\tb\nfile\té\\u{1b}[2J\n");
    }

    #[test]
    fn sizes_are_a_third_column_of_files_where_asked_for() {
        let lines = vec![
            file("a"),
            Line {
                kind: EntryKind::Directory,
                name: "b".into(),
                size: 4096,
            },
        ];
        assert_eq!(
            page(lines, 1, true, true).unwrap().text,
            "file\ta\t7\ndir\tb\n"
        );
    }
}
