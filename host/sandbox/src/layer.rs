//! The walls by name, in the order in which the helper builds them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One wall of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerName {
    /// Identities and privileges of the Session's own.
    UserNamespace,
    /// A network of the Session's own.
    NetworkNamespace,
    /// The loopback in it.
    Loopback,
    /// Mounts, processes, IPC and host name of the command's own.
    Namespaces,
    /// The new root: what exists for the command.
    Mounts,
    /// A `/proc` of its own.
    Proc,
    /// The Workspace's protected paths.
    ProtectedPaths,
    /// Resource limits.
    Limits,
    /// No capability, now or later.
    Capabilities,
    /// The kernel's access rules beside the mounts.
    Landlock,
    /// System calls that are refused.
    Seccomp,
}

impl LayerName {
    /// Every wall, in order.
    pub const ALL: [LayerName; 11] = [
        LayerName::UserNamespace,
        LayerName::NetworkNamespace,
        LayerName::Loopback,
        LayerName::Namespaces,
        LayerName::Mounts,
        LayerName::Proc,
        LayerName::ProtectedPaths,
        LayerName::Limits,
        LayerName::Capabilities,
        LayerName::Landlock,
        LayerName::Seccomp,
    ];

    /// The name as people read it.
    pub fn as_str(self) -> &'static str {
        match self {
            LayerName::UserNamespace => "user namespace",
            LayerName::NetworkNamespace => "network namespace",
            LayerName::Loopback => "loopback",
            LayerName::Namespaces => "mount, pid, ipc and uts namespaces",
            LayerName::Mounts => "mounts",
            LayerName::Proc => "proc",
            LayerName::ProtectedPaths => "protected paths",
            LayerName::Limits => "limits",
            LayerName::Capabilities => "capabilities",
            LayerName::Landlock => "landlock",
            LayerName::Seccomp => "seccomp",
        }
    }
}

impl fmt::Display for LayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A wall as it stands: what `doctor` prints and a Session's facts carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// The wall's name, as people read it.
    pub name: String,
    /// Whether it stands.
    pub active: bool,
    /// In which form it stands, or why it does not.
    pub detail: String,
    /// What to do where it does not stand, or stands only in part.
    pub remedy: Option<String>,
}

impl Layer {
    /// A wall that stands.
    pub(crate) fn active(name: LayerName, detail: impl Into<String>) -> Layer {
        Layer {
            name: name.as_str().to_owned(),
            active: true,
            detail: detail.into(),
            remedy: None,
        }
    }

    /// A wall that does not.
    pub(crate) fn inactive(
        name: LayerName,
        detail: impl Into<String>,
        remedy: Option<String>,
    ) -> Layer {
        Layer {
            name: name.as_str().to_owned(),
            active: false,
            detail: detail.into(),
            remedy,
        }
    }
}

/// Which set of walls confines a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Tier {
    /// The helper's own namespaces, mounts, Landlock and seccomp.
    Native,
    /// The same walls, of which the system's `bwrap` builds the namespaces and mounts.
    Bwrap,
    /// Landlock and seccomp alone: nothing is written elsewhere and no network is reached, but all is seen.
    Landlock,
    /// No walls at all: only on the operator's explicit word.
    #[serde(rename = "UNCONFINED")]
    Unconfined,
}

impl Tier {
    /// Every set of walls, the best first.
    pub const ALL: [Tier; 4] = [Tier::Native, Tier::Bwrap, Tier::Landlock, Tier::Unconfined];

    /// The word that results and Traces carry (`facts.confinement`).
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::Native => "native",
            Tier::Bwrap => "bwrap",
            Tier::Landlock => "landlock",
            Tier::Unconfined => "UNCONFINED",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The weakest set of walls that an operator accepts. None at all is not among them: that takes a word of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MinimumTier {
    /// [`Tier::Native`], or [`Tier::Bwrap`] in its place.
    #[default]
    Native,
    /// [`Tier::Landlock`] as well.
    Landlock,
}

impl MinimumTier {
    /// Whether a Session may get `tier` without a further word of the operator's.
    pub fn allows(self, tier: Tier) -> bool {
        match tier {
            Tier::Native | Tier::Bwrap => true,
            Tier::Landlock => self == MinimumTier::Landlock,
            Tier::Unconfined => false,
        }
    }

    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            MinimumTier::Native => "native",
            MinimumTier::Landlock => "landlock",
        }
    }
}

impl fmt::Display for MinimumTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How the commands of a Session are confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Which set of walls.
    pub tier: Tier,
    /// The walls as the last command saw them; empty before the first.
    pub layers: Vec<Layer>,
}

impl Confinement {
    /// The word that results and Traces carry: [`Tier::as_str`].
    pub fn as_str(&self) -> &'static str {
        self.tier.as_str()
    }
}
