//! Why a message ended.

use serde::{Deserialize, Serialize};

/// Why a text, a tool call or a tool's output ended. Tools produce only the first three; the others belong to model requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It ran to its end.
    Completed,
    /// It could not do its work; the text says why.
    Failed,
    /// A person, a policy or an interrupt ended it.
    Aborted,
    /// The model did not answer in time.
    Timeout,
    /// What the model sent could not be understood.
    Malformed,
    /// The model's service refused the credentials.
    Auth,
}

impl StopReason {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            StopReason::Completed => "completed",
            StopReason::Failed => "failed",
            StopReason::Aborted => "aborted",
            StopReason::Timeout => "timeout",
            StopReason::Malformed => "malformed",
            StopReason::Auth => "auth",
        }
    }
}

impl std::fmt::Display for StopReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
