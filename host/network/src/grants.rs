//! Which hosts were granted, as a person writes them, and whether a target is among them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use crate::address::is_public;
use crate::gate::DomainPattern;
use crate::host::{Host, Target, parse_port, split_port};

/// The port of a grant that names none.
const DEFAULT_PORT: u16 = 443;

/// One granted host: `NAME[:PORT]`, `*.NAME[:PORT]` for every name below NAME, or an address. With `=ADDRESS[:PORT]` the name
/// is not resolved but stands for that address, which may then be one that is not public. Without a port it is 443.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostGrant {
    pattern: Pattern,
    port: u16,
    pin: Option<Pin>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Exactly(Host),
    /// Every name below this one, but not itself.
    Below(String),
}

/// The address that a grant names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pin {
    address: IpAddr,
    /// The granted port where none.
    port: Option<u16>,
}

/// Where a granted target leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// To this address, on the person's own word.
    Pinned(SocketAddr),
    /// To this public address, which the client named.
    Literal(SocketAddr),
    /// To what the name resolves to, as long as that is public.
    Resolve,
}

/// A grant that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{}\" is no granted host: {reason}", .entry.escape_debug())]
pub struct GrantError {
    /// As it was written.
    pub entry: String,
    /// What is wrong and what to write instead.
    pub reason: String,
}

impl FromStr for HostGrant {
    type Err = GrantError;

    fn from_str(entry: &str) -> Result<HostGrant, GrantError> {
        let refuse = |reason: &str| GrantError {
            entry: entry.chars().take(300).collect(),
            reason: reason.to_owned(),
        };
        if entry.contains("://") || entry.contains('/') {
            return Err(refuse("write the host alone, as NAME or NAME:PORT."));
        }
        let (host, address) = match entry.split_once('=') {
            Some((host, address)) => (host, Some(address)),
            None => (entry, None),
        };
        let (name, port) = split_port(host);
        let port = match port {
            None => DEFAULT_PORT,
            Some(port) => {
                parse_port(port).ok_or_else(|| refuse("a port is a number from 1 to 65535."))?
            }
        };
        let pin = address
            .map(|address| Pin::parse(address).map_err(refuse))
            .transpose()?;
        let pattern = Pattern::parse(name).map_err(refuse)?;
        if let (Pattern::Exactly(Host::Address(address)), None) = (&pattern, pin)
            && !is_public(*address)
        {
            let written = Host::Address(*address);
            return Err(refuse(&format!(
                "this address is not a public one; write {written}:{port}={written} to mean it."
            )));
        }
        Ok(HostGrant { pattern, port, pin })
    }
}

impl Pin {
    fn parse(text: &str) -> Result<Pin, &'static str> {
        let (address, port) = match text.parse::<SocketAddr>() {
            Ok(socket) => (socket.ip(), Some(socket.port())),
            Err(_) => {
                let bare = text
                    .strip_prefix('[')
                    .and_then(|text| text.strip_suffix(']'));
                let address = bare.unwrap_or(text).parse();
                (
                    address.map_err(
                        |_| "write an address after `=`, as 127.0.0.1 or 127.0.0.1:8443.",
                    )?,
                    None,
                )
            }
        };
        let address: IpAddr = address.to_canonical();
        if address.is_unspecified() || address.is_multicast() || port == Some(0) {
            return Err("nothing can be reached at that address.");
        }
        Ok(Pin { address, port })
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Pattern, &'static str> {
        let unknown = "write NAME, *.NAME or an address, each with or without :PORT.";
        let Some(below) = text.strip_prefix("*.") else {
            if text == "*" {
                return Err("not every host can be granted; name them.");
            }
            return Host::parse(text).map(Pattern::Exactly).map_err(|_| unknown);
        };
        match Host::parse(below).map_err(|_| unknown)? {
            Host::Name(name) if name.contains('.') => Ok(Pattern::Below(name)),
            Host::Name(_) => Err("a whole top-level domain cannot be granted."),
            Host::Address(_) => Err(unknown),
        }
    }

    fn covers(&self, other: &Pattern) -> bool {
        match (self, other) {
            (Pattern::Exactly(own), Pattern::Exactly(host)) => own == host,
            (Pattern::Below(own), Pattern::Exactly(Host::Name(name))) => is_below(name, own),
            (Pattern::Below(own), Pattern::Below(name)) => name == own || is_below(name, own),
            _ => false,
        }
    }
}

