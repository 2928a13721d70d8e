//! The files that are changed, on a desk: edits follow each other there, and only what comes out is staged. Pure but for reading.

use std::collections::BTreeMap;

use floe_editing::{Document, Opened, replace};
use floe_tool::Failure;

use crate::Edit;
use crate::hunks;
use crate::patch::{Action, Hunk, Section};

/// Edits of one call (spec/coding-tools.md 1.7).
const EDITS: usize = 50;

/// Files by the path they are called by, without what means nothing in it.
pub(crate) struct Desk<Read> {
    read: Read,
    files: BTreeMap<String, File>,
    /// The path of each file by every name that it was called by.
    names: BTreeMap<String, String>,
    told: Vec<String>,
    /// What names files now.
    now: String,
}

#[derive(Debug)]
struct File {
    /// What named it first: an edit or a line of the patch.
    named_by: String,
    /// Places of it that have other text now.
    replacements: usize,
    /// As it is in the Workspace; none where it is not.
    original: Option<Opened>,
    /// As it is to be; none where it is not to be.
    document: Option<Document>,
    /// Where the contents come from, if they were moved here.
    moved_from: Option<String>,
    /// Where they went.
    moved_to: Option<String>,
}

/// What is staged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Work<'d> {
    Create {
        path: &'d str,
        bytes: Vec<u8>,
    },
    Replace {
        path: &'d str,
        bytes: Vec<u8>,
        sha256: &'d str,
    },
    Delete {
        path: &'d str,
        sha256: &'d str,
    },
    Move {
        from: &'d str,
        to: &'d str,
        sha256: &'d str,
    },
    /// New contents of what was moved there.
    Rewrite {
        path: &'d str,
        bytes: Vec<u8>,
    },
}

impl Work<'_> {
    /// The file that it is about; the place that a moved one comes from.
    pub(crate) fn path(&self) -> &str {
        match self {
            Work::Create { path, .. }
            | Work::Replace { path, .. }
            | Work::Delete { path, .. }
            | Work::Rewrite { path, .. } => path,
            Work::Move { from, .. } => from,
        }
    }
}

impl<Read: Fn(&str) -> Result<Opened, Failure>> Desk<Read> {
    pub(crate) fn new(read: Read) -> Desk<Read> {
        Desk {
            read,
            files: BTreeMap::new(),
            names: BTreeMap::new(),
            told: Vec::new(),
            now: String::new(),
        }
    }

    /// What named a file first.
    pub(crate) fn named_by(&self, path: &str) -> &str {
        self.files.get(path).map_or("", |file| &file.named_by)
    }

    /// What to tell of the changes.
    pub(crate) fn told(&self) -> &[String] {
        &self.told
    }

    /// How many places of a file have other text.
    pub(crate) fn replacements(&self, path: &str) -> Option<usize> {
        let file = self.files.get(path)?;
        Some(file.replacements).filter(|count| *count > 0)
    }

