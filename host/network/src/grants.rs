//! Which hosts were granted, as a person writes them, and whether a target is among them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use crate::address::is_public;
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
mod tests {
    use super::*;

    fn grants(entries: &[&str]) -> HostGrants {
        HostGrants::parse(entries).unwrap()
    }

    fn route(entries: &[&str], target: &str) -> Option<Route> {
        grants(entries).route(&Target::parse(target, None).unwrap())
    }

    #[test]
    fn a_grant_is_shown_in_its_one_spelling() {
        for (entry, shown) in [
            ("Example.com", "example.com:443"),
            ("example.com.:80", "example.com:80"),
            ("*.Bücher.example", "*.xn--bcher-kva.example:443"),
            ("8.8.8.8:53", "8.8.8.8:53"),
            ("[2606:4700::1]", "[2606:4700::1]:443"),
            ("a.test=127.0.0.1", "a.test:443=127.0.0.1"),
            ("a.test:80=127.0.0.1:8080", "a.test:80=127.0.0.1:8080"),
            ("a.test=[::1]:8443", "a.test:443=[::1]:8443"),
            ("a.test=::1", "a.test:443=[::1]"),
            ("127.0.0.1:80=127.0.0.1", "127.0.0.1:80=127.0.0.1"),
            ("*.a.test=10.0.0.1", "*.a.test:443=10.0.0.1"),
        ] {
            let grant: HostGrant = entry.parse().unwrap();
            assert_eq!(grant.to_string(), shown);
            assert_eq!(shown.parse::<HostGrant>().unwrap(), grant);
        }
    }

