//! Why a request did not get its response, in words that a model can act on. No text here holds a secret or an address of the
//! machine that the request did not name itself.

use std::sync::Arc;
use std::time::Duration;

use super::denial::Denial;
use super::scrub::Scrub;

/// Makes the failure of a request whose whole time is over, from what was waited for.
pub(super) type Late = Arc<dyn Fn(&str) -> GateError + Send + Sync>;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The gate does not let it through.
    #[error("{0}")]
    Refused(Denial),
    /// It cannot be understood, or may not be written like this.
    #[error("{0}")]
    Invalid(String),
    /// What was waited for did not come in time.
    #[error("{what} took longer than {} s", .limit.as_secs_f32())]
    TimedOut {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
    },
    /// More came than may come.
    #[error("{0}")]
    TooLarge(String),
    /// The other side cannot be reached, or does not speak HTTP.
    #[error("{0}")]
    Failed(String),
}

impl GateError {
    pub(super) fn invalid(message: impl Into<String>) -> GateError {
        GateError::Invalid(message.into())
    }

    pub(super) fn failed(message: impl Into<String>) -> GateError {
        GateError::Failed(message.into())
    }

    /// The same without secrets: what another side chose, such as the host that it redirects to, may hold one that it was sent.
    pub(super) fn without(self, scrub: &Scrub) -> GateError {
        match self {
            GateError::Refused(denial) => GateError::Refused(Denial {
                host: scrub.text(&denial.host),
                ..denial
            }),
            GateError::Invalid(message) => GateError::Invalid(scrub.text(&message)),
            GateError::TimedOut { what, limit } => GateError::TimedOut {
                what: scrub.text(&what),
                limit,
            },
            GateError::TooLarge(message) => GateError::TooLarge(scrub.text(&message)),
            GateError::Failed(message) => GateError::Failed(scrub.text(&message)),
        }
    }

    /// The stable code, as tools see it.
    pub fn code(&self) -> &'static str {
        match self {
            GateError::Refused(_) => "denied-host",
            GateError::Invalid(_) => "invalid-args",
            GateError::TimedOut { .. } => "timeout",
            GateError::TooLarge(_) => "too-large",
            GateError::Failed(_) => "io",
        }
    }

    /// What to do about it, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            GateError::Refused(denial) => denial.why.remedy(),
            GateError::TooLarge(_) => Some("ask for less, or for a part"),
            _ => None,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, GateError::TimedOut { .. } | GateError::Failed(_))
    }

    /// What was refused, if that is why.
    pub fn denial(&self) -> Option<&Denial> {
        match self {
            GateError::Refused(denial) => Some(denial),
            _ => None,
        }
    }
}
