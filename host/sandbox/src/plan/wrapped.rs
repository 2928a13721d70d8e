//! What the helper outside bubblewrap does, and what the one within it does.
//!
//! Two helpers share the work: the outer one joins the Session's namespaces, opens what is shown by identity, and becomes
//! the parent of bubblewrap; bubblewrap makes the command's namespaces and mounts; the inner one is what bubblewrap
//! executes. The inner plan lies in the outer one, so that the host still sends one plan only.

use serde::{Deserialize, Serialize};

use super::{Bytes, Execution, Identity};

/// What bubblewrap is started with, and what it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wrapped {
    /// bubblewrap.
    pub(crate) program: Bytes,
    /// What it is told, in this order.
    pub(crate) options: Vec<Told>,
    /// What comes with this plan.
    pub(crate) with: With,
    /// What the helper within does.
    pub(crate) inside: Inside,
}

/// What comes with the plan for bubblewrap, before the command's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum With {
    /// Nothing: the Session's namespaces are only made.
    Nothing,
    /// Workspace, user namespace and network namespace.
    Session,
    /// The same, and a script that is too long for an argument.
    SessionAndScript,
}

impl With {
    /// How many descriptors these are.
    pub(crate) fn count(self) -> usize {
        match self {
            With::Nothing => 0,
            With::Session => 3,
            With::SessionAndScript => 4,
        }
    }
}

/// One option with its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told(pub(crate) Vec<Word>);

/// One word of an option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Word {
    /// As it is.
    Text(Bytes),
    /// The number of a descriptor that leads to the Workspace.
    Workspace,
    /// The number of a descriptor that leads to this path of the host, if there is no link in it.
    Shown(Bytes),
    /// The number of a descriptor with nothing to read.
    Nothing,
    /// The number of a descriptor with the script.
    Script,
}

/// What the helper within bubblewrap is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Inside {
    /// Hand the Session's namespaces, which it finds itself in, to the host; whether the network is one of them.
    Anchor { network: bool },
    /// Run a command in the view that it finds itself in.
    Command(Box<Enclosed>),
}

impl Inside {
    /// The command in whose view something is to be held, by other means than bubblewrap's.
    pub(crate) fn to_hold(&self) -> Option<&Enclosed> {
        match self {
            Inside::Anchor { .. } => None,
            Inside::Command(plan) => Some(plan),
        }
    }
}

/// A command in a view that bubblewrap has made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Enclosed {
    /// Where the Workspace lies in the view, first where relative paths begin.
    pub(crate) workspaces: Vec<Bytes>,
    /// The Workspace that the host has opened.
    pub(crate) workspace_identity: (u64, u64),
    /// What must be found at places of the view.
    pub(crate) identities: Vec<Identity>,
    /// What must be read-only in the Workspace, if it is there.
    pub(crate) protected: Vec<Bytes>,
    /// What must be unreadable in the Workspace, if it is there.
    pub(crate) denied: Vec<Bytes>,
    /// Folders, in the view, below which Landlock lets the command write.
    pub(crate) writable: Vec<Bytes>,
    /// The command.
    pub(crate) execution: Execution,
}
