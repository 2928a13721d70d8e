//! The end of work that a call left behind when it returned.

use serde::{Deserialize, Serialize};

use crate::StopReason;

/// What has ended (spec/environment.md 1.5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundTask {
    /// What kind of work it was.
    pub kind: BackgroundKind,
    /// The id under which the call left it.
    pub id: String,
    /// What it was asked to do: one line of at most 120 characters.
    pub label: String,
    /// `completed` or `failed`.
    pub status: StopReason,
    /// How it ended: `exit code 0`, `terminated by signal SIGTERM`.
    pub detail: String,
    /// The end of its output that nobody has read.
    pub output: String,
}

/// Kinds of work that go on behind a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackgroundKind {
    /// A native command.
    Command,
}

impl BackgroundKind {
    /// Its word in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            BackgroundKind::Command => "command",
        }
    }
}
