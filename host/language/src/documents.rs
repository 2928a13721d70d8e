//! The files that a server has open, kept as they are on disk: read through the Workspace at every question, never from anywhere else.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use floe_workspace::{Kind as EntryKind, WalkOptions, Workspace, WorkspaceError};

use crate::error::QueryError;
use crate::text::Text;

/// The largest file that a server is shown.
pub(crate) const LARGEST_FILE: u32 = 4 * 1024 * 1024;
/// Files that are open at once; the one that nobody asked about for longest is closed for the next.
const MOST_OPEN: usize = 32;
/// Memory for them.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// Files whose changes are noticed.
const MOST_WATCHED: usize = 20_000;

/// What a file looked like, as far as a look at its folder tells.
type Stamp = (u64, i64);

/// A file that the server has open.
#[derive(Debug)]
struct Open {
    language: String,
    version: i32,
    text: Arc<Text>,
    /// When it was last asked about, counted in questions.
    used: u64,
    /// How many changes the server had been told of when it was shown this version.
    changes: u64,
}

/// What the server has to be told so that it sees what is on disk.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Open {
        path: String,
        language: String,
        version: i32,
        text: Arc<Text>,
    },
    Change {
        path: String,
        version: i32,
        text: Arc<Text>,
    },
    Close {
        path: String,
    },
    /// Files that it may have read itself have been made, changed or removed: numbers of the protocol.
    Watched(Vec<(String, u8)>),
}

/// The files that a server has open, and the others as they were at the last question.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    open: HashMap<String, Open>,
    watched: Option<HashMap<String, Stamp>>,
    questions: u64,
    versions: i32,
    changes: u64,
    /// What the server has not been told yet. It stays here until it was, whoever waits for it.
    unsent: VecDeque<Step>,
}

/// The text of a file of the Workspace.
///
/// # Errors
///
/// It cannot be read, is too large, or no text.
pub(crate) fn read(workspace: &Workspace, path: &str) -> Result<Arc<Text>, QueryError> {
    let range = workspace.read_range(path, 0, LARGEST_FILE)?;
    if range.total_size > u64::from(LARGEST_FILE) {
        return Err(QueryError::Workspace(WorkspaceError::TooLarge {
            path: path.to_owned(),
            size: range.total_size,
            limit: LARGEST_FILE.into(),
        }));
    }
    let text = Text::of_file(range.data);
    let text = text.ok_or_else(|| QueryError::Invalid(format!("\"{path}\" is no text file.")))?;
    Ok(Arc::new(text))
}

impl Documents {
    /// Reads the file at `path` and looks at all others. `endings` are those of the files that concern the server. Blocks.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(crate) fn look(
        &mut self,
        workspace: &Workspace,
        path: &str,
        language: &str,
        endings: &[String],
    ) -> Result<Arc<Text>, QueryError> {
        let text = read(workspace, path)?;
        self.questions += 1;
        let others: Vec<String> = self.open.keys().cloned().collect();
        for other in others.into_iter().filter(|other| other != path) {
            match read(workspace, &other) {
                Ok(text) => self.show(&other, "", text),
                Err(_) => self.close(other),
            }
        }
        let watched = self.watch(workspace, endings);
        if !watched.is_empty() {
            self.changes += 1;
            self.unsent.push_back(Step::Watched(watched));
        }
        self.show(path, language, Arc::clone(&text));
        if let Some(open) = self.open.get_mut(path) {
            open.used = self.questions;
        }
        while self.open.len() > 1 && self.is_full() {
            let oldest = self.open.iter().min_by_key(|(_, open)| open.used);
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else {
                break;
            };
            self.close(oldest);
        }
        Ok(text)
    }

    /// What the server has to be told next; it is taken out when that was done.
    pub(crate) fn unsent(&mut self) -> &mut VecDeque<Step> {
        &mut self.unsent
    }

    /// Whether anything has changed since the server was shown this file.
    pub(crate) fn is_outdated(&self, path: &str) -> bool {
        let open = self.open.get(path);
        open.is_some_and(|open| open.changes != self.changes)
    }

    /// Makes the server look at an open file as if it had never seen it.
    pub(crate) fn reopen(&mut self, path: &str) {
        if let Some(open) = self.open.get(path) {
            let (text, language, used) = (Arc::clone(&open.text), open.language.clone(), open.used);
            self.close(path.to_owned());
            self.show(path, &language, text);
            if let Some(open) = self.open.get_mut(path) {
                open.used = used;
            }
        }
    }

    fn show(&mut self, path: &str, language: &str, text: Arc<Text>) {
        let path = path.to_owned();
        match self.open.get_mut(&path) {
            Some(open) if open.text == text => {}
            Some(open) => {
                self.versions += 1;
                self.changes += 1;
                open.version = self.versions;
                open.changes = self.changes;
                open.text = Arc::clone(&text);
                self.unsent.push_back(Step::Change {
                    path,
                    version: self.versions,
                    text,
                });
            }
            None => {
                self.versions += 1;
                let open = Open {
                    language: language.to_owned(),
                    version: self.versions,
                    text: Arc::clone(&text),
                    used: 0,
                    changes: self.changes,
                };
                self.open.insert(path.clone(), open);
                self.unsent.push_back(Step::Open {
                    path,
                    language: language.to_owned(),
                    version: self.versions,
                    text,
                });
            }
        }
    }

    /// Whether more is open than may be.
    fn is_full(&self) -> bool {
        let size: usize = self.open.values().map(|open| open.text.size()).sum();
        self.open.len() > MOST_OPEN || size > MOST_BYTES
    }

    fn close(&mut self, path: String) {
        self.open.remove(&path);
        self.unsent.push_back(Step::Close { path });
    }

    /// The files that were made (1), changed (2) or removed (3) since the last look. Nothing at the first.
    fn watch(&mut self, workspace: &Workspace, endings: &[String]) -> Vec<(String, u8)> {
        let now = stamps(workspace, endings);
        let mut changes = Vec::new();
        if let Some(before) = &self.watched {
            for (path, stamp) in &now {
                match before.get(path) {
                    None => changes.push((path.clone(), 1)),
                    Some(then) if then != stamp => changes.push((path.clone(), 2)),
                    Some(_) => {}
                }
            }
            let removed = before.keys().filter(|path| !now.contains_key(*path));
            changes.extend(removed.map(|path| (path.clone(), 3)));
        }
        self.watched = Some(now);
        changes.sort();
        changes
    }
}