fn is_below(name: &str, upper: &str) -> bool {
    name.strip_suffix(upper)
        .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

impl HostGrant {
    fn route(&self, target: &Target) -> Option<Route> {
        let same_port = self.port == target.port;
        if !same_port || !self.pattern.covers(&Pattern::Exactly(target.host.clone())) {
            return None;
        }
        Some(match (self.pin, &target.host) {
            (Some(pin), _) => Route::Pinned(SocketAddr::new(
                pin.address,
                pin.port.unwrap_or(target.port),
            )),
            (None, Host::Address(address)) => {
                Route::Literal(SocketAddr::new(*address, target.port))
            }
            (None, Host::Name(_)) => Route::Resolve,
        })
    }

    /// Whether all that `other` grants is granted by this one.
    pub fn covers(&self, other: &HostGrant) -> bool {
        self.pattern.covers(&other.pattern)
            && self.port == other.port
            && (self.pin == other.pin || other.pin.is_none())
    }

    /// The port that it is for.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The hosts that it is for; the one that it names, where it names one, without those below it.
    pub(crate) fn names(&self) -> DomainPattern {
        match &self.pattern {
            Pattern::Exactly(host) => DomainPattern::Within(host.clone()),
            Pattern::Below(name) => DomainPattern::Below(name.clone()),
        }
    }

    /// What both grant.
    fn intersect(&self, other: &HostGrant) -> Option<HostGrant> {
        let pattern = if self.pattern.covers(&other.pattern) {
            &other.pattern
        } else if other.pattern.covers(&self.pattern) {
            &self.pattern
        } else {
            return None;
        };
        let addresses_agree = self.pin == other.pin || other.pin.is_none();
        (self.port == other.port && addresses_agree).then(|| HostGrant {
            pattern: pattern.clone(),
            ..self.clone()
        })
    }
}

/// As it is written, with its port.
impl fmt::Display for HostGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Pattern::Exactly(host) => write!(f, "{host}:{}", self.port)?,
            Pattern::Below(name) => write!(f, "*.{name}:{}", self.port)?,
        }
        match self.pin {
            None => Ok(()),
            Some(Pin { address, port }) => {
                write!(f, "={}", Host::Address(address))?;
                port.map_or(Ok(()), |port| write!(f, ":{port}"))
            }
        }
    }
}

/// All granted hosts. None of them is the default, and grants nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostGrants(Vec<HostGrant>);

impl HostGrants {
    /// Reads a list as the operator writes it.
    ///
    /// # Errors
    ///
    /// The first entry that cannot be understood.
    pub fn parse(entries: &[impl AsRef<str>]) -> Result<HostGrants, GrantError> {
        let parsed = entries.iter().map(|entry| entry.as_ref().parse());
        parsed.collect::<Result<_, _>>().map(HostGrants)
    }

    /// Reads a list as a tool's call may ask for it: without addresses of its own for names.
    ///
    /// # Errors
    ///
    /// The first entry that cannot be understood, or that says what address a name stands for.
    pub fn parse_names(entries: &[impl AsRef<str>]) -> Result<HostGrants, GrantError> {
        let grants = HostGrants::parse(entries)?;
        match grants
            .0
            .iter()
            .zip(entries)
            .find(|(grant, _)| grant.pin.is_some())
        {
            None => Ok(grants),
            Some((_, entry)) => Err(GrantError {
                entry: entry.as_ref().chars().take(300).collect(),
                reason: "only the person's own configuration says what address a name stands for."
                    .to_owned(),
            }),
        }
    }

    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The grants, in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = &HostGrant> {
        self.0.iter()
    }

    /// Whether all that `other` grants is granted here, each by one grant.
    pub fn covers(&self, other: &HostGrants) -> bool {
        other
            .iter()
            .all(|theirs| self.iter().any(|own| own.covers(theirs)))
    }

    /// Grants what `other` does as well.
    pub fn extend(&mut self, other: &HostGrants) {
        for grant in other.iter() {
            if !self.0.contains(grant) {
                self.0.push(grant.clone());
            }
        }
    }

    /// What is granted both here and by `narrower`. What address a name stands for is said here alone.
    pub fn intersect(&self, narrower: &HostGrants) -> HostGrants {
        let mut both = HostGrants::default();
        for theirs in narrower.iter() {
            let shared = self.iter().filter_map(|own| own.intersect(theirs));
            both.extend(&HostGrants(shared.collect()));
        }
        both
    }

    /// Where `target` leads, if it is granted. A grant that names the address comes before one that does not.
    pub(crate) fn route(&self, target: &Target) -> Option<Route> {
        let routes = || self.iter().filter_map(|grant| grant.route(target));
        routes()
            .find(|route| matches!(route, Route::Pinned(_)))
            .or_else(|| routes().next())
    }
}

#[cfg(test)]
mod tests;
