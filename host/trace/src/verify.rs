//! Whether a Trace is as it was written: every byte of every record, their order, and, with a head, their end.

use std::fmt;
use std::path::{Path, PathBuf};

use floe_protocol::{AgentId, Home, SessionId};

use crate::chain::{Anchor, Chain};
use crate::files::{FileName, of_session};
use crate::head::Head;
use crate::read::open;
use crate::seal::RecordHash;
use crate::show::shown_path;
use crate::{TraceError, find};

/// What is verified.
#[derive(Clone, Debug)]
pub enum VerifyTarget<'h> {
    /// All files of a Session, by its name or the beginning of it, against its kept head.
    Session {
        /// Where it is kept.
        home: &'h Home,
        /// Its name.
        id: String,
    },
    /// One file. In its place below `FLOE_HOME` it is verified with the other files of its Session and against the kept head; a copy
    /// elsewhere stands alone.
    File(PathBuf),
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// It is not what was written there.
    Changed,
    /// Records before it are gone.
    Missing,
    /// It was written elsewhere, or is there twice.
    Reordered,
    /// The end is gone.
    CutOff,
    /// It is not a JSON object.
    NotJson,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FaultKind::Changed => "changed",
            FaultKind::Missing => "missing",
            FaultKind::Reordered => "reordered",
            FaultKind::CutOff => "cut off",
            FaultKind::NotJson => "not JSON",
        })
    }
}

/// One fault, with its place. Shown as `FILE:LINE: KIND: DETAIL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u64,
    /// What is wrong.
    pub kind: FaultKind,
    /// More about it, for a person.
    pub detail: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}: {}",
            shown_path(&self.file),
            self.line,
            self.kind,
            self.detail
        )
    }
}

/// What is known about the end of a Trace whose lines fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The last record is the head.
    Anchored,
    /// There is no head, so that nobody can tell whether more followed.
    NotAnchored,
    /// The head fits, and so many records follow it: the Session runs, or ended without writing its head.
    Beyond(u64),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Anchored => f.write_str("end anchored"),
            End::NotAnchored => f.write_str("end not anchored"),
            End::Beyond(1) => f.write_str("end not anchored: 1 record after the head"),
            End::Beyond(records) => {
                write!(f, "end not anchored: {records} records after the head")
            }
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The files in order.
    pub files: Vec<PathBuf>,
    /// Records that are intact.
    pub records: u64,
    /// Torn lines that a later writer ended and recorded.
    pub healed: u64,
    /// The hash of the last intact record.
    pub last_hash: Option<String>,
    /// What is known about the end.
    pub end: End,
    /// By file and line; empty where all fits. Of each kind at most a thousand, then one more that says how many follow.
    pub faults: Vec<Fault>,
}

impl Verification {
    /// True where nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Verifies a Trace. `head` is the hash of the last record as somebody noted it, in the place of the kept head; then it has to be the
/// last.
pub fn verify(target: &VerifyTarget<'_>, head: Option<&str>) -> Result<Verification, TraceError> {
    let given = head
        .map(|head| {
            RecordHash::parse(head.trim().to_ascii_lowercase().as_bytes()).ok_or_else(|| {
                TraceError::BadHead {
                    head: head.to_owned(),
                }
            })
        })
        .transpose()?;
    let mut alone = false;
    let (files, kept, missing) = match target {
        VerifyTarget::Session { home, id } => in_home(home, id)?,
        VerifyTarget::File(path) => match home_of(path)? {
            Some((home, session)) => in_home(&home, session.as_str())?,
            None => {
                alone = true;
                (vec![path.clone()], None, path.clone())
            }
        },
    };
    let anchor = match (given, kept) {
        (Some(hash), _) => Anchor::Given(hash),
        (None, Some(head)) => Anchor::kept(&head),
        (None, None) => Anchor::None,
    };
    let mut chain = Chain::new(anchor);
    if alone {
        chain.may_start_later = FileName::parse(&files[0]).is_some_and(|name| name.index > 1);
    }
    for (index, file) in files.iter().enumerate() {
        chain
            .file(index, open(file)?)
            .map_err(TraceError::io("read", file))?;
    }
    Ok(chain.end(files, &missing))
}

/// The files and the kept head of a Session, and what to name where all files are gone and only the head is there.
fn in_home(home: &Home, id: &str) -> Result<(Vec<PathBuf>, Option<Head>, PathBuf), TraceError> {
    let (session, files) = match (find(home, id), id.parse::<SessionId>()) {
        (Ok(found), _) => (found.session, found.files),
        (Err(error), Err(_)) => return Err(error),
        (Err(error), Ok(session)) => match Head::load(home, &session)? {
            Some(_) => (session, Vec::new()),
            None => return Err(error),
        },
    };
    let head = Head::load(home, &session)?;
    Ok((files, head, home.head(&session)))
}

/// The home and the Session of a file that lies in its place. Where that cannot be seen it is an error: the file must not pass for a
/// copy, which stands without its head.
fn home_of(path: &Path) -> Result<Option<(Home, SessionId)>, TraceError> {
    let Some((path, home, agent, session)) = layout_of(path) else {
        return Ok(None);
    };
    let in_place = of_session(&home, &agent, &session)?.contains(&path);
    Ok(in_place.then_some((home, session)))
}

/// Reads home, agent and Session off a path.
fn layout_of(path: &Path) -> Option<(PathBuf, Home, AgentId, SessionId)> {
    let path = path.canonicalize().ok()?;
    let session = FileName::parse(&path)?.session;
    let traces = path.parent()?.parent()?;
    let agent = traces.parent()?;
    let home = Home::new(agent.parent()?.parent()?);
    let name = agent.file_name()?.to_str()?.parse().ok()?;
    (home.traces(&name) == traces).then_some((path, home, name, session))
}
