//! The permission ladder and the two modes of a Session.

use serde::{Deserialize, Serialize};

/// What a tool may do, weakest first. A cap compares against it, so the order of the variants is the contract.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// Touches nothing outside the conversation.
    None,
    /// Reads the Workspace or public hosts.
    #[serde(alias = "r")]
    ReadOnly,
    /// Changes files of the Workspace, or sends data out.
    Write,
    /// Runs native commands, confined.
    #[serde(alias = "rw")]
    Execute,
    /// Beyond the sandbox. What says nothing is treated as this.
    #[default]
    Dangerous,
}

impl Permission {
    /// All levels, weakest first.
    pub const ALL: [Permission; 5] = [
        Permission::None,
        Permission::ReadOnly,
        Permission::Write,
        Permission::Execute,
        Permission::Dangerous,
    ];

    /// The name on the wire, in configuration and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Permission::None => "none",
            Permission::ReadOnly => "read-only",
            Permission::Write => "write",
            Permission::Execute => "execute",
            Permission::Dangerous => "dangerous",
        }
    }
}

impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no permission.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no permission; use none, read-only (r), write, execute (rw) or dangerous")]
pub struct ParsePermissionError(pub String);

impl std::str::FromStr for Permission {
    type Err = ParsePermissionError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "r" => Ok(Permission::ReadOnly),
            "rw" => Ok(Permission::Execute),
            _ => Permission::ALL
                .into_iter()
                .find(|level| level.as_str() == word)
                .ok_or_else(|| ParsePermissionError(word.to_owned())),
        }
    }
}

/// The mode of a Session: Plan reads and proposes, Build works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing above read-only.
    Plan,
    /// Everything that was granted.
    #[default]
    Build,
}

impl Mode {
    /// The name on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Plan => "plan",
            Mode::Build => "build",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_from_none_to_dangerous() {
        assert!(Permission::ALL.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn the_short_forms_r_and_rw_are_read_only_and_execute() {
        assert_eq!("r".parse(), Ok(Permission::ReadOnly));
        assert_eq!("rw".parse(), Ok(Permission::Execute));
        assert_eq!(
            serde_json::from_str::<Permission>("\"rw\"").unwrap(),
            Permission::Execute
        );
    }

    #[test]
    fn every_level_reads_back_from_its_name() {
        for level in Permission::ALL {
            assert_eq!(level.as_str().parse(), Ok(level));
        }
        assert!("admin".parse::<Permission>().is_err());
    }
}
