//! Why a question has no answer.

use floe_workspace::WorkspaceError;

/// Why a question has no answer. Its words are for a model: they name no path of the host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The question makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The file cannot be read.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// What was named is not there.
    #[error("{0}")]
    NotFound(String),
    /// No server answers such questions here.
    #[error("{message}")]
    Unsupported {
        /// What was looked for.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The server took too long. The same question may be answered later.
    #[error("{0}")]
    Timeout(String),
    /// The server did not start, went away, or refused.
    #[error("{0}")]
    Server(String),
}

impl QueryError {
    /// The code in the contract with tools.
    pub fn code(&self) -> &'static str {
        match self {
            QueryError::Invalid(_) => "invalid-args",
            QueryError::Workspace(error) => error.code(),
            QueryError::NotFound(_) => "not-found",
            QueryError::Unsupported { .. } => "unsupported",
            QueryError::Timeout(_) => "timeout",
            QueryError::Server(_) => "io",
        }
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            QueryError::Unsupported { hint, .. } => Some(hint),
            QueryError::Timeout(_) => {
                Some("Ask again: a server that has started and indexed answers faster.")
            }
            QueryError::Server(_) => Some(
                "Ask again. Where it ends each time the person has to mend it; grep and file_read do without it.",
            ),
            _ => None,
        }
    }

    /// Whether the same question may be answered later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, QueryError::Timeout(_) | QueryError::Server(_))
    }
}
