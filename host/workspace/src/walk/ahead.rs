//! A walk under way: a thread of its own goes ahead of the reader by a few portions, and stops when nobody reads any more. How many walks
//! there are, and what each holds ahead, is bounded: who opens walks may be a tool that means to fill the host's memory.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::io::Errno;

use super::selection::Selection;
use super::visit::{Found, Visit};
use super::{Portion, WalkOptions};
use crate::{Entry, FileBatch, FileSlice, Kind, MAX_READ, OpenedFile, Workspace, WorkspaceError};

/// So many portions are ready before the reader asks.
const AHEAD: usize = 4;
/// So many bytes of contents are ready before the reader asks, or one portion that is larger.
const BYTES_AHEAD: usize = 4 * 1024 * 1024;
/// Walks of one Workspace under way at once.
const MOST_WALKS: usize = 16;
/// The smallest portion of contents, in bytes.
const SMALLEST_BATCH: usize = 4096;

/// A walk under way. All calls may block.
#[derive(Debug)]
pub struct Walk {
    plan: Arc<Plan>,
    /// What was received and not yet handed over.
    left: Vec<Entry>,
    thread: Option<Thread>,
    is_over: bool,
}

/// Lets a walk go on: once it is dropped the walk ends, also where a thread waits for its next portion.
#[derive(Debug)]
pub struct LetsWalk(Arc<Plan>);

impl Drop for LetsWalk {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

#[derive(Debug)]
struct Plan {
    workspace: Workspace,
    start: String,
    options: WalkOptions,
    selection: Selection,
    /// Nobody reads any more.
    abandoned: AtomicBool,
    /// Bytes of contents that nobody has received yet.
    bytes_ahead: Mutex<usize>,
    /// Some of them were received, or nobody reads any more.
    received: Condvar,
}

#[derive(Debug)]
struct Thread {
    portions: Receiver<Portion>,
    handle: JoinHandle<()>,
    form: Form,
    _seat: Seat,
}

/// One of the walks that may be under way.
#[derive(Debug)]
struct Seat(Workspace);

impl Seat {
    fn take(workspace: &Workspace) -> Option<Seat> {
        let taken = |count: usize| (count < MOST_WALKS).then_some(count + 1);
        let walks = &workspace.root.walks;
        let seat = walks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
        seat.is_ok().then(|| Seat(workspace.clone()))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.root.walks.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a walk hands over, decided by the first question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Entries,
    Files { batch: usize },
}

impl Walk {
    pub(super) fn new(
        workspace: Workspace,
        start: String,
        options: WalkOptions,
        selection: Selection,
    ) -> Walk {
        Walk {
            plan: Arc::new(Plan {
                workspace,
                start,
                options,
                selection,
                abandoned: AtomicBool::new(false),
                bytes_ahead: Mutex::default(),
                received: Condvar::new(),
            }),
            left: Vec::new(),
            thread: None,
            is_over: false,
        }
    }

    /// What the walk goes on for, where the one who asks may leave while a thread of the host still waits.
    pub fn while_held(&self) -> LetsWalk {
        LetsWalk(Arc::clone(&self.plan))
    }

    /// The next entries, at most `max`; empty at the end. Folders that cannot be read hold nothing.
    ///
    /// # Errors
    ///
    /// The walk hands over contents already, or the machine failed.
    pub fn next_entries(&mut self, max: usize) -> Result<Vec<Entry>, WorkspaceError> {
        while self.left.is_empty() {
            match self.receive(Form::Entries)? {
                Portion::Entries(entries) => {
                    self.left = entries;
                    self.left.reverse();
                }
                Portion::Files(_) => return Err(self.failed(Errno::INVAL)),
                Portion::End => break,
            }
        }
        let taken = max.max(1).min(self.left.len());
        let mut entries = self.left.split_off(self.left.len() - taken);
        entries.reverse();
        Ok(entries)
    }

    /// The next files with their contents, about `max_bytes` at a time (the first call's holds for all); no files at the end. A file is
    /// whole up to [`MAX_READ`]. What could not be read, or is larger than asked for, is a slice with its failure.
    ///
    /// # Errors
    ///
    /// The walk hands over entries already, or the machine failed.
    pub fn next_files(&mut self, max_bytes: usize) -> Result<FileBatch, WorkspaceError> {
        let batch = max_bytes.clamp(SMALLEST_BATCH, MAX_READ as usize);
        let portion = self.receive(Form::Files { batch })?;
        self.contents(portion)
    }

    /// As [`Walk::next_files`] and without blocking: `None` where the next files are not ready, or the first were not asked for yet.
    pub fn ready_files(&mut self) -> Option<Result<FileBatch, WorkspaceError>> {
        let thread = self.thread.as_ref()?;
        if !matches!(thread.form, Form::Files { .. }) {
            return None;
        }
        let portion = thread.portions.try_recv().ok()?;
        let portion = self.accept(Some(portion));
        Some(portion.and_then(|portion| self.contents(portion)))
    }

