//! What one command may reach beyond the Session's policy, because the person said so.
//!
//! A widening is made by the host from what a tool's call asks for, checked before the person is asked and bound to what the
//! person saw: a path is granted as the file or folder that it led to at that moment, not as a name.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What one command may reach beyond the Session's policy. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Widening {
    /// Files and folders, with all below them, that it may read.
    pub read: Vec<GrantedPath>,
    /// Files and folders, with all below them, that it may read and change.
    pub write: Vec<GrantedPath>,
    /// Hosts, as `name:port`, that it may reach.
    pub hosts: Vec<String>,
}

impl Widening {
    /// Whether it grants nothing.
    pub fn is_empty(&self) -> bool {
        let Widening { read, write, hosts } = self;
        read.is_empty() && write.is_empty() && hosts.is_empty()
    }
}

/// A file or folder outside the Workspace that the person granted: a canonical path and what it led to.
///
/// A command only gets it while the path still leads to that very file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantedPath {
    /// Absolute, without links, `.` and `..`.
    path: PathBuf,
    /// The device that it was on.
    device: u64,
    /// Its number there.
    inode: u64,
}

impl GrantedPath {
    /// The canonical path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The device and the inode that the path led to when it was granted.
    pub fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }
}
