//! Keeps the whole output of a call that was cut, in the Session's own folder, where the tools can read it under
//! `/floe/outputs/` (decisions, "The whole output of a cut call").
//!
//! A file is written only once an output goes over its budget. At most 64 MiB a call are kept, above that the beginning and
//! the end; at most 1 GiB a Session. What cannot be kept is a line for the model, never another outcome of the call.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

use crate::close_out::{KeepWhole, Kept};

/// Where the tools find the files.
const GUEST_FOLDER: &str = "/floe/outputs";
/// Bytes kept of one call.
const CALL_LIMIT: u64 = 64 << 20;
/// Bytes kept of one Session.
const SESSION_LIMIT: u64 = 1 << 30;
/// Bytes that are gathered before a write.
const BUFFER: usize = 64 << 10;

/// The outputs of one Session.
#[derive(Debug)]
pub(crate) struct Outputs {
    folder: PathBuf,
    call_limit: u64,
    /// Bytes that may still be kept.
    left: AtomicU64,
}

impl Outputs {
    /// Outputs in `folder`, which is made when the first one is kept.
    pub(crate) fn new(folder: PathBuf) -> Arc<Outputs> {
        Outputs::with_limits(folder, CALL_LIMIT, SESSION_LIMIT)
    }

    fn with_limits(folder: PathBuf, call_limit: u64, session_limit: u64) -> Arc<Outputs> {
        let used: u64 = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.metadata().ok())
            .map(|metadata| metadata.len())
            .sum();
        Arc::new(Outputs {
            folder,
            call_limit,
            left: AtomicU64::new(session_limit.saturating_sub(used)),
        })
    }

    /// A keeper for one call. Touches nothing until the first text arrives.
    pub(crate) fn keeper(
        self: &Arc<Outputs>,
        tool: &str,
        tool_call_id: &str,
    ) -> Box<dyn KeepWhole> {
        Box::new(WholeOutput {
            outputs: Arc::clone(self),
            name: file_name(tool, tool_call_id),
            buffer: Vec::new(),
            state: State::Untouched,
        })
    }

    /// Takes up to `wanted` bytes of what is left.
    fn reserve(&self, wanted: u64) -> u64 {
        let mut taken = 0;
        let _ = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                taken = left.min(wanted);
                Some(left - taken)
            });
        taken
    }
}

/// A name that says the tool and differs for every call.
fn file_name(tool: &str, tool_call_id: &str) -> String {
    let tool: String = tool
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .take(48)
        .collect();
    let digest = crate::digest::hex(&Sha256::digest(tool_call_id.as_bytes())[..8]);
    format!("{tool}-{digest}.txt")
}

struct WholeOutput {
    outputs: Arc<Outputs>,
    name: String,
    buffer: Vec<u8>,
    state: State,
}

enum State {
    Untouched,
    Open(Region),
    Failed(String),
}

/// An open file: a head that is written once, and after it a ring that holds the end.
struct Region {
    path: PathBuf,
    file: File,
    /// Bytes that the head may take.
    head: u64,
    /// Bytes that the ring may take.
    ring: u64,
    /// Bytes written in all.
    written: u64,
    /// Bytes reserved of the Session's allowance and in use.
    reserved: u64,
    /// True where the Session's allowance ran out, so that nothing more is kept.
    full: bool,
}

impl WholeOutput {
    fn open(&self) -> io::Result<Region> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.outputs.folder)?;
        let path = self.outputs.folder.join(&self.name);
        let file = create(&path)?;
        let ring = self.outputs.call_limit / 2;
        Ok(Region {
            path,
            file,
            head: self.outputs.call_limit - ring,
            ring,
            written: 0,
            reserved: 0,
            full: false,
        })
    }

    fn flush(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.is_empty() {
            return;
        }
        if matches!(self.state, State::Untouched) {
            self.state = match self.open() {
                Ok(region) => State::Open(region),
                Err(error) => State::Failed(reason(&error)),
            };
        }
        if let State::Open(region) = &mut self.state
            && let Err(error) = region.write(&buffer, &self.outputs)
        {
            // A part of an output would pass for the whole.
            let _ = fs::remove_file(&region.path);
            self.state = State::Failed(reason(&error));
        }
        self.buffer = buffer;
        self.buffer.clear();
    }
}

