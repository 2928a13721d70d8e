//! Which public hosts tools may reach, as the operator writes it. An entry that cannot be understood makes the whole list
//! unreadable, never one that means more.

use std::fmt;
use std::str::FromStr;

use crate::address::is_public;
use crate::grants::GrantError;
use crate::host::Host;

/// Hosts by name: `*` for all of them, `NAME` for it and every name below it, `*.NAME` for those below it alone, or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainPattern {
    /// Every public host.
    Any,
    /// A name with those below it, or an address.
    Within(Host),
    /// The names below one.
    Below(String),
}

impl FromStr for DomainPattern {
    type Err = GrantError;

    fn from_str(entry: &str) -> Result<DomainPattern, GrantError> {
        let refuse = |reason: &str| GrantError {
            entry: entry.chars().take(300).collect(),
            reason: reason.to_owned(),
        };
        let unknown = "write NAME, *.NAME, an address or *, without scheme, port and path.";
        if entry == "*" {
            return Ok(DomainPattern::Any);
        }
        let (below, name) = match entry.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, entry),
        };
        match (Host::parse(name).map_err(|_| refuse(unknown))?, below) {
            (Host::Name(name), true) => Ok(DomainPattern::Below(name)),
            (Host::Address(_), true) => Err(refuse(unknown)),
            (Host::Address(address), false) if !is_public(address) => Err(refuse(
                "this address is not a public one; only a host that stands for it can be granted, as NAME=ADDRESS.",
            )),
            (host, false) => Ok(DomainPattern::Within(host)),
        }
    }
}

impl fmt::Display for DomainPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DomainPattern::Any => f.write_str("*"),
            DomainPattern::Within(host) => host.fmt(f),
            DomainPattern::Below(name) => write!(f, "*.{name}"),
        }
    }
}

fn is_below(name: &str, upper: &str) -> bool {
    name.strip_suffix(upper)
        .is_some_and(|rest| rest.ends_with('.'))
}

impl DomainPattern {
    fn holds(&self, host: &Host) -> bool {
        match (self, host) {
            (DomainPattern::Any, _) => true,
            (DomainPattern::Within(own), host) if own == host => true,
            (DomainPattern::Within(Host::Name(own)), Host::Name(name))
            | (DomainPattern::Below(own), Host::Name(name)) => is_below(name, own),
            _ => false,
        }
    }

    pub(super) fn covers(&self, other: &DomainPattern) -> bool {
        match (self, other) {
            (DomainPattern::Any, _) => true,
            (_, DomainPattern::Any) => false,
            (own, DomainPattern::Within(host)) => match (own, host) {
                // Below covers a name below it with all that is below that one.
                (DomainPattern::Below(own), Host::Name(name)) => is_below(name, own),
                _ => own.holds(host),
            },
            (
                DomainPattern::Within(Host::Name(own)) | DomainPattern::Below(own),
                DomainPattern::Below(name),
            ) => own == name || is_below(name, own),
            _ => false,
        }
    }

    fn intersect(&self, other: &DomainPattern) -> Option<DomainPattern> {
        if self.covers(other) {
            Some(other.clone())
        } else if other.covers(self) {
            Some(self.clone())
        } else {
            None
        }
    }
}

/// A list of hosts by name. An empty one holds none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DomainList(Vec<DomainPattern>);

impl DomainList {
    /// Every public host.
    pub fn any() -> DomainList {
        DomainList(vec![DomainPattern::Any])
    }

    /// Reads a list as the operator writes it.
    ///
    /// # Errors
    ///
    /// The first entry that cannot be understood.
    pub fn parse(entries: &[impl AsRef<str>]) -> Result<DomainList, GrantError> {
        let mut list = DomainList::default();
        for entry in entries {
            let pattern = entry.as_ref().parse()?;
            if !list.0.contains(&pattern) {
                list.0.push(pattern);
            }
        }
        Ok(list)
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries, in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = &DomainPattern> {
        self.0.iter()
    }

    /// Whether `host` is among them.
    pub(crate) fn holds(&self, host: &Host) -> bool {
        self.0.iter().any(|pattern| pattern.holds(host))
    }

    /// Whether all that `other` holds is held here, each by one entry.
    pub fn covers(&self, other: &DomainList) -> bool {
        other
            .iter()
            .all(|theirs| self.iter().any(|own| own.covers(theirs)))
    }

    /// What both hold.
    #[must_use]
    pub fn intersect(&self, other: &DomainList) -> DomainList {
        let mut both = DomainList::default();
        for theirs in other.iter() {
            for shared in self.iter().filter_map(|own| own.intersect(theirs)) {
                if !both.0.contains(&shared) {
                    both.0.push(shared);
                }
            }
        }
        both
    }
}

/// What tools may reach of the public network without a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Hosts that may be read.
    pub allowed: DomainList,
    /// Hosts of these that may be written to as well.
    pub write: DomainList,
    /// Hosts that are never reached, whatever else is said.
    pub blocked: DomainList,
    /// Ports that may be asked for.
    pub ports: Vec<u16>,
}

impl Default for Scope {
    /// Every public host may be read on the ports of HTTP; none may be written to.
    fn default() -> Scope {
        Scope {
            allowed: DomainList::any(),
            write: DomainList::default(),
            blocked: DomainList::default(),
            ports: vec![80, 443],
        }
    }
}
