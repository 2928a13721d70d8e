//! Output on its way to being kept: in memory while it is short, then in a file without a name, which goes with the spool
//! whatever becomes of this process. Tools see nothing of it before it is published.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use super::region::Region;
use super::{GUEST_FOLDER, Outputs};

/// One output.
#[derive(Debug)]
pub(super) struct Spool {
    outputs: Arc<Outputs>,
    /// What is in no file yet.
    buffer: Vec<u8>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// All of it is in the buffer.
    InMemory,
    InFile(Region),
    /// A part of an output would pass for the whole, so nothing is kept.
    Failed(String),
}

impl Spool {
    /// An empty one, which costs nothing.
    pub(super) fn new(outputs: Arc<Outputs>) -> Spool {
        Spool {
            outputs,
            buffer: Vec::new(),
            state: State::InMemory,
        }
    }

    /// Takes the next bytes. A fault is told when it is published.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = self.outputs.buffer();
        if self.buffer.len() + bytes.len() > room {
            self.flush();
            if bytes.len() >= room {
                return self.write(bytes);
            }
        }
        if !matches!(self.state, State::Failed(_)) {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Makes all so far a file of this name; its path as tools see it, or why there is none.
    pub(super) fn publish(&mut self, name: &str) -> Result<String, String> {
        if !matches!(self.state, State::InMemory) {
            self.flush();
        }
        let outputs = &self.outputs;
        let published = match &self.state {
            State::InMemory => write_file(outputs, name, self.buffer.len() as u64, |file| {
                outputs.secrets.copy_redacted(&self.buffer[..], file)
            }),
            State::InFile(region) => write_file(outputs, name, region.kept(), |file| {
                region.copy_to(file, &outputs.secrets)
            }),
            State::Failed(reason) => return Err(reason.clone()),
        };
        published.map_err(|error| reason(&error))?;
        Ok(format!("{GUEST_FOLDER}/{name}"))
    }

    fn flush(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer);
        buffer.clear();
        self.buffer = buffer;
    }

    fn write(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if matches!(self.state, State::InMemory) {
            self.state = match self.open() {
                Ok(region) => State::InFile(region),
                Err(error) => State::Failed(reason(&error)),
            };
        }
        if let State::InFile(region) = &mut self.state
            && let Err(error) = region.write(bytes)
        {
            self.state = State::Failed(reason(&error));
        }
    }

    fn open(&self) -> io::Result<Region> {
        make_folder(&self.outputs.folder)?;
        let file = tempfile::tempfile_in(&self.outputs.folder)?;
        Ok(Region::new(file, Arc::clone(&self.outputs)))
    }
}

/// A new private file of this name, written by `write`. Of one that cannot be written whole nothing stays.
fn write_file(
    outputs: &Outputs,
    name: &str,
    length: u64,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    if !outputs.reserve(length) {
        return Err(super::region::used_up());
    }
    let written = make_folder(&outputs.folder).and_then(|()| {
        let path = outputs.folder.join(name);
        let mut file = create(&path)?;
        write(&mut file).inspect_err(|_| {
            let _ = fs::remove_file(&path);
        })
    });
    if written.is_err() {
        outputs.release(length);
    }
    written
}

fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
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