    fn contents(&self, portion: Portion) -> Result<FileBatch, WorkspaceError> {
        match portion {
            Portion::Files(batch) => Ok(batch),
            Portion::Entries(_) => Err(self.failed(Errno::INVAL)),
            Portion::End => Ok(FileBatch::default()),
        }
    }

    fn receive(&mut self, form: Form) -> Result<Portion, WorkspaceError> {
        if self.is_over {
            return Ok(Portion::End);
        }
        if self.thread.is_none() {
            self.thread = Some(self.start(form)?);
        }
        let Some(thread) = &self.thread else {
            return Ok(Portion::End);
        };
        if std::mem::discriminant(&thread.form) != std::mem::discriminant(&form) {
            return Err(self.failed(Errno::INVAL));
        }
        let portion = thread.portions.recv().ok();
        self.accept(portion)
    }

    fn accept(&mut self, portion: Option<Portion>) -> Result<Portion, WorkspaceError> {
        match portion {
            Some(Portion::End) => {
                self.end();
                Ok(Portion::End)
            }
            Some(portion) => {
                self.plan.took(portion.bytes());
                Ok(portion)
            }
            // It ended without the last word.
            None => {
                self.end();
                Err(self.failed(Errno::IO))
            }
        }
    }

    /// Stops the thread where it still goes on, and gives up its seat.
    fn end(&mut self) {
        self.is_over = true;
        self.plan.abandon();
        if let Some(Thread {
            portions, handle, ..
        }) = self.thread.take()
        {
            // Wakes it where it waits for a reader.
            drop(portions);
            let _ = handle.join();
        }
    }

    fn start(&self, form: Form) -> Result<Thread, WorkspaceError> {
        let seat = Seat::take(&self.plan.workspace).ok_or_else(|| WorkspaceError::Busy {
            path: self.plan.start.clone(),
            limit: MOST_WALKS,
        })?;
        let (send, portions) = sync_channel(AHEAD);
        let plan = Arc::clone(&self.plan);
        let handle = std::thread::Builder::new()
            .name("floe-walk".to_owned())
            .spawn(move || plan.carry_out(form, &send))
            .map_err(|error| self.failed(Errno::from_io_error(&error).unwrap_or(Errno::AGAIN)))?;
        Ok(Thread {
            portions,
            handle,
            form,
            _seat: seat,
        })
    }

    fn failed(&self, errno: Errno) -> WorkspaceError {
        WorkspaceError::from_errno(errno, &self.plan.start, &self.plan.start)
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.end();
    }
}

impl Plan {
    fn bytes_ahead(&self) -> MutexGuard<'_, usize> {
        self.bytes_ahead
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn abandon(&self) {
        let _bytes = self.bytes_ahead();
        self.abandoned.store(true, Ordering::Relaxed);
        self.received.notify_all();
    }

    /// The reader has these.
    fn took(&self, bytes: usize) {
        *self.bytes_ahead() -= bytes;
        self.received.notify_all();
    }

    /// Waits until there is room for a portion, and hands it over; `None` where nobody reads any more.
    fn hand_over(&self, portion: Portion, send: &SyncSender<Portion>) -> Option<()> {
        let bytes = portion.bytes();
        let is_full =
            |ahead: &mut usize| *ahead > 0 && *ahead + bytes > BYTES_AHEAD && !self.is_abandoned();
        let ahead = self.received.wait_while(self.bytes_ahead(), is_full);
        *ahead.unwrap_or_else(PoisonError::into_inner) += bytes;
        send.send(portion).ok()
    }

    fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    fn carry_out(&self, form: Form, send: &SyncSender<Portion>) {
        let done = match form {
            Form::Entries => self.entries(send),
            Form::Files { batch } => self.files(batch, send),
        };
        if done.is_some() {
            let _ = send.send(Portion::End);
        }
    }

    /// `None` where nobody reads any more.
    fn entries(&self, send: &SyncSender<Portion>) -> Option<()> {
        const AT_A_TIME: usize = 256;
        let mut entries = Vec::new();
        match self.visit() {
            Ok(mut visit) => {
                while let Some(found) = self.advance(&mut visit) {
                    let Ok(found) = found else { continue };
                    let Ok(stat) = visit.stat(&found) else {
                        continue;
                    };
                    entries.push(Entry::new(visit.shown(&found), &stat));
                    if entries.len() == AT_A_TIME {
                        send.send(Portion::Entries(std::mem::take(&mut entries)))
                            .ok()?;
                    }
                }
            }
            Err(WorkspaceError::NotDirectory { .. }) => {
                entries.extend(self.workspace.stat(&self.start));
            }
            // It was there when the walk was opened.
            Err(_) => {}
        }
        if self.is_abandoned() {
            return None;
        }
        if !entries.is_empty() {
            send.send(Portion::Entries(entries)).ok()?;
        }
        Some(())
    }

