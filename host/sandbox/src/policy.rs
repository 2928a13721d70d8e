//! What the operator allows: which parts of the machine a command may see and change, and how much of it it may use.
//!
//! Plain data with safe defaults. It is resolved by the host before anything is spawned; a tool never passes one, and
//! nothing here is read from the Workspace.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::SandboxError;
use crate::layer::MinimumTier;
use crate::pattern::Pattern;

/// What a Session's commands may see, change and use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Whether commands may change the Workspace.
    pub workspace: WorkspaceMode,
    /// What commands may reach over the network.
    pub network: Network,
    /// The hosts that they may reach through the proxy, as the crate `floe-network` reads them; none is the default.
    pub allow_hosts: Vec<String>,
    /// Further paths outside the Workspace that commands may read. `~` is the person's home.
    pub extra_read: Vec<PathBuf>,
    /// Further paths outside the Workspace that commands may read and change. `~` is the person's home.
    pub extra_write: Vec<PathBuf>,
    /// Files and folders of the Workspace whose content commands and tools may not read, as `NAME`, `**/NAME` (both: at any depth) or
    /// `FOLDER/NAME` from the Workspace's root; `*` stands for anything but `/`.
    pub deny_read: Vec<String>,
    /// Paths of the Workspace that commands may not change, beside [`crate::PROTECTED`]; relative to its root.
    pub protect: Vec<PathBuf>,
    /// What to do about files of the Workspace that have a further name elsewhere.
    pub hard_links: HardLinks,
    /// How far the Workspace is searched for nested repositories and for what `deny_read` names.
    pub search: Search,
    /// How much of the machine one command may use.
    pub limits: Limits,
    /// The weakest set of walls that commands may run in.
    pub minimum_tier: MinimumTier,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            workspace: WorkspaceMode::default(),
            network: Network::default(),
            allow_hosts: Vec::new(),
            extra_read: Vec::new(),
            extra_write: Vec::new(),
            deny_read: Pattern::FILES_ONLY.map(Into::into).to_vec(),
            protect: Vec::new(),
            hard_links: HardLinks::default(),
            search: Search::default(),
            limits: Limits::default(),
            minimum_tier: MinimumTier::default(),
        }
    }
}

impl Policy {
    /// What of it holds for one command whose tool may do no more than `most` with the Workspace.
    ///
    /// Every grant is the intersection of both, every denial is in force whoever made it. A person's widening of a single
    /// command is not part of a policy.
    #[must_use]
    pub fn for_command(&self, most: WorkspaceMode) -> Policy {
        Policy {
            workspace: self.workspace.min(most),
            ..self.clone()
        }
    }

    /// What `deny_read` says of files by their paths relative to the Workspace, for whoever reads it without a command.
    ///
    /// # Errors
    ///
    /// A pattern that could mean several things.
    pub fn denies_reading(
        &self,
    ) -> Result<impl Fn(&Path) -> bool + Send + Sync + use<>, SandboxError> {
        let patterns = self.hidden()?;
        Ok(move |path: &Path| {
            let mut above = path.ancestors().skip(1);
            patterns.iter().any(|pattern| pattern.matches(path))
                || above.any(|folder| {
                    patterns
                        .iter()
                        .any(|pattern| pattern.matches_folder(folder))
                })
        })
    }

    /// As [`Policy::denies_reading`], of folders, which are hidden with all that they hold.
    pub(crate) fn denies_entering(&self) -> Result<impl Fn(&Path) -> bool + use<>, SandboxError> {
        let patterns = self.hidden()?;
        Ok(move |path: &Path| patterns.iter().any(|pattern| pattern.matches_folder(path)))
    }

    fn hidden(&self) -> Result<Vec<Pattern>, SandboxError> {
        let patterns = self.deny_read.iter().map(|text| Pattern::parse(text));
        patterns.collect()
    }
}

/// Whether commands may change the Workspace. The lesser allows less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceMode {
    /// The Workspace is mounted read-only; the private `/tmp` and `$HOME` stay writable.
    ReadOnly,
    /// Commands may write in the Workspace, except to the protected paths.
    #[default]
    WorkspaceWrite,
}

/// What commands may reach over the network. The lesser allows less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// Nothing but a loopback of their own, which the commands of one Session share.
    #[default]
    Off,
    /// That loopback, and on it the host's proxy, which leads to the allowed hosts and nowhere else.
    Proxy,
    /// All that the machine itself reaches, its own loopback included: commands have no network of their own.
    Host,
}

/// What to do about files of the Workspace that have a further name elsewhere: no wall stands between two names of one
/// file, so a command that may write to it writes to whatever lies there too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HardLinks {
    /// Tell the person at the Session's first command.
    #[default]
    Warn,
    /// Refuse the Session's commands.
    Deny,
}

/// How far the Workspace is searched, once per Session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Search {
    /// How many folders deep; 1 is the Workspace's root alone.
    pub depth: u32,
    /// How many entries are looked at before the Session's commands are refused.
    pub entries: u64,
}

impl Default for Search {
    fn default() -> Search {
        Search {
            depth: 6,
            entries: 500_000,
        }
    }
}

/// How much of the machine one command, with all its children, may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Processes and threads alive at once.
    pub pids: u32,
    /// The size of one file, in MiB.
    pub file_mb: u64,
    /// Open descriptors per process.
    pub open_files: u64,
    /// The size of `/dev/shm`, in MiB.
    pub shared_memory_mb: u64,
    /// The memory of all its processes together, in MiB; above it the command is ended.
    pub memory_mb: u64,
    /// What the Session's `/tmp` and home folder may hold, in MiB; above it the command is ended.
    pub tmp_mb: u64,
    /// What must stay free on the Workspace's disk, in MiB; below it the command is ended.
    pub free_mb: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            pids: 512,
            file_mb: 4096,
            open_files: 4096,
            shared_memory_mb: 1024,
            memory_mb: 4096,
            tmp_mb: 1024,
            free_mb: 512,
        }
    }
}
