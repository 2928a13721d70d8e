//! Reading a Trace that may be damaged: what is good comes out, what is not is named, and reading goes on.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use floe_protocol::OmniMessage;

use crate::TraceError;
use crate::lines::Lines;
use crate::seal::{RecordHash, unseal};
use crate::writer::Torn;

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its line in the file, from 1.
    pub line: u64,
    /// Its number in the Session, from 0; `None` where the line has no seal.
    pub seq: Option<u64>,
    /// True where the line's hash is right. Whether the record stands in its place is for [`crate::verify()`] to say.
    pub intact: bool,
    /// What it says.
    pub message: OmniMessage,
}

/// A line that is no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ReadFault {
    /// From 1.
    pub line: u64,
    /// Why.
    pub reason: String,
}

/// The records of one file in order. A line that is none is an error in its place, and the next one follows.
pub fn read(
    path: &Path,
) -> Result<impl Iterator<Item = Result<Record, ReadFault>> + use<>, TraceError> {
    each_line(path, |line, bytes| {
        let message = serde_json::from_slice(bytes).map_err(|error| ReadFault {
            line,
            reason: error.to_string(),
        })?;
        let seal = unseal(bytes);
        Ok(Record {
            line,
            seq: seal.map(|seal| seal.seq),
            intact: seal.is_some_and(|seal| seal.intact),
            message,
        })
    })
}

/// The lines of one file byte for byte, without their newlines. A line that is not a JSON object is an error in its place.
pub fn raw_lines(
    path: &Path,
) -> Result<impl Iterator<Item = Result<Vec<u8>, ReadFault>> + use<>, TraceError> {
    each_line(path, |line, bytes| {
        if is_json_object(bytes) {
            Ok(bytes.to_owned())
        } else {
            Err(ReadFault {
                line,
                reason: "not JSON".to_owned(),
            })
        }
    })
}

pub(crate) fn is_json_object(bytes: &[u8]) -> bool {
    bytes.starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

/// How the file of a Trace ends.
pub(crate) struct FileEnd {
    /// Number and hash of the last intact record.
    pub(crate) last: Option<(u64, RecordHash)>,
    /// A last line without a newline.
    pub(crate) torn: Option<Torn>,
}

pub(crate) fn last_record(path: &Path) -> Result<FileEnd, TraceError> {
    let mut end = FileEnd {
        last: None,
        torn: None,
    };
    let mut lines = open(path)?;
    while let Some(line) = lines.next().map_err(TraceError::io("read", path))? {
        let seal = unseal(line.bytes).filter(|seal| seal.intact);
        if !line.ended {
            let bytes = if seal.is_some() { 0 } else { line.bytes.len() };
            end.torn = Some(Torn {
                bytes: bytes as u64,
                open: true,
            });
        }
        if let Some(seal) = seal {
            end.last = Some((seal.seq, seal.hash));
        }
    }
    Ok(end)
}

pub(crate) fn open(path: &Path) -> Result<Lines<BufReader<File>>, TraceError> {
    let file = File::open(path).map_err(TraceError::io("open", path))?;
    Ok(Lines::new(BufReader::with_capacity(64 * 1024, file)))
}

fn each_line<T, P>(
    path: &Path,
    parse: P,
) -> Result<impl Iterator<Item = Result<T, ReadFault>> + use<T, P>, TraceError>
where
    P: Fn(u64, &[u8]) -> Result<T, ReadFault>,
{
    let mut lines = Some(open(path)?);
    let mut number = 0;
    Ok(std::iter::from_fn(move || match lines.as_mut()?.next() {
        Ok(Some(line)) => {
            number = line.number;
            Some(parse(line.number, line.bytes))
        }
        Ok(None) => None,
        Err(error) => {
            lines = None;
            Some(Err(ReadFault {
                line: number + 1,
                reason: error.to_string(),
            }))
        }
    }))
}
