//! Where the files of a Trace lie: `agents/<agent>/traces/<yyyy-mm-dd>/<session>_<NNN>.jsonl`, the date being the local day on which
//! the file was begun.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use floe_protocol::{AgentId, Home, SessionId};

use crate::TraceError;
use crate::error::is_gone;

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

/// What Traces there are, as far as that can be seen.
pub(crate) struct Found {
    pub(crate) traces: Vec<TraceFiles>,
    /// Agents of whom there may be more, and why it cannot be seen.
    pub(crate) faults: Vec<(AgentId, TraceError)>,
}

/// The Traces of all agents. What is taken away meanwhile is left out.
pub(crate) fn all(home: &Home) -> Result<Found, TraceError> {
    let mut traces: Vec<TraceFiles> = Vec::new();
    let mut faults = Vec::new();
    for folder in folders(&home.agents())? {
        let Some(agent) = name_of(&folder).and_then(|name| name.parse::<AgentId>().ok()) else {
            continue;
        };
        let mut files = Vec::new();
        if let Err(fault) = each_file(home, &agent, |name, path| files.push((name, path))) {
            faults.push((agent.clone(), fault));
        }
        files.sort();
        for (name, path) in files {
            match traces.last_mut() {
                Some(trace) if trace.session == name.session && trace.agent == agent => {
                    trace.files.push(path);
                }
                _ => traces.push(TraceFiles {
                    session: name.session,
                    agent: agent.clone(),
                    files: vec![path],
                }),
            }
        }
    }
    Ok(Found { traces, faults })
}

/// The Trace of the Session `id`, or of the only one whose name begins with it.
///
/// A folder that cannot be read is an error where a part of the answer may lie in it.
pub fn find(home: &Home, id: &str) -> Result<TraceFiles, TraceError> {
    let Found { mut traces, faults } = all(home)?;
    let exact = traces.iter().position(|trace| trace.session.as_str() == id);
    if let Some(exact) = exact {
        let found = traces.swap_remove(exact);
        return match faults.into_iter().find(|(agent, _)| *agent == found.agent) {
            Some((_, fault)) => Err(fault),
            None => Ok(found),
        };
    }
    if let Some((_, fault)) = faults.into_iter().next() {
        return Err(fault);
    }
    traces.sort_by(|a, b| b.session.cmp(&a.session));
    let names = |traces: &[TraceFiles]| -> Vec<String> {
        let named = traces.iter().take(NAMED);
        named.map(|trace| trace.session.to_string()).collect()
    };
    let begins = |trace: &TraceFiles| !id.is_empty() && trace.session.as_str().starts_with(id);
    let mut matches: Vec<TraceFiles> = traces
        .iter()
        .filter(|trace| begins(trace))
        .cloned()
        .collect();
    match matches.len() {
        1 => Ok(matches.remove(0)),
        0 => Err(TraceError::NotFound {
            id: id.to_owned(),
            newest: names(&traces),
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

/// The folders in a folder. What may not even be looked at counts as one, so that reading it says why.
fn folders(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let mut paths = entries(path)?;
    paths.retain(|path| match fs::metadata(path) {
        Ok(found) => found.is_dir(),
        Err(error) => !is_gone(&error),
    });
    Ok(paths)
}

/// What is in a folder; nothing where there is none.
fn entries(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let read = match fs::read_dir(path) {
        Ok(read) => read,
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        Err(error) => return Err(TraceError::io("read", path)(error)),
    };
    read.map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()
        .map_err(TraceError::io("read", path))
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}
