//! What the gate does not let through, why, and what would change that.

use std::fmt;
use std::net::IpAddr;

use crate::address::is_public;

/// A request that was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The host, in its one spelling.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Why.
    pub why: Why,
}

/// Why a request was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Its host is not among those that may be reached.
    NotAllowed,
    /// Its host is among those that are never reached.
    Blocked,
    /// Its port is not among those that may be asked for.
    Port,
    /// Its method writes, and its host may only be read.
    ReadOnlyHost,
    /// Its method writes, and this call may only read.
    ReadOnlyCall,
    /// Its host is a local or a metadata name, or an address that is not public.
    Local,
    /// The name leads to this address, which is not public or one of this machine.
    LeadsInside(IpAddr),
    /// More names were asked for than one Session may.
    TooManyNames,
}

impl Why {
    /// What would let it through, where something would.
    pub(super) fn remedy(self) -> Option<&'static str> {
        match self {
            Why::NotAllowed | Why::Port => Some(
                "ask for it with widen.hosts (NAME or NAME:PORT), or let the person add it to the network section of the configuration",
            ),
            Why::ReadOnlyHost => Some(
                "ask for it with widen.hosts (NAME or NAME:PORT), or let the person add the host to network.write_domains",
            ),
            Why::Local | Why::LeadsInside(_) => Some(
                "only the person can allow it, with --allow-host NAME:PORT=ADDRESS or network.hosts",
            ),
            Why::Blocked => Some("only the person can take it off that list"),
            Why::ReadOnlyCall => Some(
                "leave the body out, or send it with a method that writes (POST, PUT, PATCH) where the mode and the permissions allow that",
            ),
            Why::TooManyNames => None,
        }
    }
}

/// One line without the remedy; the words of the first five are those that tools have always shown.
impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Denial { host, port, why } = self;
        match why {
            Why::NotAllowed => write!(f, "Host '{host}' is not in network.allowed_domains"),
            Why::Blocked => write!(f, "Host '{host}' is in network.blocked_domains"),
            Why::Port => write!(f, "Port {port} of '{host}' is not in network.ports"),
            Why::ReadOnlyHost => write!(
                f,
                "Host '{host}' is not in network.write_domains: it gets GET, HEAD and OPTIONS without a body"
            ),
            Why::ReadOnlyCall => f.write_str(
                "This call may only read: it sends GET, HEAD and OPTIONS without a body",
            ),
            Why::Local => write!(f, "Blocked local/private host: {host}"),
            Why::LeadsInside(address) if is_public(*address) => write!(
                f,
                "DNS rebinding blocked: '{host}' leads to {address}, which is an address of this machine"
            ),
            Why::LeadsInside(address) => write!(
                f,
                "DNS rebinding blocked: '{host}' leads to {address}, which is not a public address"
            ),
            Why::TooManyNames => f.write_str("This Session has asked for too many names"),
        }
    }
}
