//! What Traces there are.

use std::fs::{self, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use floe_protocol::{AgentId, Body, Home, OmniMessage, SessionId, Source};
use serde::Serialize;

use crate::files::{Found, TraceFiles, all};
use crate::head::Head;
use crate::lines::{LONGEST, Lines};
use crate::seal::{RecordHash, unseal};
use crate::{TraceError, regular};

/// So much is read of a first record, in bytes: it holds a system prompt, and the other files have to be listed too.
const LONGEST_FIRST: u64 = 16 * 1024 * 1024;

/// How a Session stands, by its Trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceState {
    /// A process writes it now.
    Running,
    /// Its last record is its head: it ended in order.
    Ended,
    /// Nobody writes it, and its last record is not its head.
    Interrupted,
}

/// One Session's Trace in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceSummary {
    /// The Session.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentId,
    /// When it began, ISO 8601 in UTC; absent where the first record cannot be read, as for the fields that come from it.
    pub started: Option<String>,
    /// The Workspace.
    pub workspace: Option<String>,
    /// The model; absent where there is none.
    pub model: Option<String>,
    /// What started it, where it was not a person.
    pub source: Option<Source>,
    /// How many records it has.
    pub records: u64,
    /// How it stands; `Interrupted` where that cannot be read.
    pub state: TraceState,
    /// Why its files cannot be read, where they cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Its files.
    pub files: Vec<PathBuf>,
}

/// All Traces, the newest first. Of each, the beginning and the end are read, not all of it.
///
/// A Trace that is taken away meanwhile is left out, and one whose files cannot be read is listed with its fault. A folder that cannot be
/// read is an error, since nobody can tell what is in it.
pub fn list(home: &Home) -> Result<Vec<TraceSummary>, TraceError> {
    let Found { traces, faults } = all(home)?;
    if let Some((_, fault)) = faults.into_iter().next() {
        return Err(fault);
    }
    let mut summaries: Vec<TraceSummary> = traces
        .into_iter()
        .filter_map(|trace| summary(home, trace))
        .collect();
    summaries.sort_by(|a, b| (&b.started, &b.session).cmp(&(&a.started, &a.session)));
    Ok(summaries)
}

/// `None` where the Trace is not there any more.
fn summary(home: &Home, trace: TraceFiles) -> Option<TraceSummary> {
    let mut summary = TraceSummary {
        session: trace.session,
        agent: trace.agent,
        started: None,
        workspace: None,
        model: None,
        source: None,
        records: 0,
        state: TraceState::Interrupted,
        fault: None,
        files: trace.files,
    };
    if let Err(error) = look(home, &mut summary) {
        // A link to nothing is still there, and its fault is worth telling.
        let is_gone = |path: &PathBuf| fs::symlink_metadata(path).is_err();
        if error.is_gone() && summary.files.iter().all(is_gone) {
            return None;
        }
        summary.fault = Some(error.to_string());
    }
    Some(summary)
}

/// Fills in what the first and the last file say.
fn look(home: &Home, summary: &mut TraceSummary) -> Result<(), TraceError> {
    let (Some(first), Some(last)) = (summary.files.first(), summary.files.last()) else {
        return Ok(());
    };
    if let Some(message) = first_message(first).map_err(TraceError::io("read", first))? {
        summary.started = Some(message.timestamp);
        if let Body::SessionMeta(meta) = message.body {
            summary.workspace = Some(meta.workspace);
            summary.model = meta.model_id;
            summary.source = meta.source;
        }
    }
    let is_running = is_written(last)?;
    let last = last_of(last).map_err(TraceError::io("read", last))?;
    summary.records = last.map_or(0, |(seq, _)| seq + 1);
    if is_running {
        summary.state = TraceState::Running;
    } else if ends_in_its_head(home, &summary.session, last) {
        summary.state = TraceState::Ended;
    }
    Ok(())
}

fn first_message(path: &Path) -> io::Result<Option<OmniMessage>> {
    let beginning = regular::open(path)?.take(LONGEST_FIRST);
    let mut lines = Lines::new(BufReader::new(beginning));
    Ok(lines
        .next()?
        .and_then(|line| serde_json::from_slice(line.bytes).ok()))
}

