//! One transaction: what is staged is checked at once against the Workspace as it is, and again when it is committed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::apply::{self, Work};
use super::contents::{self, Version, digest};
use super::diff::{Diff, PATIENCE, compare};
use super::journal::{self, Plan, Step, identity, now_ms, unique};
use super::target::{self, Resolved, Target};
use super::{EditorOptions, MAX_EDITED, MAX_HELD};
use crate::{Workspace, WorkspaceError};

/// What a path became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// There was nothing.
    Created,
    /// It has other contents.
    Replaced,
    /// It is gone.
    Deleted,
    /// It is somewhere else; told of where it is now.
    Moved,
}

/// One file that a transaction changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Relative to the Workspace.
    pub path: String,
    /// What it became.
    pub action: Action,
    /// Lines of the diff that were added.
    pub lines_added: u32,
    /// Lines of the diff that were removed.
    pub lines_removed: u32,
    /// Digest (hexadecimal) of the new contents; none where the file is gone.
    pub sha256: Option<String>,
}

/// Changes that are staged and then committed together. Dropping it abandons them.
#[derive(Debug)]
pub struct Transaction {
    workspace: Workspace,
    options: EditorOptions,
    files: BTreeMap<Resolved, File>,
    held: Held,
}

/// What a file counts for beside its contents, as if it were bytes of them: each costs a few names, and some waiting for the disk.
const PER_FILE: u64 = 64 * 1024;

/// The part of a transaction in the bytes that all transactions of a Session hold.
#[derive(Debug)]
struct Held {
    all: Arc<AtomicU64>,
    own: u64,
}

impl Held {
    fn add(&mut self, path: &str, bytes: u64) -> Result<(), WorkspaceError> {
        let order = Ordering::Relaxed;
        let added = self.all.fetch_update(order, order, |all| {
            all.checked_add(bytes).filter(|all| *all <= MAX_HELD)
        });
        added.map_err(|_| WorkspaceError::TooMuch {
            path: path.to_owned(),
            limit: MAX_HELD,
        })?;
        self.own += bytes;
        Ok(())
    }

    fn remove(&mut self, bytes: u64) {
        self.all.fetch_sub(bytes, Ordering::Relaxed);
        self.own -= bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::Relaxed);
    }
}

/// One file that is changed.
#[derive(Clone, Debug)]
struct File {
    /// As it was when it was first named here.
    old: Option<(Vec<u8>, u32)>,
    new: Option<Vec<u8>>,
    /// Its permission bits; none where the process's own mask decides.
    mode: Option<u32>,
    /// Where its contents come from, where it was moved.
    moved_from: Option<Resolved>,
}

impl File {
    fn is_changed(&self) -> bool {
        self.old.as_ref().map(|(contents, _)| contents) != self.new.as_ref()
    }

    /// Bytes of the new contents.
    fn size(&self) -> u64 {
        self.new.as_ref().map_or(0, |new| new.len() as u64)
    }
}

impl Transaction {
    /// `held` counts the bytes of all transactions of the Session.
    pub(super) fn new(
        workspace: Workspace,
        options: EditorOptions,
        held: &Arc<AtomicU64>,
    ) -> Transaction {
        Transaction {
            workspace,
            options,
            files: BTreeMap::new(),
            held: Held {
                all: Arc::clone(held),
                own: 0,
            },
        }
    }

    /// Stages a new file, with the folders that it needs.
    ///
    /// # Errors
    ///
    /// There is something at the path, or it may not be changed.
    pub fn create(&mut self, path: &str, contents: Vec<u8>) -> Result<(), WorkspaceError> {
        let resolved = self.look(path, &contents)?;
        if self.file(&resolved)?.new.is_some() {
            return Err(WorkspaceError::Exists {
                path: resolved.shown(),
            });
        }
        self.renew(&resolved, contents)
    }

    /// Stages new contents of a file. With `expected`, the digest of what the tool read, another present content is refused.
    ///
    /// # Errors
    ///
    /// There is no such file, it is not what was expected or was read, or it may not be changed.
    pub fn replace(
        &mut self,
        path: &str,
        contents: Vec<u8>,
        expected: Option<&str>,
    ) -> Result<(), WorkspaceError> {
        let resolved = self.look(path, &contents)?;
        self.present(&resolved, expected)?;
        self.renew(&resolved, contents)
    }

    /// Stages the removal of a file.
    ///
    /// # Errors
    ///
    /// As [`Transaction::replace`].
    pub fn delete(&mut self, path: &str, expected: Option<&str>) -> Result<(), WorkspaceError> {
        let resolved = self.look(path, &[])?;
        let file = self.present(&resolved, expected)?;
        let given_up = file.size();
        file.new = None;
        self.held.remove(given_up);
        Ok(())
    }

