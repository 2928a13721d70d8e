//! The head of a Trace: which record is the last, kept apart from the Trace, so that a cut end is found.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use floe_protocol::{Home, SessionId};
use serde::{Deserialize, Serialize};

use crate::files::create_folder;
use crate::seal::RecordHash;
use crate::{TraceError, regular};

/// A head is far shorter.
const LONGEST: u64 = 4096;

/// The last record of a Session's Trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The Session.
    pub session: String,
    /// The number of its last record.
    pub seq: u64,
    /// The hash of that record.
    pub hash: String,
}

impl Head {
    /// The head that was kept for `session`, if one was.
    pub fn load(home: &Home, session: &SessionId) -> Result<Option<Head>, TraceError> {
        let path = home.head(session);
        let text = match read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(TraceError::io("read", &path)(error)),
        };
        let head: Head =
            serde_json::from_slice(&text).map_err(|error| TraceError::DamagedHead {
                path: path.clone(),
                reason: error.to_string(),
            })?;
        if head.session != session.as_str() || RecordHash::parse(head.hash.as_bytes()).is_none() {
            return Err(TraceError::DamagedHead {
                path,
                reason: "it is for another Session, or its hash is none".to_owned(),
            });
        }
        Ok(Some(head))
    }

    /// Writes the head so that after a crash there is either this one or the one before.
    pub(crate) fn store(&self, home: &Home, session: &SessionId) -> Result<(), TraceError> {
        let path = home.head(session);
        let folder = path.parent().unwrap_or(home.root());
        create_folder(folder)?;
        let temporary = path.with_extension("tmp");
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&temporary)?;
            let mut line = serde_json::to_vec(self)?;
            line.push(b'\n');
            file.write_all(&line)?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            sync_folder(folder)
        };
        write().map_err(TraceError::io("write", &path))
    }
}

/// What a head file holds; of one that is too long to be a head, enough to be refused.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    regular::open(path)?.take(LONGEST).read_to_end(&mut text)?;
    Ok(text)
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
