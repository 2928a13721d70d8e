//! Appending records. One writer a Session; a file lock keeps a second process out.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use floe_protocol::{AgentId, EventMsg, Home, OmniMessage, SessionId};

use crate::TraceError;
use crate::files::{FileName, create_folder, of_session, path_of_today};
use crate::head::{Head, sync_folder};
use crate::lines::LONGEST;
use crate::read::{Torn, last_record};
use crate::regular;
use crate::seal::{RecordHash, seal};

/// Buffers above this are given back after a record.
const KEPT_BUFFER: usize = 1024 * 1024;

/// Writes the Trace of one Session.
///
/// A failed write is an error of its call only. The record is then missing; with the next record that can be
/// written, a `trace_gap` says how many are.
#[derive(Debug)]
pub struct TraceWriter {
    home: Home,
    agent: AgentId,
    session: SessionId,
    /// The number of the file that is written next, from 1.
    index: u32,
    current: Option<Current>,
    /// The file before, from its end to the beginning of the next: its lock keeps others out meanwhile.
    before: Option<File>,
    /// The number of the next record.
    seq: u64,
    /// The hash of the last record.
    prev: RecordHash,
    buffer: Vec<u8>,
    torn: Option<Torn>,
    gap: Option<Gap>,
    healed: Option<u64>,
}

/// The file that is written, locked.
#[derive(Debug)]
struct Current {
    file: File,
    path: PathBuf,
    /// True until the file's name is known to survive a crash.
    fresh: bool,
}

#[derive(Debug)]
struct Gap {
    records: u64,
    reason: String,
}

impl TraceWriter {
    /// A writer for a Session that has no Trace yet. The file is made with the first record.
    pub fn create(home: &Home, agent: &AgentId, session: &SessionId) -> TraceWriter {
        TraceWriter {
            home: home.clone(),
            agent: agent.clone(),
            session: session.clone(),
            index: 1,
            current: None,
            before: None,
            seq: 0,
            prev: RecordHash::FIRST,
            buffer: Vec::new(),
            torn: None,
            gap: None,
            healed: None,
        }
    }

    /// A writer that goes on after the last good record of `session`. A torn last line is ended, and a `trace_healed` record written. An
    /// end that lies before the kept head is recorded as a warning, since the next head would hide it.
    pub fn resume(
        home: &Home,
        agent: &AgentId,
        session: &SessionId,
    ) -> Result<TraceWriter, TraceError> {
        let mut writer = TraceWriter::create(home, agent, session);
        let files = of_session(home, agent, session)?;
        let Some(path) = files.last() else {
            return Ok(writer);
        };
        let file = open_last(path)?;
        // Another writer may have begun the next file before this one was locked.
        if of_session(home, agent, session)? != files {
            return Err(TraceError::InUse { path: path.clone() });
        }
        writer.index = FileName::parse(path).map_or(1, |name| name.index);
        let end = last_record(path)?;
        writer.torn = end.torn;
        writer.current = Some(Current {
            file,
            path: path.clone(),
            fresh: true,
        });
        let mut last = end.last;
        for path in files.iter().rev().skip(1) {
            if last.is_some() {
                break;
            }
            last = last_record(path)?.last;
        }
        if let Some((seq, hash)) = last {
            writer.seq = seq + 1;
            writer.prev = hash;
        }
        // What cannot be written now is written with the next record.
        let _ = writer.heal();
        writer.warn_of_cut_end()?;
        Ok(writer)
    }

    /// Appends a record. A message that a Trace does not keep ([`OmniMessage::is_recordable`]) is passed over.
    pub fn append(&mut self, message: &OmniMessage) -> Result<(), TraceError> {
        if !message.is_recordable() {
            return Ok(());
        }
        let written = self
            .heal()
            .and_then(|()| self.close_gap())
            .and_then(|()| self.write(message));
        if let Err(error) = &written {
            let gap = self.gap.get_or_insert_with(|| Gap {
                records: 0,
                reason: error.to_string(),
            });
            gap.records += 1;
        }
        written
    }

    /// Makes everything that was appended durable, and the head with it. `None` where nothing was written yet.
    pub fn sync(&mut self) -> Result<Option<Head>, TraceError> {
        self.heal()?;
        self.close_gap()?;
        let Some(last) = self.seq.checked_sub(1) else {
            return Ok(None);
        };
        self.sync_file()?;
        let head = Head {
            session: self.session.to_string(),
            seq: last,
            hash: self.prev.to_string(),
        };
        head.store(&self.home, &self.session)?;
        Ok(Some(head))
    }

    /// Ends the current file: the next record begins the next one. The chain goes on across it.
    pub fn rotate(&mut self) -> Result<(), TraceError> {
        self.heal()?;
        self.sync_file()?;
        if let Some(current) = self.current.take() {
            self.before = Some(current.file);
            self.index += 1;
        }
        Ok(())
    }

    /// The file that is being written; `None` before the first record of a file.
    pub fn path(&self) -> Option<&Path> {
        self.current.as_ref().map(|current| current.path.as_path())
    }

    /// The hash of the last record; `None` before the first.
    pub fn last_hash(&self) -> Option<&str> {
        (self.seq > 0).then(|| self.prev.as_str())
    }

