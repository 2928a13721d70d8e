//! What the host tells the helper to build: plain data, sent as JSON in a sealed memfd.
//!
//! The helper decides nothing. All that depends on the policy, the person's machine or the Workspace's content is resolved
//! by the host and written down here, so that a plan can be read, tested and compared without running anything.

pub(crate) mod wrapped;

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::policy::Limits;

/// Bytes that are nearly always text: a JSON string where they are UTF-8, else an array of numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Bytes {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Raw(Vec<u8>),
}

impl Bytes {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Bytes::Text(text) => text.as_bytes(),
            Bytes::Raw(raw) => raw,
        }
    }

    pub(crate) fn as_path(&self) -> &Path {
        Path::new(std::ffi::OsStr::from_bytes(self.as_bytes()))
    }

    pub(crate) fn to_text(&self) -> String {
        String::from_utf8_lossy(self.as_bytes()).into_owned()
    }
}

impl From<OsString> for Bytes {
    fn from(value: OsString) -> Bytes {
        match value.into_string() {
            Ok(text) => Bytes::Text(text),
            Err(raw) => Bytes::Raw(raw.into_vec()),
        }
    }
}

impl From<&Path> for Bytes {
    fn from(value: &Path) -> Bytes {
        value.as_os_str().to_owned().into()
    }
}

impl From<PathBuf> for Bytes {
    fn from(value: PathBuf) -> Bytes {
        value.into_os_string().into()
    }
}

impl From<&str> for Bytes {
    fn from(value: &str) -> Bytes {
        Bytes::Text(value.to_owned())
    }
}

/// What one run of the helper is for. The descriptors of each come with the plan, in the order given here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Plan {
    /// Make the Session's user namespace, and a network namespace unless it is to have the machine's own network, and hand
    /// them back; no descriptors.
    Anchor { network: bool },
    /// Make a socket that listens on the loopback of the Session's network and hand it over: user namespace, network
    /// namespace.
    Listener,
    /// Run a command within walls: workspace, user namespace, network namespace, then stdin, stdout and stderr unless it
    /// has a terminal.
    Confined(Box<Confined>),
    /// Run a command within Landlock and seccomp alone: workspace, then stdin, stdout and stderr unless it has a terminal.
    Landlocked(Box<Landlocked>),
    /// Have bubblewrap make the Session's namespaces, or run a command in what it builds: what [`wrapped::With`] says, then
    /// stdin, stdout and stderr unless the command has a terminal.
    Wrapped(Box<wrapped::Wrapped>),
    /// Within bubblewrap; no descriptors, which follow when everything outside is done.
    Inside(Box<wrapped::Inside>),
    /// Run a command without walls: workspace, then stdin, stdout and stderr unless it has a terminal.
    Unconfined(Box<Execution>),
}

/// A command within walls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confined {
    /// What exists for the command, in the order in which it is put there.
    pub(crate) view: Vec<Entry>,
    /// Where, in that view, the Workspace lies and relative paths begin.
    pub(crate) workspace: Bytes,
    /// Paths of the Workspace that are made read-only, relative to it, parents before children.
    pub(crate) protected: Vec<Bytes>,
    /// Files of the Workspace whose content is hidden, relative to it.
    pub(crate) denied: Vec<Bytes>,
    /// Folders, in that view, below which Landlock lets the command write.
    pub(crate) writable: Vec<Bytes>,
    /// What must be found at places of that view, or the command is not run.
    pub(crate) identities: Vec<Identity>,
    /// The command.
    pub(crate) execution: Execution,
}

/// The very file or folder that belongs at a place of the view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) target: Bytes,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// A command within Landlock and seccomp alone, which sees the host's own paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Landlocked {
    /// Files and folders that it may read.
    pub(crate) readable: Vec<Bytes>,
    /// Files and folders that it may also change.
    pub(crate) writable: Vec<Bytes>,
    /// What it may do in the Workspace.
    pub(crate) workspace: Access,
    /// Whether it reaches what the machine reaches.
    pub(crate) network: bool,
    /// The command.
    pub(crate) execution: Execution,
}

/// One thing that exists for the command. Paths are absolute: `source` on the host, `target` in the command's view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Entry {
    /// An empty folder that nobody can write to.
    Folder { target: Bytes },
    /// A symbolic link.
    Link { target: Bytes, to: Bytes },
    /// A file or folder of the host, with all that is mounted below it.
    Bind {
        source: Bytes,
        target: Bytes,
        access: Access,
    },
    /// An unreadable file, or an empty folder, in the place of what is there.
    Mask { target: Bytes },
    /// A file system in memory of at most so many bytes.
    Memory { target: Bytes, size: u64 },
    /// The few devices that programs expect, pseudo-terminals and shared memory, below `/dev`.
    Devices { shared_memory: u64 },
    /// A `/proc` of the command's own process namespace.
    Proc,
    /// The Workspace, from its descriptor, with its protected paths.
    Workspace { access: Access },
    /// The Workspace a second time, under another name.
    WorkspaceAlias { target: Bytes },
}

/// What a command may do with something of the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Access {
    Read,
    Write,
}

/// What is executed, after the walls or without them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Execution {
    pub(crate) program: Run,
    /// Relative to the Workspace.
    pub(crate) directory: Bytes,
    /// The whole environment.
    pub(crate) environment: Vec<(Bytes, Bytes)>,
    /// Columns and rows.
    pub(crate) terminal: Option<(u16, u16)>,
    /// Where a script that is too long for an argument is put, as its reader will find it.
    pub(crate) script_file: Bytes,
    /// How much of the machine it may use.
    pub(crate) limits: Limits,
    /// What it may fill, as its leader finds it.
    pub(crate) fillable: Fillable,
}

/// The folders in which a command may leave more than the machine can bear.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fillable {
    /// The Workspace, of which the disk is watched.
    pub(crate) workspace: Bytes,
    /// The Session's temporary folder and its home, of which the content is watched as well.
    pub(crate) private: [Bytes; 2],
}

impl Execution {
    /// The script, where it is too long for an argument.
    pub(crate) fn long_script(&self) -> Option<&[u8]> {
        match &self.program {
            Run::Script(script) if script.as_bytes().len() > LONGEST_ARGUMENT => {
                Some(script.as_bytes())
            }
            _ => None,
        }
    }
}

/// The program of an [`Execution`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Run {
    Script(Bytes),
    Program { program: Bytes, args: Vec<Bytes> },
}

/// Scripts longer than this are run from a file: one argument may hold 128 KiB at most, and the environment needs room too.
pub(crate) const LONGEST_ARGUMENT: usize = 96 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn bytes_survive_the_way_to_the_helper_whatever_they_are(bytes: Vec<u8>) {
            let sent = Bytes::from(OsString::from_vec(bytes.clone()));
            let json = serde_json::to_vec(&sent).unwrap();
            let received: Bytes = serde_json::from_slice(&json).unwrap();
            assert_eq!(received.as_bytes(), bytes);
        }
    }
}