    /// `None` where nobody reads any more.
    fn files(&self, size: usize, send: &SyncSender<Portion>) -> Option<()> {
        let mut batch = Filling::new(size);
        match self.visit() {
            Ok(mut visit) => {
                while let Some(found) = self.advance(&mut visit) {
                    match found {
                        Ok(found) if found.is_file() => {
                            let shown = visit.shown(&found);
                            let opened = visit.open(&found).map(|(file, stat)| OpenedFile {
                                file: File::from(file),
                                size: u64::try_from(stat.st_size).unwrap_or(0),
                                shown: shown.clone(),
                            });
                            self.add(&mut batch, shown, opened, send)?;
                        }
                        Ok(found) => batch.add_special(&visit, &found),
                        Err(error) => batch.fail(error.path().to_owned(), error),
                    }
                    batch.send_if_full(self, send)?;
                }
            }
            Err(WorkspaceError::NotDirectory { .. }) => {
                let opened = self.workspace.open_file(&self.start);
                self.add(&mut batch, self.start.clone(), opened, send)?;
            }
            Err(error) => batch.fail(self.start.clone(), error),
        }
        if self.is_abandoned() {
            return None;
        }
        batch.send(self, send)
    }

    fn visit(&self) -> Result<Visit<'_>, WorkspaceError> {
        let is_folder = self.workspace.stat(&self.start)?.kind == Kind::Directory;
        if !is_folder {
            return Err(WorkspaceError::NotDirectory {
                path: self.start.clone(),
            });
        }
        Visit::new(
            &self.workspace,
            &self.start,
            &self.options,
            &self.selection,
            &self.abandoned,
        )
    }

    fn advance(&self, visit: &mut Visit<'_>) -> Option<Result<Found, WorkspaceError>> {
        if self.is_abandoned() {
            return None;
        }
        visit.advance()
    }

    /// Adds a file, unless it holds none of what is looked for.
    fn add(
        &self,
        batch: &mut Filling,
        shown: String,
        opened: Result<OpenedFile, WorkspaceError>,
        send: &SyncSender<Portion>,
    ) -> Option<()> {
        let file = match opened {
            Ok(file) => file,
            Err(error) => {
                batch.fail(shown, error);
                return Some(());
            }
        };
        if let Some(limit) = self.options.max_file_size
            && file.size > limit
        {
            let error = WorkspaceError::TooLarge {
                path: shown.clone(),
                size: file.size,
                limit,
            };
            batch.fail(shown, error);
            return Some(());
        }
        if !batch.has_room(file.size) {
            batch.send(self, send)?;
        }
        batch.read(shown, &file, &self.selection);
        Some(())
    }
}

/// A batch that is being filled.
struct Filling {
    batch: FileBatch,
    size: usize,
}

impl Filling {
    fn new(size: usize) -> Filling {
        Filling {
            batch: FileBatch::default(),
            size,
        }
    }

    /// Whether a file of so many bytes can be had whole.
    fn has_room(&self, size: u64) -> bool {
        let whole = size.saturating_add(self.batch.data.len() as u64);
        self.batch.data.is_empty() || whole <= u64::from(MAX_READ)
    }

    fn read(&mut self, path: String, file: &OpenedFile, selection: &Selection) {
        let FileBatch { data, files } = &mut self.batch;
        if data.capacity() == 0 {
            data.reserve(self.size);
        }
        let start = data.len();
        if let Err(error) = file.append_range(data, 0, MAX_READ as usize - start) {
            data.truncate(start);
            return self.fail(path, error);
        }
        if !selection.wants(&data[start..]) {
            return data.truncate(start);
        }
        let length = data.len() - start;
        files.push(FileSlice {
            path,
            start,
            length,
            total_size: file.size.max(length as u64),
            failure: None,
        });
    }

    fn fail(&mut self, path: String, failure: WorkspaceError) {
        self.batch.files.push(FileSlice {
            path,
            start: self.batch.data.len(),
            length: 0,
            total_size: 0,
            failure: Some(failure),
        });
    }

    /// What is no file, folder or link is told, never opened.
    fn add_special(&mut self, visit: &Visit<'_>, found: &Found) {
        if found.is_special() {
            let path = visit.shown(found);
            let kind = "special file";
            self.fail(path.clone(), WorkspaceError::SpecialFile { path, kind });
        }
    }

    fn send_if_full(&mut self, plan: &Plan, send: &SyncSender<Portion>) -> Option<()> {
        const MOST_FILES: usize = 4096;
        if self.batch.data.len() >= self.size || self.batch.files.len() >= MOST_FILES {
            return self.send(plan, send);
        }
        Some(())
    }

    fn send(&mut self, plan: &Plan, send: &SyncSender<Portion>) -> Option<()> {
        if self.batch.files.is_empty() {
            return Some(());
        }
        let batch = std::mem::take(&mut self.batch);
        plan.hand_over(Portion::Files(batch), send)
    }
}
