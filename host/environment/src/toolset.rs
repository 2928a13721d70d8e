//! Which tools a Session has: the four named sets (design 7; decisions, "Which tools a Session has").

use std::fmt;
use std::str::FromStr;

use floe_protocol::{ToolDefinition, Truncation};

use crate::registry::Origin;

/// The six.
const MINIMAL: [&str; 6] = [
    "exec_command",
    "input_command",
    "run_subagent",
    "input_subagent",
    "read_image",
    "describe_image",
];

/// The seventeen.
const CODING: [&str; 17] = [
    "file_read",
    "grep",
    "glob",
    "list",
    "file_write",
    "edit",
    "apply_patch",
    "shell",
    "ask_clarification",
    "spawn_subagent",
    "todowrite",
    "plan_exit",
    "web_search",
    "web_fetch",
    "http_request",
    "curl",
    "lsp",
];

/// All without the doubles.
const DEFAULT: [&str; 21] = [
    "exec_command",
    "input_command",
    "run_subagent",
    "input_subagent",
    "read_image",
    "describe_image",
    "file_read",
    "grep",
    "glob",
    "list",
    "file_write",
    "edit",
    "apply_patch",
    "ask_clarification",
    "todowrite",
    "plan_exit",
    "web_search",
    "web_fetch",
    "http_request",
    "curl",
    "lsp",
];

/// A named set of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Toolset {
    /// The six tools of the seed, cut as the seed cuts them.
    Minimal,
    /// The seventeen coding tools.
    Coding,
    /// All built-in tools without the doubles, and every plugin's.
    #[default]
    Default,
    /// Everything that is registered.
    All,
}

impl Toolset {
    /// All sets.
    pub const ALL: [Toolset; 4] = [
        Toolset::Minimal,
        Toolset::Coding,
        Toolset::Default,
        Toolset::All,
    ];

    /// The name in configuration and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Toolset::Minimal => "minimal",
            Toolset::Coding => "coding",
            Toolset::Default => "default",
            Toolset::All => "all",
        }
    }

    /// The built-in tools of this set in the order in which they are listed; none where it is not a fixed list.
    pub fn names(self) -> Option<&'static [&'static str]> {
        match self {
            Toolset::Minimal => Some(&MINIMAL),
            Toolset::Coding => Some(&CODING),
            Toolset::Default => Some(&DEFAULT),
            Toolset::All => None,
        }
    }

    /// True where a registered tool belongs to this set.
    pub(crate) fn holds(self, name: &str, origin: &Origin) -> bool {
        let listed = |names: &[&str]| names.contains(&name);
        match self {
            Toolset::Minimal => listed(&MINIMAL),
            Toolset::Coding => listed(&CODING),
            Toolset::Default => listed(&DEFAULT) || matches!(origin, Origin::Plugin(_)),
            Toolset::All => true,
        }
    }

    /// Where a tool stands in a listing: the built-in ones in a fixed order, the rest after them by name.
    pub(crate) fn position(self, name: &str) -> usize {
        let find = |names: &[&str]| names.iter().position(|known| *known == name);
        let names = self.names().unwrap_or(&DEFAULT);
        find(names)
            .or_else(|| find(&CODING).map(|at| names.len() + at))
            .unwrap_or(usize::MAX)
    }

    /// The definition as this set uses it: `minimal` cuts every output as the seed does.
    pub(crate) fn adapt(self, definition: &ToolDefinition) -> ToolDefinition {
        let mut definition = definition.clone();
        if self == Toolset::Minimal {
            definition.truncation = Truncation::Head;
        }
        definition
    }
}

impl fmt::Display for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no toolset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no toolset; use minimal, coding, default or all")]
pub struct ParseToolsetError(pub String);

impl FromStr for Toolset {
    type Err = ParseToolsetError;

    fn from_str(word: &str) -> Result<Toolset, ParseToolsetError> {
        Toolset::ALL
            .into_iter()
            .find(|toolset| toolset.as_str() == word)
            .ok_or_else(|| ParseToolsetError(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_toolset_reads_back_from_its_name() {
        for toolset in Toolset::ALL {
            assert_eq!(toolset.as_str().parse(), Ok(toolset));
        }
        assert!("most".parse::<Toolset>().is_err());
    }

    #[test]
    fn default_has_no_doubles() {
        for double in ["shell", "spawn_subagent"] {
            assert!(
                !Toolset::Default.holds(double, &Origin::BuiltIn),
                "{double}"
            );
            assert!(Toolset::All.holds(double, &Origin::BuiltIn), "{double}");
        }
    }

    #[test]
    fn a_plugins_tool_is_in_default_and_all_only() {
        let plugin = Origin::Plugin("weather".into());
        let holding: Vec<Toolset> = Toolset::ALL
            .into_iter()
            .filter(|toolset| toolset.holds("weather", &plugin))
            .collect();
        assert_eq!(holding, [Toolset::Default, Toolset::All]);
    }
}
