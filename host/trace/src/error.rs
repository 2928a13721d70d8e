//! What can go wrong with a Trace. Shown to the person at the command line.

use std::io;
use std::path::{Path, PathBuf};

use crate::show::{shown, shown_path};

/// Why a Trace could not be written, found or read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system failed.
    #[error("cannot {action} {}: {source}", shown_path(path))]
    Io {
        /// What was tried: `write`, `create`, ...
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What it answered.
        source: io::Error,
    },
    /// A message that could not be put into JSON.
    #[error("cannot write a message of the Session as JSON: {0}")]
    Encode(#[from] serde_json::Error),
    /// A message that is longer than a line of a Trace may be.
    #[error("cannot write a message of {bytes} bytes; a record has {most} at most")]
    TooLong {
        /// Bytes of the record.
        bytes: usize,
        /// Bytes that a record may have.
        most: usize,
    },
    /// Another process writes this Trace.
    #[error(
        "{} is being written by another process; wait until its Session ends",
        shown_path(path)
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// No Session by that name.
    #[error("no Trace of a Session `{}`; {}", shown(id), existing(newest))]
    NotFound {
        /// As it was asked for.
        id: String,
        /// The newest that exist.
        newest: Vec<String>,
    },
    /// More than one Session begins so.
    #[error("`{}` is the beginning of more than one Session: {}; give more of the name", shown(id), matches.join(", "))]
    Ambiguous {
        /// As it was asked for.
        id: String,
        /// Some of them.
        matches: Vec<String>,
    },
    /// A head that is none.
    #[error(
        "`{}` is no hash of a record; a head has 64 hexadecimal digits",
        shown(head)
    )]
    BadHead {
        /// As it was given.
        head: String,
    },
    /// A head file that cannot be understood.
    #[error(
        "{} is not the head of a Trace: {}; remove it to verify without it",
        shown_path(path),
        shown(reason)
    )]
    DamagedHead {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl TraceError {
    /// What went wrong, in words that name no path of the host: for a model.
    pub fn without_path(&self) -> String {
        match self {
            TraceError::Io { action, source, .. } => format!("cannot {action} it: {source}"),
            TraceError::Encode(_) => "a message cannot be written as JSON".to_owned(),
            TraceError::TooLong { .. } => "a message is too long for a record".to_owned(),
            TraceError::InUse { .. } => "another process writes it".to_owned(),
            TraceError::NotFound { .. }
            | TraceError::Ambiguous { .. }
            | TraceError::BadHead { .. }
            | TraceError::DamagedHead { .. } => "it cannot be found or understood".to_owned(),
        }
    }

    /// True where the file or folder was taken away, perhaps just now.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, TraceError::Io { source, .. } if is_gone(source))
    }

    pub(crate) fn io(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> TraceError + use<> {
        let path = path.to_owned();
        move |source| TraceError::Io {
            action,
            path,
            source,
        }
    }
}

/// True where there is nothing at a path, or no folder above it.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn existing(newest: &[String]) -> String {
    if newest.is_empty() {
        "there are none yet".to_owned()
    } else {
        format!(
            "the newest are {}; `floe trace list` shows all",
            newest.join(", ")
        )
    }
}
