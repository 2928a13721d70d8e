//! What can go wrong with a Trace. Shown to the person at the command line.

use std::io;
use std::path::{Path, PathBuf};

/// Why a Trace could not be written, found or read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system failed.
    #[error("cannot {action} {}: {source}", path.display())]
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
    /// Another process writes this Trace.
    #[error("{} is being written by another process; wait until its Session ends", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// No Session by that name.
    #[error("no Trace of a Session `{}`; {}", crate::visible(id), existing(newest))]
    NotFound {
        /// As it was asked for.
        id: String,
        /// The newest that exist.
        newest: Vec<String>,
    },
    /// More than one Session begins so.
    #[error("`{}` is the beginning of more than one Session: {}; give more of the name", crate::visible(id), matches.join(", "))]
    Ambiguous {
        /// As it was asked for.
        id: String,
        /// Some of them.
        matches: Vec<String>,
    },
    /// A head that is none.
    #[error(
        "`{}` is no hash of a record; a head has 64 hexadecimal digits",
        crate::visible(head)
    )]
    BadHead {
        /// As it was given.
        head: String,
    },
    /// A head file that cannot be understood.
    #[error("{} is not the head of a Trace: {reason}; remove it to verify without it", path.display())]
    DamagedHead {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl TraceError {
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