    /// Stages that a file goes elsewhere, with the folders that are needed.
    ///
    /// # Errors
    ///
    /// As [`Transaction::replace`] for the source and [`Transaction::create`] for the destination; then neither is staged.
    pub fn move_file(
        &mut self,
        source: &str,
        destination: &str,
        expected: Option<&str>,
    ) -> Result<(), WorkspaceError> {
        let from = self.look(source, &[])?;
        let to = self.look(destination, &[])?;
        if self.file(&to)?.new.is_some() {
            return Err(WorkspaceError::Exists { path: to.shown() });
        }
        let file = self.present(&from, expected)?;
        let (contents, mode) = (file.new.take(), file.mode);
        let origin = file.moved_from.take().unwrap_or(from);
        let file = self.file(&to)?;
        file.new = contents;
        file.mode = mode;
        file.moved_from = Some(origin);
        Ok(())
    }

    /// What the staged file holds; none where there is nothing at the path, also where that is staged.
    ///
    /// # Errors
    ///
    /// It may not be changed, or cannot be read.
    pub fn contents(&mut self, path: &str) -> Result<Option<&[u8]>, WorkspaceError> {
        let resolved = self.look(path, &[])?;
        Ok(self.file(&resolved)?.new.as_deref())
    }

    /// A unified diff of what is staged.
    pub fn preview(&self) -> String {
        self.diffs()
            .into_iter()
            .map(|(_, diff)| diff.text)
            .collect()
    }

    /// Makes all changes durably, or none and says of each fault why.
    ///
    /// # Errors
    ///
    /// Every file that is not as it was when it was staged, or was read; or what the operating system refused.
    pub fn commit(self) -> Result<Vec<Change>, Vec<WorkspaceError>> {
        if !self.files.values().any(File::is_changed) {
            return Ok(Vec::new());
        }
        let one = |error| vec![error];
        // Before anybody else has to wait.
        let changes = self.changes();
        let _lock = apply::lock(&self.workspace, &self.options.locks).map_err(one)?;
        let faults: Vec<WorkspaceError> = self
            .files
            .iter()
            .filter(|(_, file)| file.is_changed())
            .filter_map(|(resolved, file)| self.check(resolved, file).err())
            .collect();
        if !faults.is_empty() {
            return Err(faults);
        }
        let work = self.work().map_err(one)?;
        apply::carry_out(&self.workspace, &self.options.journal, work).map_err(one)?;
        journal::prune(&self.options.journal);
        self.remember();
        Ok(changes)
    }

    /// Resolves a path whose new contents are bounded.
    fn look(&self, path: &str, contents: &[u8]) -> Result<Resolved, WorkspaceError> {
        let size = contents.len() as u64;
        if size > MAX_EDITED {
            return Err(WorkspaceError::TooLarge {
                path: path.to_owned(),
                size,
                limit: MAX_EDITED,
            });
        }
        target::resolve(&self.workspace, &self.options, path)
    }

    /// The file as staged, read where it is named for the first time.
    fn file(&mut self, resolved: &Resolved) -> Result<&mut File, WorkspaceError> {
        if !self.files.contains_key(resolved) {
            let old = self.read(resolved)?;
            let size = old
                .as_ref()
                .map_or(0, |(contents, _)| contents.len() as u64);
            self.held.add(&resolved.shown(), PER_FILE + 2 * size)?;
            let file = File {
                new: old.as_ref().map(|(contents, _)| contents.clone()),
                mode: old.as_ref().map(|(_, mode)| *mode),
                old,
                moved_from: None,
            };
            self.files.insert(resolved.clone(), file);
        }
        self.files
            .get_mut(resolved)
            .ok_or_else(|| WorkspaceError::NotFound {
                path: resolved.shown(),
            })
    }

    /// Gives a file that is staged other contents.
    fn renew(&mut self, resolved: &Resolved, contents: Vec<u8>) -> Result<(), WorkspaceError> {
        self.held.add(&resolved.shown(), contents.len() as u64)?;
        let file = self.file(resolved)?;
        let given_up = file.size();
        file.new = Some(contents);
        self.held.remove(given_up);
        Ok(())
    }

    /// As [`Transaction::file`], where there must be one, and the expected one.
    fn present(
        &mut self,
        resolved: &Resolved,
        expected: Option<&str>,
    ) -> Result<&mut File, WorkspaceError> {
        let shown = resolved.shown();
        let file = self.file(resolved)?;
        let Some(contents) = &file.new else {
            return Err(WorkspaceError::NotFound { path: shown });
        };
        if expected.is_some_and(|expected| expected != digest(contents)) {
            return Err(WorkspaceError::Stale {
                path: shown,
                then: None,
                now: Some(contents.len() as u64),
            });
        }
        Ok(file)
    }

