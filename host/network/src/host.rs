//! What a client calls a host: a name or an address, read as a browser reads it, so that one host has one spelling.

use std::fmt;
use std::net::IpAddr;

/// The longest text that is looked at: a name of 253 bytes, written in characters that take four.
const LONGEST_TEXT: usize = 1024;
/// The longest name that the domain name system has.
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;

/// A host in its one spelling: lower case, without a dot at its end, in ASCII; every way to write an address is that
/// address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name that has to be resolved.
    Name(String),
    /// An address, never an IPv4 one in IPv6's clothes.
    Address(IpAddr),
}

/// A text that is no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no host name and no address")]
pub struct NotAHost;

impl Host {
    /// Reads a host by the rules of the URL standard: `0x7f.1` and `2130706433` are addresses, `[::1]` is one, `BÜCHER.example.`
    /// is `xn--bcher-kva.example`. Stricter than the standard in that nothing is decoded first, and that a name consists of
    /// letters, digits, `-`, `_` and dots only.
    ///
    /// # Errors
    ///
    /// Anything else, NUL bytes and empty labels among it.
    pub fn parse(text: &str) -> Result<Host, NotAHost> {
        if text.len() > LONGEST_TEXT || text.contains('%') {
            return Err(NotAHost);
        }
        match url::Host::parse(text).map_err(|_| NotAHost)? {
            url::Host::Ipv4(address) => Ok(Host::Address(address.into())),
            url::Host::Ipv6(address) => Ok(Host::Address(IpAddr::from(address).to_canonical())),
            url::Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(&name);
                let is_name = name.len() <= LONGEST_NAME && name.split('.').all(is_label);
                is_name.then(|| Host::Name(name.to_owned())).ok_or(NotAHost)
            }
        }
    }
}

fn is_label(label: &str) -> bool {
    (1..=LONGEST_LABEL).contains(&label.len())
        && label
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(address)) => address.fmt(f),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// A host and a port, as a client asks for them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Target {
    /// Reads `HOST:PORT`; without a port it is `default`, where there is one.
    pub(crate) fn parse(text: &str, default: Option<u16>) -> Result<Target, NotAHost> {
        let (host, port) = split_port(text);
        let port = match port {
            None => default.ok_or(NotAHost)?,
            Some(port) => parse_port(port).ok_or(NotAHost)?,
        };
        Ok(Target {
            host: Host::parse(host)?,
            port,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// What stands before and after the colon of the port.
pub(crate) fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        // A colon within brackets belongs to the address.
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    }
}

/// A port from 1 to 65535 in decimal digits and nothing else.
pub(crate) fn parse_port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_host_is_that_host() {
        for (spelling, host) in [
            ("example.com", "example.com"),
            ("EXAMPLE.com.", "example.com"),
            ("BÜCHER.example", "xn--bcher-kva.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("ex\u{ff41}mple.com", "example.com"),
            ("example\u{3002}com", "example.com"),
            ("exa\u{ad}mple.com", "example.com"),
            ("under_score.example", "under_score.example"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.1", "127.0.0.1"),
            ("127.0.0.1.", "127.0.0.1"),
            ("0x7f.1", "127.0.0.1"),
            ("0X7F000001", "127.0.0.1"),
            ("0177.0.0.1", "127.0.0.1"),
            ("2130706433", "127.0.0.1"),
            ("\u{ff11}27.0.0.1", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[0:0:0::1]", "[::1]"),
            ("[::ffff:7f00:1]", "127.0.0.1"),
            ("[::FFFF:127.0.0.1]", "127.0.0.1"),
        ] {
            assert_eq!(
                Host::parse(spelling).unwrap().to_string(),
                host,
                "{spelling}"
            );
        }
    }

    #[test]
    fn what_could_be_taken_for_two_hosts_is_none() {
        for text in [
            "",
            ".",
            "..",
            "example.com..",
            ".example.com",
            "a..b",
            "a.com\0.allowed.com",
            "a b",
            "a\tb",
            "a\nb",
            "user@example.com",
            "example.com/path",
            "example.com?x",
            "example.com#x",
            "example.com\\x",
            "%61.example",
            "a,b",
            "*.example.com",
            "::1",
            "[::1",
            "[::1]x",
            "[fe80::1%eth0]",
            "256.0.0.1",
            "1.2.3.4.5",
            "0x100000000",
            "a.0x7f",
        ] {
            assert_eq!(Host::parse(text), Err(NotAHost), "{text:?}");
        }
        assert_eq!(Host::parse(&"a".repeat(64)), Err(NotAHost));
        assert_eq!(Host::parse(&"a.".repeat(127)).map(|_| ()), Ok(()));
        assert_eq!(Host::parse(&"a.".repeat(128)), Err(NotAHost));
        assert_eq!(Host::parse(&"a".repeat(100_000)), Err(NotAHost));
    }

    #[test]
    fn a_target_has_one_port_in_decimal() {
        let target = |text| Target::parse(text, None).map(|target| target.to_string());
        assert_eq!(target("Example.com:443").unwrap(), "example.com:443");
        assert_eq!(target("[::1]:80").unwrap(), "[::1]:80");
        for text in [
            "a", "a:", "a:0", "a:65536", "a:+1", "a: 1", "a:1:2", "[::1]", "::1:80", ":80",
        ] {
            assert_eq!(target(text), Err(NotAHost), "{text:?}");
        }
        assert_eq!(Target::parse("a", Some(80)).unwrap().port, 80);
        assert_eq!(Target::parse("a:81", Some(80)).unwrap().port, 81);
    }

    proptest::proptest! {
        #[test]
        fn the_spelling_of_a_host_is_read_as_that_host(text in "\\PC{0,40}|[a-z0-9.:x\\[\\]-]{0,30}") {
            if let Ok(host) = Host::parse(&text) {
                let spelling = host.to_string();
                proptest::prop_assert!(spelling.is_ascii() && !spelling.ends_with('.'));
                proptest::prop_assert_eq!(Host::parse(&spelling), Ok(host));
            }
        }
    }
}
