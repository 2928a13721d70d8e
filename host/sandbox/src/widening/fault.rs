//! Why a widening cannot be asked for. It is said to the model before any person is asked, so each reason ends with what to do.

use crate::error::SandboxError;

/// Why a widening cannot be asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WideningFault {
    /// The request itself is at fault, and whoever made it can put it right.
    #[error("{place}: {reason}")]
    Mistake {
        /// Where in the request: `read/0`, `hosts/2`.
        place: String,
        /// What is wrong with it, without a full stop.
        reason: String,
    },
    /// The request is sound, and nobody can allow it here.
    #[error("{0}")]
    Forbidden(String),
    /// The walls to be widened do not stand.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}