    /// What is at the path now.
    fn read(&self, resolved: &Resolved) -> Result<Option<(Vec<u8>, u32)>, WorkspaceError> {
        match Target::open(&self.workspace, &resolved.path) {
            Ok(target) => contents::read(&target),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(errno) => {
                let shown = resolved.shown();
                Err(WorkspaceError::from_errno(errno, &shown, &shown))
            }
        }
    }

    /// That the file is as it was when it was staged, and as it was when it was last read.
    fn check(&self, resolved: &Resolved, file: &File) -> Result<(), WorkspaceError> {
        let now = self.read(resolved)?.map(|(contents, _)| contents);
        let shown = resolved.shown();
        if now.as_ref() != file.old.as_ref().map(|(contents, _)| contents) {
            let size = |contents: &Vec<u8>| contents.len() as u64;
            return Err(match &file.old {
                None => WorkspaceError::Exists { path: shown },
                Some((old, _)) => WorkspaceError::Stale {
                    path: shown,
                    then: Some(size(old)),
                    now: now.as_ref().map(size),
                },
            });
        }
        let Some(seen) = &self.workspace.seen else {
            return Ok(());
        };
        let stat = match Target::open(&self.workspace, &resolved.path) {
            Ok(target) => target.file()?,
            Err(_) => None,
        };
        seen.check(&resolved.path, stat.as_ref())
    }

    fn changed(&self) -> impl DoubleEndedIterator<Item = (&Resolved, &File)> {
        self.files.iter().filter(|(_, file)| file.is_changed())
    }

    fn diffs(&self) -> Vec<(&Resolved, Diff)> {
        let deadline = Instant::now() + PATIENCE;
        self.changed()
            .map(|(resolved, file)| {
                let old = file.old.as_ref().map(|(contents, _)| contents.as_slice());
                let new = file.new.as_deref();
                (resolved, compare(&resolved.shown(), old, new, deadline))
            })
            .collect()
    }

    fn changes(&self) -> Vec<Change> {
        let origins: Vec<&Resolved> = self
            .files
            .values()
            .filter_map(|file| file.moved_from.as_ref())
            .collect();
        let told = self.diffs().into_iter().filter_map(|(resolved, diff)| {
            let file = self.files.get(resolved)?;
            let action = match (&file.old, &file.new) {
                (_, None) if origins.contains(&resolved) => return None,
                (_, None) => Action::Deleted,
                (_, Some(_)) if file.moved_from.is_some() => Action::Moved,
                (None, Some(_)) => Action::Created,
                (Some(_), Some(_)) => Action::Replaced,
            };
            Some(Change {
                path: resolved.shown(),
                action,
                lines_added: diff.added,
                lines_removed: diff.removed,
                sha256: file.new.as_deref().map(digest),
            })
        });
        told.collect()
    }

    fn work(&self) -> Result<Work, WorkspaceError> {
        let failed = |error: &std::io::Error| apply::not_changed(std::path::Path::new("."), error);
        let id = unique().map_err(|error| failed(&error))?;
        let mut work = Work {
            plan: Plan {
                workspace: identity(&self.workspace).map_err(|errno| failed(&errno.into()))?,
                made_ms: now_ms(),
                folders: Vec::new(),
                steps: Vec::new(),
            },
            old: Vec::new(),
            new: Vec::new(),
        };
        for (number, (resolved, file)) in self.changed().enumerate() {
            let version = |contents: &[u8], mode| Version {
                sha256: digest(contents),
                mode,
            };
            work.plan.steps.push(Step {
                path: resolved.path.clone(),
                before: file
                    .old
                    .as_ref()
                    .map(|(contents, mode)| version(contents, Some(*mode))),
                after: file.new.as_ref().map(|new| version(new, file.mode)),
                temporary: format!(".floe-{id}-{number}.tmp"),
            });
            work.old
                .push(file.old.as_ref().map(|(contents, _)| contents.clone()));
            work.new.push(file.new.clone());
        }
        Ok(work)
    }

    /// What the model wrote it knows.
    fn remember(&self) {
        let Some(seen) = &self.workspace.seen else {
            return;
        };
        for (resolved, _) in self.changed() {
            match Target::open(&self.workspace, &resolved.path).map(|target| target.stat()) {
                Ok(Ok(Some(stat))) => seen.note(&resolved.path, &stat),
                _ => seen.forget(&resolved.path),
            }
        }
    }
}
