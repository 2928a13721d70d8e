//! The capabilities of the contract and sets of them. A set is what a call may reach; it never widens on its own.

use std::fmt;

/// A capability: one importable interface of `floe:tool` that can be granted or withheld. `output`, `cancellation` and `log`
/// are none: every call has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Capability {
    /// Reads the Workspace.
    Workspace,
    /// Changes the Workspace.
    Edits,
    /// Runs native commands.
    Commands,
    /// Speaks HTTP through the network gate.
    Http,
    /// Asks a vision model.
    Vision,
    /// Starts child Sessions.
    Subagents,
    /// Asks the person.
    Interaction,
    /// The todo list and the plan.
    SessionState,
    /// Asks language servers.
    LanguageServer,
    /// Searches the web.
    WebSearch,
}

impl Capability {
    /// All capabilities, in the order in which they are listed for people.
    pub const ALL: [Capability; 10] = [
        Capability::Workspace,
        Capability::Edits,
        Capability::Commands,
        Capability::Http,
        Capability::Vision,
        Capability::Subagents,
        Capability::Interaction,
        Capability::SessionState,
        Capability::LanguageServer,
        Capability::WebSearch,
    ];

    /// The name of the interface in wit/.
    pub const fn name(self) -> &'static str {
        match self {
            Capability::Workspace => "workspace",
            Capability::Edits => "edits",
            Capability::Commands => "commands",
            Capability::Http => "http",
            Capability::Vision => "vision",
            Capability::Subagents => "subagents",
            Capability::Interaction => "interaction",
            Capability::SessionState => "session-state",
            Capability::LanguageServer => "language-server",
            Capability::WebSearch => "web-search",
        }
    }

    /// The capability of that name, if the contract has one.
    pub fn from_name(name: &str) -> Option<Capability> {
        Capability::ALL.into_iter().find(|one| one.name() == name)
    }

    const fn bit(self) -> u16 {
        1 << self as u8
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of capabilities.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CapabilitySet(u16);

impl CapabilitySet {
    /// No capability.
    pub const EMPTY: CapabilitySet = CapabilitySet(0);

    /// Every capability of the contract.
    pub fn all() -> CapabilitySet {
        Capability::ALL.into_iter().collect()
    }

    /// Adds one.
    pub fn insert(&mut self, capability: Capability) {
        self.0 |= capability.bit();
    }

    /// Takes one away.
    pub fn remove(&mut self, capability: Capability) {
        self.0 &= !capability.bit();
    }

    /// This set and one more.
    #[must_use]
    pub fn with(mut self, capability: Capability) -> CapabilitySet {
        self.insert(capability);
        self
    }

    /// This set without one.
    #[must_use]
    pub fn without(mut self, capability: Capability) -> CapabilitySet {
        self.remove(capability);
        self
    }

    /// True where it holds that capability.
    pub const fn contains(self, capability: Capability) -> bool {
        self.0 & capability.bit() != 0
    }

    /// What both hold.
    #[must_use]
    pub const fn intersection(self, other: CapabilitySet) -> CapabilitySet {
        CapabilitySet(self.0 & other.0)
    }

    /// What this one holds and the other does not.
    #[must_use]
    pub const fn difference(self, other: CapabilitySet) -> CapabilitySet {
        CapabilitySet(self.0 & !other.0)
    }

    /// True where the other holds all of this one.
    pub const fn is_subset(self, other: CapabilitySet) -> bool {
        self.0 & !other.0 == 0
    }

    /// True where it holds nothing.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What it holds, in the order of [`Capability::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL
            .into_iter()
            .filter(move |one| self.contains(*one))
    }

    /// The names of what it holds, in the same order.
    pub fn names(self) -> Vec<&'static str> {
        self.iter().map(Capability::name).collect()
    }
}

impl FromIterator<Capability> for CapabilitySet {
    fn from_iter<I: IntoIterator<Item = Capability>>(capabilities: I) -> Self {
        let mut set = CapabilitySet::EMPTY;
        for capability in capabilities {
            set.insert(capability);
        }
        set
    }
}

impl fmt::Debug for CapabilitySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capability_is_found_by_its_name() {
        for capability in Capability::ALL {
            assert_eq!(Capability::from_name(capability.name()), Some(capability));
        }
        assert_eq!(Capability::from_name("output"), None);
    }

    #[test]
    fn a_set_holds_what_was_inserted_and_nothing_else() {
        let set = CapabilitySet::EMPTY
            .with(Capability::Commands)
            .with(Capability::Workspace);
        assert_eq!(set.names(), ["workspace", "commands"]);
        assert!(!set.contains(Capability::Edits));
        assert!(set.is_subset(CapabilitySet::all()));
        assert!(!CapabilitySet::all().is_subset(set));
        assert_eq!(
            set.without(Capability::Workspace),
            CapabilitySet::EMPTY.with(Capability::Commands)
        );
    }

    #[test]
    fn an_intersection_never_holds_more_than_either_side() {
        let left = CapabilitySet::EMPTY.with(Capability::Http);
        assert_eq!(left.intersection(CapabilitySet::all()), left);
        assert!(left.intersection(CapabilitySet::EMPTY).is_empty());
        assert!(left.difference(left).is_empty());
    }
}