    #[test]
    fn what_is_no_grant_says_what_to_write() {
        for (entry, reason) in [
            (
                "https://example.com",
                "write the host alone, as NAME or NAME:PORT.",
            ),
            (
                "example.com/path",
                "write the host alone, as NAME or NAME:PORT.",
            ),
            ("*", "not every host can be granted; name them."),
            ("*.com", "a whole top-level domain cannot be granted."),
            (
                "*.1.2.3.4",
                "write NAME, *.NAME or an address, each with or without :PORT.",
            ),
            (
                "a.*.com",
                "write NAME, *.NAME or an address, each with or without :PORT.",
            ),
            (
                "",
                "write NAME, *.NAME or an address, each with or without :PORT.",
            ),
            (
                "me@example.com",
                "write NAME, *.NAME or an address, each with or without :PORT.",
            ),
            ("example.com:0", "a port is a number from 1 to 65535."),
            ("example.com:https", "a port is a number from 1 to 65535."),
            (
                "127.0.0.1:80",
                "this address is not a public one; write 127.0.0.1:80=127.0.0.1 to mean it.",
            ),
            (
                "0x7f.1",
                "this address is not a public one; write 127.0.0.1:443=127.0.0.1 to mean it.",
            ),
            (
                "a=b",
                "write an address after `=`, as 127.0.0.1 or 127.0.0.1:8443.",
            ),
            ("a=0.0.0.0", "nothing can be reached at that address."),
            ("a=224.0.0.1:1", "nothing can be reached at that address."),
        ] {
            let error = entry.parse::<HostGrant>().unwrap_err();
            assert_eq!(error.reason, reason, "{entry}");
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("\"{entry}\" is no granted host: "))
            );
        }
    }

    #[test]
    fn a_target_is_granted_by_name_and_port() {
        assert_eq!(
            route(&["example.com"], "example.com:443"),
            Some(Route::Resolve)
        );
        assert_eq!(
            route(&["example.com"], "EXAMPLE.COM.:443"),
            Some(Route::Resolve)
        );
        for other in [
            "example.com:80",
            "www.example.com:443",
            "notexample.com:443",
            "com:443",
        ] {
            assert_eq!(route(&["example.com"], other), None, "{other}");
        }
        assert_eq!(route(&[], "example.com:443"), None);
    }

    #[test]
    fn a_star_stands_for_every_name_below_but_not_for_the_name_itself() {
        let below = ["*.example.com:80"];
        assert_eq!(route(&below, "a.example.com:80"), Some(Route::Resolve));
        assert_eq!(route(&below, "a.b.example.com:80"), Some(Route::Resolve));
        for other in ["example.com:80", "aexample.com:80", "a.example.com:443"] {
            assert_eq!(route(&below, other), None, "{other}");
        }
    }

    #[test]
    fn an_address_is_granted_only_as_an_address() {
        let expected = Route::Literal("8.8.8.8:443".parse().unwrap());
        assert_eq!(route(&["8.8.8.8"], "8.8.8.8:443"), Some(expected));
        assert_eq!(route(&["8.8.8.8"], "0x08080808:443"), Some(expected));
        assert_eq!(route(&["dns.google"], "8.8.8.8:443"), None);
    }

    #[test]
    fn a_grant_that_names_the_address_comes_first() {
        let expected = Route::Pinned("127.0.0.1:8443".parse().unwrap());
        for entries in [
            ["a.test", "a.test=127.0.0.1:8443"],
            ["a.test=127.0.0.1:8443", "a.test"],
        ] {
            assert_eq!(route(&entries, "a.test:443"), Some(expected));
        }
        let same_port = Route::Pinned("127.0.0.1:443".parse().unwrap());
        assert_eq!(route(&["a.test=127.0.0.1"], "a.test:443"), Some(same_port));
    }

    #[test]
    fn a_list_is_narrowed_to_what_both_grant() {
        let person = grants(&[
            "*.example.com",
            "crates.io",
            "a.test=127.0.0.1:1",
            "b.test:80",
        ]);
        let narrowed = |entries: &[&str]| {
            let both = person.intersect(&grants(entries));
            both.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(narrowed(&["api.example.com"]), "api.example.com:443");
        assert_eq!(
            narrowed(
                &["*.io", "*.crates.io"]
                    .map(|e| e.replace("*.io", "*.eu.example.com"))
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
            ),
            "*.eu.example.com:443"
        );
        assert_eq!(narrowed(&["crates.io", "pypi.org"]), "crates.io:443");
        assert_eq!(narrowed(&["crates.io=127.0.0.1"]), "");
        assert_eq!(narrowed(&["a.test"]), "a.test:443=127.0.0.1:1");
        assert_eq!(narrowed(&["a.test=127.0.0.1:2"]), "");
        assert_eq!(narrowed(&["b.test"]), "");
        assert_eq!(narrowed(&[]), "");
    }

    #[test]
    fn what_a_call_asks_for_cannot_say_what_address_a_name_stands_for() {
        let error = HostGrants::parse_names(&["a.test", "b.test=127.0.0.1"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"b.test=127.0.0.1\" is no granted host: only the person's own configuration says what address a name stands for."
        );
        assert!(HostGrants::parse_names(&["a.test", "*.b.test:80"]).is_ok());
        // Whoever could write addresses that are not public would need no name.
        assert!(HostGrants::parse_names(&["127.0.0.1"]).is_err());
    }

    fn entry() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::strategy::Strategy;
        (
            proptest::sample::select(&["", "*."][..]),
            proptest::sample::select(&["a.b.test", "b.test", "c.test", "a.c.test"][..]),
            proptest::sample::select(&["", ":80"][..]),
            proptest::sample::select(&["", "=127.0.0.1", "=10.0.0.1:7"][..]),
        )
            .prop_map(|(star, name, port, pin)| format!("{star}{name}{port}{pin}"))
    }

    proptest::proptest! {
        #[test]
        fn narrowing_never_grants_what_the_wider_list_does_not(
            wider in proptest::collection::vec(entry(), 0..4),
            narrower in proptest::collection::vec(entry(), 0..4),
            name in proptest::sample::select(&["a.b.test", "b.test", "x.a.b.test", "c.test", "a.c.test"][..]),
            port in proptest::sample::select(&[80_u16, 443][..]),
        ) {
            let (wider, narrower) = (HostGrants::parse(&wider).unwrap(), HostGrants::parse(&narrower).unwrap());
            let both = wider.intersect(&narrower);
            let target = Target { host: Host::Name(name.to_owned()), port };
            if let Some(route) = both.route(&target) {
                proptest::prop_assert!(narrower.route(&target).is_some());
                let of_wider: Vec<_> = wider.iter().filter_map(|grant| grant.route(&target)).collect();
                proptest::prop_assert!(of_wider.contains(&route), "{route:?} is not among {of_wider:?}");
            }
            proptest::prop_assert!(wider.covers(&both));
        }

        #[test]
        fn anything_can_be_read_and_what_is_a_grant_keeps_its_meaning(entry in "\\PC{0,30}|[*a-z0-9.:=\\[\\]]{0,30}") {
            if let Ok(grant) = entry.parse::<HostGrant>() {
                proptest::prop_assert_eq!(grant.to_string().parse::<HostGrant>(), Ok(grant));
            }
        }
    }
}
