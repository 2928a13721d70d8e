//! Where the files of a Trace lie: `agents/<agent>/traces/<yyyy-mm-dd>/<session>_<NNN>.jsonl`, the date being the local day on which
//! the file was begun.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use floe_protocol::{AgentId, Home, SessionId};

use crate::TraceError;

/// How many Sessions a message names.
const NAMED: usize = 5;

/// The files of one Session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFiles {
    /// The Session.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// In the order in which they were written.
    pub files: Vec<PathBuf>,
}

/// A file's place in its Session, by its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileName {
    pub(crate) session: SessionId,
    /// From 1.
    pub(crate) index: u32,
}

impl FileName {
    pub(crate) fn parse(path: &Path) -> Option<FileName> {
        let stem = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
        let (session, index) = stem.rsplit_once('_')?;
        if index.len() < 3 || !index.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(FileName {
            session: session.parse().ok()?,
            index: index.parse().ok()?,
        })
    }
}

/// The path of a file that is begun now.
pub(crate) fn path_of_today(
    home: &Home,
    agent: &AgentId,
    session: &SessionId,
    index: u32,
) -> PathBuf {
    let today = jiff::ZonedDateTime::now().strftime("%Y-%m-%d").to_string();
    home.traces(agent)
        .join(today)
        .join(format!("{session}_{index:03}.jsonl"))
}

/// Makes a folder and those above it, for this user only.
pub(crate) fn create_folder(path: &Path) -> Result<(), TraceError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(TraceError::io("create", path))
}

/// The files of exactly this Session, in order; empty where there are none.
pub(crate) fn of_session(
    home: &Home,
    agent: &AgentId,
    session: &SessionId,
) -> Result<Vec<PathBuf>, TraceError> {
    let mut files = Vec::new();
    each_file(home, agent, |name, path| {
        if name.session == *session {
            files.push((name.index, path));
        }
    })?;
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// The Traces of all agents.
pub(crate) fn all(home: &Home) -> Result<Vec<TraceFiles>, TraceError> {
    let mut found = Vec::new();
    for folder in folders(&home.agents())? {
        let Some(agent) = name_of(&folder).and_then(|name| name.parse::<AgentId>().ok()) else {
            continue;
        };
        let mut files = Vec::new();
        each_file(home, &agent, |name, path| files.push((name, path)))?;
        files.sort();
        for (name, path) in files {
            match found.last_mut() {
                Some(TraceFiles {
                    session,
                    agent: same,
                    files,
                }) if *session == name.session && *same == agent => files.push(path),
                _ => found.push(TraceFiles {
                    session: name.session,
                    agent: agent.clone(),
                    files: vec![path],
                }),
            }
        }
    }
    Ok(found)
}

/// The Trace of the Session `id`, or of the only one whose name begins with it.
pub fn find(home: &Home, id: &str) -> Result<TraceFiles, TraceError> {
    let mut all = all(home)?;
    let exact = all.iter().position(|trace| trace.session.as_str() == id);
    if let Some(exact) = exact {
        return Ok(all.swap_remove(exact));
    }
    all.sort_by(|a, b| b.session.cmp(&a.session));
    let names = |traces: &[TraceFiles]| -> Vec<String> {
        traces
            .iter()
            .take(NAMED)
            .map(|trace| trace.session.to_string())
            .collect()
    };
    let mut matches: Vec<TraceFiles> = Vec::new();
    if !id.is_empty() {
        matches.extend(
            all.iter()
                .filter(|trace| trace.session.as_str().starts_with(id))
                .cloned(),
        );
    }
    match matches.len() {
        1 => Ok(matches.remove(0)),
        0 => Err(TraceError::NotFound {
            id: id.to_owned(),
            newest: names(&all),
        }),
        _ => Err(TraceError::Ambiguous {
            id: id.to_owned(),
            matches: names(&matches),
        }),
    }
}

fn each_file(
    home: &Home,
    agent: &AgentId,
    mut visit: impl FnMut(FileName, PathBuf),
) -> Result<(), TraceError> {
    for day in folders(&home.traces(agent))? {
        for path in entries(&day)? {
            if let Some(name) = FileName::parse(&path) {
                visit(name, path);
            }
        }
    }
    Ok(())
}

fn folders(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    Ok(entries(path)?
        .into_iter()
        .filter(|path| path.is_dir())
        .collect())
}

fn entries(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let read = match fs::read_dir(path) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(TraceError::io("read", path)(error)),
    };
    read.map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()
        .map_err(TraceError::io("read", path))
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}
