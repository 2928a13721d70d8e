//! What a command used more of than the operator allows, and was ended for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The limit that a command went over. Its `Display` names the limit, its key in the configuration, and what was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Excess {
    /// The memory of all its processes.
    Memory {
        /// `shell.limits.memory_mb`.
        limit_mb: u64,
    },
    /// What lies in the Session's `/tmp` and home folder.
    Temporary {
        /// `shell.limits.tmp_mb`.
        limit_mb: u64,
    },
    /// The free space of a disk that it writes to: the Workspace's, or that of `/tmp` and the home folder.
    DiskSpace {
        /// `shell.limits.free_mb`.
        limit_mb: u64,
    },
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Excess::Memory { limit_mb } => write!(
                f,
                "its processes used more than {limit_mb} MiB of memory (shell.limits.memory_mb)"
            ),
            Excess::Temporary { limit_mb } => write!(
                f,
                "/tmp and the home folder held more than {limit_mb} MiB (shell.limits.tmp_mb)"
            ),
            Excess::DiskSpace { limit_mb } => write!(
                f,
                "less than {limit_mb} MiB were left free on the disk (shell.limits.free_mb)"
            ),
        }
    }
}