    /// What is to be staged, in an order in which it can be.
    pub(crate) fn works(&self) -> Vec<Work<'_>> {
        let mut works = Vec::new();
        let mut rewritten = Vec::new();
        for (path, file) in &self.files {
            match (&file.original, &file.document) {
                (Some(original), None) => match &file.moved_to {
                    Some(to) if self.is_move(path, to) => works.push(Work::Move {
                        from: path,
                        to,
                        sha256: &original.sha256,
                    }),
                    _ => works.push(Work::Delete {
                        path,
                        sha256: &original.sha256,
                    }),
                },
                (None, Some(document)) => match self.origin(path, file) {
                    Some(origin) if origin.document == *document => {}
                    Some(_) => rewritten.push(Work::Rewrite {
                        path,
                        bytes: document.encode(),
                    }),
                    None => works.push(Work::Create {
                        path,
                        bytes: document.encode(),
                    }),
                },
                (Some(original), Some(document)) if original.document != *document => {
                    works.push(Work::Replace {
                        path,
                        bytes: document.encode(),
                        sha256: &original.sha256,
                    });
                }
                _ => {}
            }
        }
        works.append(&mut rewritten);
        works
    }

    /// Whether one file goes to the place of another by a move: nothing stays where it was and nothing was where it goes. Anything else that a
    /// patch may do to the two, such as a new file in the old place, is made of whole files.
    fn is_move(&self, from: &str, to: &str) -> bool {
        let (Some(source), Some(target)) = (self.files.get(from), self.files.get(to)) else {
            return false;
        };
        source.document.is_none()
            && source.moved_to.as_deref() == Some(to)
            && target.original.is_none()
            && target.document.is_some()
            && target.moved_from.as_deref() == Some(from)
    }

    fn origin(&self, path: &str, file: &File) -> Option<&Opened> {
        let from = file.moved_from.as_ref()?;
        let source = self.files.get(from)?.original.as_ref();
        source.filter(|_| self.is_move(from, path))
    }

    /// The path by which a file is kept, which is read where it is named for the first time.
    fn key(&mut self, name: &str) -> Result<String, String> {
        if let Some(key) = self.names.get(name) {
            return Ok(key.clone());
        }
        let (key, original) = match (self.read)(name) {
            Ok(opened) => (opened.path.clone(), Some(opened)),
            Err(failure) if failure.code == "not-found" => (plain(name), None),
            Err(failure) => return Err(unread(name, &failure)),
        };
        self.names.insert(name.to_owned(), key.clone());
        let named_by = self.now.clone();
        self.files.entry(key.clone()).or_insert_with(|| File {
            named_by,
            replacements: 0,
            document: original.as_ref().map(|opened| opened.document.clone()),
            original,
            moved_from: None,
            moved_to: None,
        });
        Ok(key)
    }

    /// The file of a name.
    fn file(&mut self, name: &str) -> Result<&mut File, String> {
        let key = self.key(name)?;
        self.files
            .get_mut(&key)
            .ok_or_else(|| format!("\"{name}\" does not exist."))
    }

    /// The text of a file that is there, and how many places of it were replaced.
    fn document(&mut self, path: &str) -> Result<(&mut Document, &mut usize), String> {
        let file = self.file(path)?;
        match &mut file.document {
            Some(document) => Ok((document, &mut file.replacements)),
            None => Err(format!("failed to resolve {path}: it does not exist.")),
        }
    }

    fn create(&mut self, path: &str, text: &str) -> Result<(), String> {
        let file = self.file(path)?;
        if file.document.is_some() {
            return Err(format!("\"{path}\" exists already"));
        }
        file.document = match &file.original {
            // Deleted before, in the same call.
            Some(opened) => Some(opened.document.with_text(text.to_owned())),
            None => Document::decode(text.as_bytes()).ok(),
        };
        match file.document {
            Some(_) => Ok(()),
            None => Err(format!("the text of {path} holds NUL")),
        }
    }

    fn delete(&mut self, path: &str) -> Result<(), String> {
        let file = self.file(path)?;
        if file.document.take().is_none() {
            return Err(format!("failed to resolve {path}: it does not exist."));
        }
        Ok(())
    }

    fn move_to(&mut self, path: &str, to: &str) -> Result<(), String> {
        if self.file(to)?.document.is_some() {
            return Err(format!("\"{to}\" exists already"));
        }
        let (from, target) = (self.key(path)?, self.key(to)?);
        let source = self.file(path)?;
        let document = source.document.take();
        source.moved_to = Some(target);
        let destination = self.file(to)?;
        destination.document = document;
        destination.moved_from = Some(from);
        Ok(())
    }
}