    /// Bytes of the torn line that [`TraceWriter::resume`] ended, where it did.
    pub fn healed(&self) -> Option<u64> {
        self.healed
    }

    /// Makes the current file durable, and its name and the folders above it where they are new.
    fn sync_file(&mut self) -> Result<(), TraceError> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        current
            .file
            .sync_all()
            .map_err(TraceError::io("sync", &current.path))?;
        if current.fresh {
            let root = self.home.root();
            let day = current.path.parent().unwrap_or(root);
            for folder in day
                .ancestors()
                .take_while(|folder| folder.starts_with(root))
            {
                sync_folder(folder).map_err(TraceError::io("sync", folder))?;
            }
            current.fresh = false;
        }
        Ok(())
    }

    /// Ends a torn line and says so in the next record.
    fn heal(&mut self) -> Result<(), TraceError> {
        let Some(Torn { bytes, .. }) = self.torn else {
            return Ok(());
        };
        self.write(&OmniMessage::event(EventMsg::TraceHealed { bytes }))?;
        self.healed = Some(bytes);
        Ok(())
    }

    fn close_gap(&mut self) -> Result<(), TraceError> {
        let Some(gap) = &self.gap else {
            return Ok(());
        };
        let message = OmniMessage::event(EventMsg::TraceGap {
            records: gap.records,
            reason: gap.reason.clone(),
        });
        self.write(&message)?;
        self.gap = None;
        Ok(())
    }

    fn warn_of_cut_end(&mut self) -> Result<(), TraceError> {
        let (code, message) = match Head::load(&self.home, &self.session) {
            Ok(Some(head)) if head.seq >= self.seq => {
                let message = format!(
                    "the Trace ended after {} records; its head, {}, was record {}",
                    self.seq, head.hash, head.seq
                );
                ("trace_cut_off", message)
            }
            Ok(_) => return Ok(()),
            Err(error) => ("trace_head_unreadable", error.to_string()),
        };
        self.append(&OmniMessage::event(EventMsg::Warning {
            code: code.to_owned(),
            message,
        }))
    }

    /// Writes one record with one write, after the newline that a torn line lacks.
    fn write(&mut self, message: &OmniMessage) -> Result<(), TraceError> {
        self.open()?;
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BUFFER);
        if self.torn.is_some_and(|torn| torn.open) {
            self.buffer.push(b'\n');
        }
        let start = self.buffer.len();
        serde_json::to_writer(&mut self.buffer, message)?;
        let hash = seal(&mut self.buffer, start, self.seq, &self.prev);
        let bytes = self.buffer.len() - start - 1;
        if bytes > LONGEST {
            return Err(TraceError::TooLong {
                bytes,
                most: LONGEST,
            });
        }
        let (written, failure) = match write_all(&mut current.file, &self.buffer) {
            Ok(()) => (self.buffer.len(), None),
            Err((written, source)) => (written, Some(source)),
        };
        // A record that lacks only its newline is a record.
        if written + 1 >= self.buffer.len() {
            self.prev = hash;
            self.seq += 1;
            self.torn = failure.map(|_| Torn {
                bytes: 0,
                open: true,
            });
            return Ok(());
        }
        if let Some(fragment) = written.checked_sub(start).filter(|_| written > 0) {
            let before = self.torn.map_or(0, |torn| torn.bytes);
            self.torn = Some(Torn {
                bytes: before + fragment as u64,
                open: fragment > 0,
            });
        }
        match failure {
            Some(source) => Err(TraceError::io("write", &current.path)(source)),
            None => Ok(()),
        }
    }

    fn open(&mut self) -> Result<(), TraceError> {
        if self.current.is_some() {
            return Ok(());
        }
        let path = path_of_today(&self.home, &self.agent, &self.session, self.index);
        create_folder(path.parent().unwrap_or(self.home.root()))?;
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(TraceError::io("create", &path))?;
        if let Err(error) = lock(&file, &path) {
            // An empty file in the way would hide the reason from the next attempt.
            if !matches!(error, TraceError::InUse { .. }) {
                let _ = std::fs::remove_file(&path);
            }
            return Err(error);
        }
        self.current = Some(Current {
            file,
            path,
            fresh: true,
        });
        self.before = None;
        Ok(())
    }
}

/// Opens and locks the file that a resumed Session goes on in.
fn open_last(path: &Path) -> Result<File, TraceError> {
    let open = || {
        regular::require(path)?;
        OpenOptions::new().append(true).open(path)
    };
    let file = open().map_err(TraceError::io("open", path))?;
    lock(&file, path)?;
    Ok(file)
}

/// As `Write::write_all`, and how much was written where it fails.
fn write_all(file: &mut File, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((written, error)),
        }
    }
    Ok(())
}

/// Takes the lock of the writer. A listing holds it for an instant to see whether somebody else does, hence the attempts.
fn lock(file: &File, path: &Path) -> Result<(), TraceError> {
    for _ in 0..20 {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            Err(TryLockError::Error(error)) => return Err(TraceError::io("lock", path)(error)),
        }
    }
    Err(TraceError::InUse {
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests;
