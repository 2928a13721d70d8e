//! What was refused and why, for the Trace, the person and the model.

use std::fmt;
use std::net::IpAddr;

use crate::address::is_public;

/// Characters of a text that is no host, in a refusal.
const SHOWN: usize = 80;

/// A host that a command asked for and did not reach.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// `HOST:PORT` in its one spelling. What is no host is quoted, escaped and cut: it comes from a hostile client.
    pub target: String,
    /// Why.
    pub reason: Reason,
}

/// Why a host was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It was not granted with this port.
    NotGranted,
    /// Its name leads to an address that is not public or one of this machine, and no grant names the address.
    NotPublic(IpAddr),
    /// It is no host.
    NotAHost,
}

impl Refusal {
    /// What a client sent in the place of a host.
    pub(crate) fn not_a_host(text: &str) -> Refusal {
        let shown: String = text.chars().take(SHOWN).collect();
        let more = if text.chars().nth(SHOWN).is_some() {
            "…"
        } else {
            ""
        };
        Refusal {
            target: format!("\"{}{more}\"", shown.escape_default()),
            reason: Reason::NotAHost,
        }
    }
}

/// One line for the model: what was refused, why, and what would change that.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} refused: ", self.target)?;
        match self.reason {
            Reason::NotGranted => f.write_str("not among the allowed hosts; ask with widen.hosts"),
            Reason::NotPublic(address) if is_public(address) => write!(
                f,
                "it leads to {address}, which is an address of this machine; only the person's configuration can allow that"
            ),
            Reason::NotPublic(address) => write!(
                f,
                "it leads to {address}, which is not a public address; only the person's configuration can allow that"
            ),
            Reason::NotAHost => f.write_str("no host name and no address"),
        }
    }
}

/// Is told what was refused. Called while a connection waits: it must not block.
pub trait ObserveNetwork: Send + Sync + 'static {
    /// A host was refused. May come as often as a command tries.
    fn refused(&self, refusal: &Refusal);
}

/// Nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl ObserveNetwork for Unobserved {
    fn refused(&self, _refusal: &Refusal) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_why_and_what_to_do_in_one_line() {
        let refusal = |reason| Refusal {
            target: "example.com:443".into(),
            reason,
        };
        assert_eq!(
            refusal(Reason::NotGranted).to_string(),
            "example.com:443 refused: not among the allowed hosts; ask with widen.hosts"
        );
        assert_eq!(
            refusal(Reason::NotPublic([127, 0, 0, 1].into())).to_string(),
            "example.com:443 refused: it leads to 127.0.0.1, which is not a public address; only the person's configuration can allow that"
        );
    }

    #[test]
    fn a_public_address_that_is_refused_is_the_machines_own() {
        let refusal = Refusal {
            target: "example.com:443".into(),
            reason: Reason::NotPublic([8, 8, 8, 8].into()),
        };
        assert!(
            refusal
                .to_string()
                .contains("8.8.8.8, which is an address of this machine;")
        );
    }

    #[test]
    fn what_a_client_sent_as_a_host_cannot_break_the_line() {
        let refusal = Refusal::not_a_host(&format!("a\0b\r\n\u{202e}]{}", "x".repeat(500)));
        let line = refusal.to_string();
        assert!(line.starts_with("\"a\\u{0}b\\r\\n\\u{202e}]xxx"), "{line}");
        assert!(
            line.ends_with("…\" refused: no host name and no address"),
            "{line}"
        );
        assert!(line.len() < 250);
    }
}