/// Makes a list of edits; how many it was.
///
/// # Errors
/// Every edit that cannot be made, by its index.
pub(crate) fn edits<Read: Fn(&str) -> Result<Opened, Failure>>(
    desk: &mut Desk<Read>,
    edits: &[Edit],
    path: Option<&str>,
) -> Result<usize, String> {
    if edits.is_empty() {
        return Err("`edits` array is empty".to_owned());
    }
    if edits.len() > EDITS {
        return Err(format!("Too many edits: {} (max {EDITS})", edits.len()));
    }
    let faults: Vec<String> = edits
        .iter()
        .enumerate()
        .filter_map(|(index, edit)| {
            desk.now = format!("edit[{index}]");
            let made = edit_one(desk, edit, path);
            made.err().map(|fault| format!("{}: {fault}", desk.now))
        })
        .collect();
    if faults.is_empty() {
        Ok(edits.len())
    } else {
        Err(faults.join("\n"))
    }
}

fn edit_one<Read: Fn(&str) -> Result<Opened, Failure>>(
    desk: &mut Desk<Read>,
    edit: &Edit,
    path: Option<&str>,
) -> Result<(), String> {
    let path = edit
        .path
        .as_deref()
        .or(path)
        .filter(|path| !path.is_empty());
    let path = path.ok_or("missing `path`")?;
    if edit.old_string.is_empty() {
        if desk.file(path)?.document.is_some() {
            return Err(format!(
                "`old_string` must not be empty: {path} exists already"
            ));
        }
        return desk.create(path, &edit.new_string);
    }
    let all = edit.replace_all.unwrap_or(false);
    let (document, replacements) = desk.document(path)?;
    let replaced = replace(&document.text, &edit.old_string, &edit.new_string, all)
        .map_err(|fault| fault.told(path, "pass `replace_all`"))?;
    document.text = replaced.text;
    *replacements += replaced.count;
    if let Some(how) = replaced.step.told() {
        desk.told.push(format!("{}: {how}", desk.now));
    }
    Ok(())
}

/// Makes the sections of a patch; how many hunks and whole files it was.
///
/// # Errors
/// Everything that cannot be made, by its line of the patch.
pub(crate) fn patch<Read: Fn(&str) -> Result<Opened, Failure>>(
    desk: &mut Desk<Read>,
    sections: &[Section],
) -> Result<usize, String> {
    let mut count = 0;
    let mut faults = Vec::new();
    for section in sections {
        desk.now = format!("patch line {}", section.line);
        let path = section.path.as_str();
        let one = |fault: String| vec![format!("patch line {}: {fault}", section.line)];
        let made = match &section.action {
            Action::Add { contents } => desk.create(path, contents).map_err(one),
            Action::Delete => desk.delete(path).map_err(one),
            Action::Update { move_to, hunks } => {
                count += hunks.len().saturating_sub(1);
                update(desk, path, hunks, one).and_then(|()| match move_to {
                    Some(to) => desk.move_to(path, to).map_err(one),
                    None => Ok(()),
                })
            }
        };
        count += 1;
        faults.extend(made.err().into_iter().flatten());
    }
    if faults.is_empty() {
        Ok(count)
    } else {
        Err(faults.join("\n"))
    }
}

fn update<Read: Fn(&str) -> Result<Opened, Failure>>(
    desk: &mut Desk<Read>,
    path: &str,
    hunks: &[Hunk],
    one: impl Fn(String) -> Vec<String>,
) -> Result<(), Vec<String>> {
    let (document, replacements) = desk.document(path).map_err(one)?;
    let applied = hunks::apply(path, &document.text, hunks)?;
    document.text = applied.text;
    *replacements += hunks.len();
    desk.told.extend(applied.remarks);
    Ok(())
}

/// Why a file could not be read.
fn unread(path: &str, failure: &Failure) -> String {
    let explanation = failure.explanation();
    match failure.code.as_str() {
        "outside-workspace" => format!("path not allowed: {path}. {explanation}"),
        "too-large" => explanation,
        _ => format!("failed to read {path}: {explanation}"),
    }
}