impl KeepWhole for WholeOutput {
    fn append(&mut self, text: &str) {
        if matches!(self.state, State::Failed(_)) {
            return;
        }
        self.buffer.extend_from_slice(text.as_bytes());
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    fn finish(&mut self) -> Kept {
        self.flush();
        match std::mem::replace(&mut self.state, State::Untouched) {
            State::Untouched => Kept::Not("there was nothing to keep".into()),
            State::Failed(reason) => Kept::Not(reason),
            State::Open(region) => match region.finish() {
                Ok(()) => Kept::At(format!("{GUEST_FOLDER}/{}", self.name)),
                Err(error) => Kept::Not(reason(&error)),
            },
        }
    }
}

impl Region {
    fn write(&mut self, mut bytes: &[u8], outputs: &Outputs) -> io::Result<()> {
        while !bytes.is_empty() && !self.full {
            let (at, room) = self.place();
            let piece = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let end = at + piece as u64;
            if end > self.reserved {
                self.reserved += outputs.reserve(end - self.reserved);
                if self.reserved < end {
                    self.full = true;
                    return Err(io::Error::new(
                        io::ErrorKind::QuotaExceeded,
                        "the outputs of this Session have used up their 1 GiB",
                    ));
                }
            }
            self.file.write_all_at(&bytes[..piece], at)?;
            self.written += piece as u64;
            bytes = &bytes[piece..];
        }
        Ok(())
    }

    /// Where the next byte goes, and how many fit there in one piece.
    fn place(&self) -> (u64, u64) {
        if self.written < self.head {
            return (self.written, self.head - self.written);
        }
        let in_ring = (self.written - self.head) % self.ring;
        (self.head + in_ring, self.ring - in_ring)
    }

    /// Puts a ring that went round into order.
    fn finish(mut self) -> io::Result<()> {
        let limit = self.head + self.ring;
        if self.written <= limit {
            return Ok(());
        }
        let oldest = (self.written - self.head) % self.ring;
        let partial = self.path.with_extension("partial");
        let ordered = (|| {
            let mut ordered = create(&partial)?;
            let head = self.head - self.split_character_before(self.head)?;
            self.file.seek(SeekFrom::Start(0))?;
            io::copy(&mut (&self.file).take(head), &mut ordered)?;
            let left_out = self.written - limit;
            writeln!(ordered, "\n[{left_out} bytes in the middle are not kept]")?;
            let start = oldest + self.continuation_bytes_at(oldest)?;
            if start < self.ring {
                self.copy_ring(start, self.ring, &mut ordered)?;
                self.copy_ring(0, oldest, &mut ordered)?;
            } else {
                self.copy_ring(start - self.ring, oldest, &mut ordered)?;
            }
            fs::rename(&partial, &self.path)
        })();
        if ordered.is_err() {
            let _ = fs::remove_file(&partial);
            let _ = fs::remove_file(&self.path);
        }
        ordered
    }

    /// How many bytes before `end` belong to a character that `end` splits.
    fn split_character_before(&self, end: u64) -> io::Result<u64> {
        let mut last = [0; 4];
        let length = end.min(4) as usize;
        self.file
            .read_exact_at(&mut last[..length], end - length as u64)?;
        let last = &last[..length];
        Ok(match last.iter().rposition(|byte| byte & 0xC0 != 0x80) {
            Some(at) if std::str::from_utf8(&last[at..]).is_err() => (length - at) as u64,
            _ => 0,
        })
    }

    /// How many bytes from `oldest` in the ring on continue a character that began before.
    fn continuation_bytes_at(&self, oldest: u64) -> io::Result<u64> {
        for count in 0..3 {
            let mut byte = [0];
            let at = self.head + (oldest + count) % self.ring;
            self.file.read_exact_at(&mut byte, at)?;
            if byte[0] & 0xC0 != 0x80 {
                return Ok(count);
            }
        }
        Ok(3)
    }