/// The files of the Workspace with these endings, as far as they are not ignored.
fn stamps(workspace: &Workspace, endings: &[String]) -> HashMap<String, Stamp> {
    let options = WalkOptions {
        include: endings
            .iter()
            .map(|ending| format!("**/*{ending}"))
            .collect(),
        respect_ignore: true,
        ..WalkOptions::default()
    };
    let mut found = HashMap::new();
    let Ok(mut walk) = workspace.walk(options) else {
        return found;
    };
    while let Ok(entries) = walk.next_entries(1024) {
        if entries.is_empty() || found.len() >= MOST_WATCHED {
            break;
        }
        let files = entries
            .into_iter()
            .filter(|entry| entry.kind == EntryKind::File && !entry.lossy);
        found.extend(files.map(|file| (file.path, (file.size, file.modified_ms))));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Stage {
        folder: tempfile::TempDir,
        workspace: Workspace,
        documents: Documents,
    }

    impl Stage {
        fn new() -> Stage {
            let folder = tempfile::tempdir().unwrap();
            Stage {
                workspace: Workspace::open(folder.path()).unwrap(),
                folder,
                documents: Documents::default(),
            }
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.folder.path().join(path), text).unwrap();
        }

        fn look(&mut self, path: &str) -> Vec<String> {
            let endings = [".a".to_owned()];
            let looked = self.documents.look(&self.workspace, path, "a", &endings);
            looked.unwrap();
            let told = self.documents.unsent().drain(..).map(|step| match step {
                Step::Open { path, version, .. } => format!("open {path} {version}"),
                Step::Change {
                    path,
                    version,
                    text,
                } => format!("change {path} {version} {}", text.content()),
                Step::Close { path } => format!("close {path}"),
                Step::Watched(changes) => format!("{changes:?}"),
            });
            told.collect()
        }
    }

    #[test]
    fn a_server_is_told_of_what_changed_on_disk_and_of_nothing_else() {
        let mut stage = Stage::new();
        stage.write("1.a", "one");
        stage.write("2.a", "two");
        assert_eq!(stage.look("1.a"), ["open 1.a 1"]);
        assert!(stage.look("1.a").is_empty());
        assert_eq!(stage.look("2.a"), ["open 2.a 2"]);
        stage.write("1.a", "another");
        stage.write("3.a", "three");
        stage.write("4.b", "of no concern");
        assert_eq!(
            stage.look("2.a"),
            ["change 1.a 3 another", "[(\"1.a\", 2), (\"3.a\", 1)]"]
        );
        fs::remove_file(stage.folder.path().join("1.a")).unwrap();
        assert_eq!(stage.look("2.a"), ["close 1.a", "[(\"1.a\", 3)]"]);
    }

    #[test]
    fn a_file_that_was_shown_before_another_changed_can_be_shown_anew() {
        let mut stage = Stage::new();
        stage.write("1.a", "one");
        stage.look("1.a");
        assert!(!stage.documents.is_outdated("1.a"));
        stage.write("2.a", "two");
        stage.look("1.a");
        assert!(stage.documents.is_outdated("1.a"));
        stage.documents.reopen("1.a");
        assert!(!stage.documents.is_outdated("1.a"));
        assert_eq!(stage.look("1.a"), ["close 1.a", "open 1.a 2"]);
    }

    #[test]
    fn the_file_that_nobody_asked_about_for_longest_is_closed() {
        let mut stage = Stage::new();
        for number in 0..=MOST_OPEN {
            stage.write(&format!("{number}.b"), "x");
        }
        for number in 0..MOST_OPEN {
            stage.look(&format!("{number}.b"));
        }
        stage.look("0.b");
        let last = format!("{MOST_OPEN}.b");
        let version = stage.documents.versions + 1;
        assert_eq!(
            stage.look(&last),
            [format!("open {last} {version}"), "close 1.b".to_owned()]
        );
    }

    #[test]
    fn files_that_are_large_are_closed_earlier() {
        let mut stage = Stage::new();
        let lines = "\n".repeat(LARGEST_FILE as usize);
        for number in 0..5 {
            stage.write(&format!("{number}.b"), &lines);
            stage.look(&format!("{number}.b"));
        }
        assert_eq!(stage.documents.open.len(), 3);
        assert!(stage.documents.open.contains_key("4.b"));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let mut stage = Stage::new();
        stage.write("binary", "\0");
        let large = fs::File::create(stage.folder.path().join("large")).unwrap();
        large.set_len(u64::from(LARGEST_FILE) + 1).unwrap();
        for (path, code) in [
            ("missing", "not-found"),
            ("../x", "outside-workspace"),
            ("binary", "invalid-args"),
            ("large", "too-large"),
        ] {
            let looked = stage.documents.look(&stage.workspace, path, "", &[]);
            let error = looked.unwrap_err();
            assert_eq!(error.code(), code, "{path}");
        }
    }
}