/// A head that cannot be read is for `verify` to report; here it is none.
fn ends_in_its_head(home: &Home, session: &SessionId, last: Option<(u64, RecordHash)>) -> bool {
    match (Head::load(home, session).ok().flatten(), last) {
        (Some(head), Some((seq, hash))) => head.seq == seq && head.hash == hash.as_str(),
        _ => false,
    }
}

/// Whether a writer holds the file's lock.
fn is_written(path: &Path) -> Result<bool, TraceError> {
    let file = regular::open(path).map_err(TraceError::io("open", path))?;
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(TraceError::io("lock", path)(error)),
    }
}

/// The last intact record of a file, looked for from its end. `None` also where none is within the length of the longest record.
fn last_of(path: &Path) -> io::Result<Option<(u64, RecordHash)>> {
    let mut file = regular::open(path)?;
    let size = file.metadata()?.len();
    let mut length = 16 * 1024;
    loop {
        let start = size.saturating_sub(length);
        file.seek(SeekFrom::Start(start))?;
        let mut tail = Vec::new();
        (&file).take(size - start).read_to_end(&mut tail)?;
        let mut lines = tail.split(|byte| *byte == b'\n');
        if start > 0 {
            // It began before.
            lines.next();
        }
        let last = lines
            .rev()
            .find_map(|line| unseal(line).filter(|seal| seal.intact));
        match last {
            Some(seal) => return Ok(Some((seal.seq, seal.hash))),
            None if start == 0 || length >= LONGEST as u64 => return Ok(None),
            None => length *= 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use floe_protocol::{ApprovalMode, Mode, ModelMsg, SessionMeta};

    use super::*;
    use crate::TraceWriter;

    fn begin(home: &Home, session: &str) -> TraceWriter {
        let mut writer = TraceWriter::create(home, &AgentId::default(), &session.parse().unwrap());
        let meta = SessionMeta {
            session_id: session.to_owned(),
            provider: None,
            model_id: Some("script:a.yaml".to_owned()),
            model_context_window: "unknown".into(),
            system_prompt: "x".repeat(50_000),
            agent_state: String::new(),
            workspace: "/home/ada/engine".to_owned(),
            source: Some(Source::Call),
            mode: Mode::Build,
            approval_mode: ApprovalMode::AllowAll,
        };
        writer
            .append(&OmniMessage::new(Body::SessionMeta(meta)))
            .unwrap();
        writer
    }

    #[test]
    fn traces_are_listed_newest_first_with_what_they_are_and_how_they_stand() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        assert_eq!(list(&home).unwrap(), []);
        let mut ended = begin(&home, "session-1");
        let large = ModelMsg::user_text("y".repeat(100_000));
        ended.append(&OmniMessage::model(large)).unwrap();
        ended.sync().unwrap();
        drop(ended);
        let mut interrupted = begin(&home, "session-2");
        interrupted.sync().unwrap();
        interrupted.rotate().unwrap();
        let text = OmniMessage::model(ModelMsg::user_text("z"));
        interrupted.append(&text).unwrap();
        let path = interrupted.path().unwrap().to_owned();
        drop(interrupted);
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(b"{\"torn").unwrap();
        let running = begin(&home, "session-3");

        let mut listed = list(&home).unwrap();
        // Those of one millisecond are ordered by their names.
        let names: Vec<_> = listed.iter().map(|trace| trace.session.as_str()).collect();
        assert_eq!(names, ["session-3", "session-2", "session-1"]);
        let stands: Vec<_> = listed
            .iter()
            .map(|trace| (trace.state, trace.records, trace.files.len()))
            .collect();
        assert_eq!(
            stands,
            [
                (TraceState::Running, 1, 1),
                (TraceState::Interrupted, 2, 2),
                (TraceState::Ended, 2, 1),
            ]
        );
        let first = listed.pop().unwrap();
        assert_eq!(first.workspace.as_deref(), Some("/home/ada/engine"));
        assert_eq!(first.model.as_deref(), Some("script:a.yaml"));
        assert_eq!(first.source, Some(Source::Call));
        assert!(first.started.is_some());
        drop(running);
    }
}