    fn copy_ring(&mut self, from: u64, to: u64, into: &mut File) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.head + from))?;
        io::copy(&mut (&self.file).take(to.saturating_sub(from)), into)?;
        Ok(())
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Words for the model: never a host path.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::QuotaExceeded => error.to_string(),
        io::ErrorKind::StorageFull => "the disk is full".into(),
        kind => format!("{kind}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn keep(outputs: &Arc<Outputs>, id: &str, pieces: &[&str]) -> Kept {
        let mut keeper = outputs.keeper("exec_command", id);
        for piece in pieces {
            keeper.append(piece);
        }
        keeper.finish()
    }

    fn only_file(folder: &Path) -> PathBuf {
        let files: Vec<PathBuf> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }

    #[test]
    fn an_output_is_kept_whole_with_the_modes_of_a_private_file() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("outputs");
        let kept = keep(&Outputs::new(folder.clone()), "c1", &["ab", "cd"]);
        let file = only_file(&folder);
        assert_eq!(fs::read_to_string(&file).unwrap(), "abcd");
        let name = file.file_name().unwrap().to_str().unwrap();
        assert_eq!(kept, Kept::At(format!("/floe/outputs/{name}")));
        assert!(name.starts_with("exec_command-") && name.ends_with(".txt"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    }

    #[test]
    fn nothing_is_made_where_nothing_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("outputs");
        drop(Outputs::new(folder.clone()).keeper("list", "c1"));
        assert!(!folder.exists());
    }

    #[test]
    fn above_the_limit_of_a_call_the_beginning_and_the_end_are_kept() {
        let root = tempfile::tempdir().unwrap();
        let outputs = Outputs::with_limits(root.path().join("o"), 20, 1000);
        let mut keeper = outputs.keeper("t", "c1");
        for piece in ["0123456789", "abcdefghij", "klm"] {
            keeper.append(piece);
        }
        keeper.finish();
        let text = fs::read_to_string(only_file(&outputs.folder)).unwrap();
        assert_eq!(
            text,
            "0123456789\n[3 bytes in the middle are not kept]\ndefghijklm"
        );
    }

    #[test]
    fn the_cut_in_the_middle_splits_no_character() {
        for text in [
            "ä".repeat(40),
            format!("x{}", "€".repeat(30)),
            "😀".repeat(20),
        ] {
            for limit in 16..24 {
                let root = tempfile::tempdir().unwrap();
                let outputs = Outputs::with_limits(root.path().join("o"), limit, 1000);
                keep(&outputs, "c1", &[&text]);
                let kept = fs::read(only_file(&outputs.folder)).unwrap();
                assert!(String::from_utf8(kept).is_ok(), "limit {limit}");
            }
        }
    }

    #[test]
    fn above_the_limit_of_a_session_nothing_is_kept_and_the_reason_is_told() {
        let root = tempfile::tempdir().unwrap();
        let outputs = Outputs::with_limits(root.path().join("o"), 100, 10);
        assert!(matches!(keep(&outputs, "c1", &["01234567"]), Kept::At(_)));
        let kept = keep(&outputs, "c2", &["01234567"]);
        assert_eq!(
            kept,
            Kept::Not("the outputs of this Session have used up their 1 GiB".into())
        );
        only_file(&outputs.folder);
    }

    #[test]
    fn what_an_earlier_run_of_the_session_kept_counts() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("o");
        keep(
            &Outputs::with_limits(folder.clone(), 100, 10),
            "c1",
            &["01234567"],
        );
        let again = Outputs::with_limits(folder, 100, 10);
        assert!(matches!(keep(&again, "c2", &["01234567"]), Kept::Not(_)));
    }

    #[test]
    fn a_second_output_of_the_same_call_is_refused_without_touching_the_first() {
        let root = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(root.path().join("o"));
        keep(&outputs, "c1", &["first"]);
        assert!(matches!(keep(&outputs, "c1", &["second"]), Kept::Not(_)));
        assert_eq!(
            fs::read_to_string(only_file(&outputs.folder)).unwrap(),
            "first"
        );
    }
}
