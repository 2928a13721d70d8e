//! Reading a Trace that may be damaged: what is good comes out, what is not is named, and reading goes on.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use floe_protocol::OmniMessage;

use crate::lines::{Line, Lines};
use crate::seal::{RecordHash, unseal};
use crate::show::short;
use crate::{TraceError, regular};

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
    /// Why, safe to show on a terminal.
    pub reason: String,
}

impl ReadFault {
    /// The reason may repeat what stands in the line.
    fn new(line: u64, reason: impl ToString) -> ReadFault {
        ReadFault {
            line,
            reason: short(&reason.to_string()),
        }
    }
}

/// The records of one file in order. A line that is none is an error in its place, and the next one follows.
pub fn read(
    path: &Path,
) -> Result<impl Iterator<Item = Result<Record, ReadFault>> + use<>, TraceError> {
    each_line(path, |line, bytes| {
        let message = serde_json::from_slice(bytes).map_err(|error| ReadFault::new(line, error))?;
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
            Err(ReadFault::new(line, "not JSON"))
        }
    })
}

/// True for a JSON object. Its text is checked first, because what is ignored is not looked at for being text.
pub(crate) fn is_json_object(bytes: &[u8]) -> bool {
    bytes.starts_with(b"{")
        && std::str::from_utf8(bytes)
            .is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
}

/// What follows the last record of a file and is none: lines that were not written to their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Torn {
    /// Without the newlines between them.
    pub(crate) bytes: u64,
    /// True where the last of them is not ended by a newline yet.
    pub(crate) open: bool,
}

/// How the file of a Trace ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileEnd {
    /// Number and hash of the last intact record.
    pub(crate) last: Option<(u64, RecordHash)>,
    /// What has to be healed. More than one line where a crash ended the healing: a line that was ended and no record after it, or
    /// a torn one.
    pub(crate) torn: Option<Torn>,
}

impl FileEnd {
    fn after(self, line: Line<'_>) -> FileEnd {
        if let Some(seal) = unseal(line.bytes).filter(|seal| seal.intact) {
            return FileEnd {
                last: Some((seal.seq, seal.hash)),
                torn: (!line.ended).then_some(Torn {
                    bytes: 0,
                    open: true,
                }),
            };
        }
        // A whole line of JSON was written by somebody, and changed: no healing explains it.
        let torn = (!line.ended || !is_json_object(line.bytes)).then(|| Torn {
            bytes: self.torn.map_or(0, |torn| torn.bytes) + line.length,
            open: !line.ended,
        });
        FileEnd {
            last: self.last,
            torn,
        }
    }
}

pub(crate) fn last_record(path: &Path) -> Result<FileEnd, TraceError> {
    let mut end = FileEnd {
        last: None,
        torn: None,
    };
    let mut lines = open(path)?;
    while let Some(line) = lines.next().map_err(TraceError::io("read", path))? {
        end = end.after(line);
    }
    Ok(end)
}

pub(crate) fn open(path: &Path) -> Result<Lines<BufReader<File>>, TraceError> {
    let file = regular::open(path).map_err(TraceError::io("open", path))?;
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
            Some(if line.is_too_long() {
                Err(ReadFault::new(number, "longer than any record"))
            } else {
                parse(number, line.bytes)
            })
        }
        Ok(None) => None,
        Err(error) => {
            lines = None;
            Some(Err(ReadFault::new(number + 1, error)))
        }
    }))
}