/// The path of a file that is not there, without what means nothing in it, so that two names of one file are one.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path
        .strip_prefix("/workspace/")
        .unwrap_or(path)
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
    {
        match (part, parts.last()) {
            ("..", Some(last)) if *last != ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    let root = if path.starts_with('/') && !path.starts_with("/workspace/") {
        "/"
    } else {
        ""
    };
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::parse;

    fn read(path: &str) -> Result<Opened, Failure> {
        match path.trim_start_matches("./") {
            "a.txt" | "/host/a.txt" => Ok(Opened {
                path: "a.txt".into(),
                document: Document::decode(b"one\ntwo\n").unwrap(),
                sha256: "aa".into(),
            }),
            "b.txt" => Ok(Opened {
                path: "b.txt".into(),
                document: Document::decode(b"three\n").unwrap(),
                sha256: "bb".into(),
            }),
            _ => Err(Failure::new("not-found", "none")),
        }
    }

    fn edit(path: &str, old: &str, new: &str) -> Edit {
        Edit {
            path: Some(path.into()),
            old_string: old.into(),
            new_string: new.into(),
            replace_all: None,
        }
    }

    fn edited(list: &[Edit]) -> Result<Vec<(String, String)>, String> {
        let mut desk = Desk::new(read);
        edits(&mut desk, list, Some("a.txt"))?;
        Ok(desk
            .works()
            .into_iter()
            .map(|work| match work {
                Work::Create { path, bytes } => (format!("create {path}"), text(bytes)),
                Work::Replace { path, bytes, .. } => (format!("replace {path}"), text(bytes)),
                Work::Rewrite { path, bytes } => (format!("rewrite {path}"), text(bytes)),
                Work::Delete { path, sha256 } => (format!("delete {path}"), sha256.to_owned()),
                Work::Move { from, to, sha256 } => (format!("move {from} {to}"), sha256.to_owned()),
            })
            .collect())
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn edits_of_one_file_follow_each_other_by_any_of_its_names() {
        let list = [
            edit("a.txt", "one", "1"),
            edit("./a.txt", "1\ntwo", "2"),
            edit("/host/a.txt", "2", "two"),
            edit("b.txt", "three", "3"),
        ];
        assert_eq!(
            edited(&list).unwrap(),
            [
                ("replace a.txt".to_owned(), "two\n".to_owned()),
                ("replace b.txt".to_owned(), "3\n".to_owned())
            ]
        );
    }

    #[test]
    fn an_edit_without_a_path_takes_that_of_the_call_and_its_own_wins() {
        let unnamed = Edit {
            path: None,
            ..edit("", "one", "1")
        };
        let list = [unnamed.clone(), edit("b.txt", "three", "3")];
        assert_eq!(edited(&list).unwrap().len(), 2);
        let mut desk = Desk::new(read);
        let fault = edits(&mut desk, &[unnamed], None).unwrap_err();
        assert_eq!(fault, "edit[0]: missing `path`");
    }

    #[test]
    fn an_empty_old_text_makes_a_file_that_is_not_there_once() {
        assert_eq!(
            edited(&[edit("new", "", "x")]).unwrap(),
            [("create new".to_owned(), "x".to_owned())]
        );
        let fault = edited(&[
            edit("new", "", "x"),
            edit("./d/../new", "", "y"),
            edit("a.txt", "", "z"),
        ])
        .unwrap_err();
        assert_eq!(
            fault,
            "edit[1]: `old_string` must not be empty: ./d/../new exists already\nedit[2]: `old_string` must not be empty: a.txt exists already"
        );
    }

    #[test]
    fn every_edit_that_fails_is_told_by_its_index() {
        let list = [
            edit("a.txt", "nowhere at all", "x"),
            edit("b.txt", "e", "x"),
            edit("none", "a", "b"),
        ];
        assert_eq!(
            edited(&list).unwrap_err(),
            "edit[0]: `old_string` not found in a.txt; read the file and copy the text as it stands there.\n\
             edit[1]: `old_string` matches 2 times in b.txt; pass `replace_all` (lines 1, 1)\n\
             edit[2]: failed to resolve none: it does not exist."
        );
        assert_eq!(edited(&[]).unwrap_err(), "`edits` array is empty");
        assert_eq!(
            edited(&vec![edit("a.txt", "a", "b"); 51]).unwrap_err(),
            "Too many edits: 51 (max 50)"
        );
    }

    #[test]
    fn a_patch_adds_deletes_updates_and_moves() {
        let text = "*** Begin Patch\n*** Add File: c\n+x\n*** Delete File: b.txt\n*** Update File: a.txt\n*** Move to: d/a.txt\n@@\n-two\n+2\n*** End Patch";
        let mut desk = Desk::new(read);
        assert_eq!(patch(&mut desk, &parse(text).unwrap()).unwrap(), 3);
        assert_eq!(desk.named_by("a.txt"), "patch line 5");
        assert_eq!(
            desk.works(),
            [
                Work::Move {
                    from: "a.txt",
                    to: "d/a.txt",
                    sha256: "aa"
                },
                Work::Delete {
                    path: "b.txt",
                    sha256: "bb"
                },
                Work::Create {
                    path: "c",
                    bytes: b"x\n".to_vec()
                },
                Work::Rewrite {
                    path: "d/a.txt",
                    bytes: b"one\n2\n".to_vec()
                },
            ]
        );
    }

    #[test]
    fn what_was_moved_is_kept_whatever_takes_its_place_or_moves_it_on() {
        let works = |body: &str| {
            let text = format!("*** Begin Patch\n{body}*** End Patch");
            let mut desk = Desk::new(read);
            patch(&mut desk, &parse(&text).unwrap()).unwrap();
            let told = |work: &Work<'_>| format!("{work:?}");
            desk.works().iter().map(told).collect::<Vec<_>>()
        };
        let replace = r#"Replace { path: "a.txt", bytes: [120, 10], sha256: "aa" }"#;
        let create = |path: &str| {
            format!(r#"Create {{ path: "{path}", bytes: [111, 110, 101, 10, 50, 10] }}"#)
        };
        let delete = r#"Delete { path: "a.txt", sha256: "aa" }"#;
        let move_a = "*** Update File: a.txt\n*** Move to: c\n@@\n-two\n+2\n";
        assert_eq!(
            works(&format!("{move_a}*** Add File: a.txt\n+x\n")),
            [replace, &create("c")]
        );
        // Its contents are still those that it had in the old place.
        let kept =
            works("*** Update File: a.txt\n*** Move to: c\n@@\n one\n*** Add File: a.txt\n+x\n");
        let whole = r#"Create { path: "c", bytes: [111, 110, 101, 10, 116, 119, 111, 10] }"#;
        assert_eq!(kept, [replace, whole]);
        let on = "*** Update File: c\n*** Move to: d\n@@\n-2\n+2\n";
        assert_eq!(works(&format!("{move_a}{on}")), [delete, &create("d")]);
        // Into the place of a file that the same patch deletes.
        assert_eq!(
            works(
                "*** Delete File: b.txt\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n-two\n+2\n"
            ),
            [
                delete,
                r#"Replace { path: "b.txt", bytes: [111, 110, 101, 10, 50, 10], sha256: "bb" }"#
            ]
        );
    }

    #[test]
    fn a_patch_that_cannot_be_made_is_not_made_in_part() {
        let text = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Delete File: none\n*** End Patch";
        let fault = patch(&mut Desk::new(read), &parse(text).unwrap()).unwrap_err();
        assert_eq!(
            fault,
            "patch line 2: \"a.txt\" exists already\npatch line 4: failed to resolve none: it does not exist."
        );
    }
}
