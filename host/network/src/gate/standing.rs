//! What a host that somebody asks to be granted is to the gate already, so that nobody is asked for what is given anyway or cannot
//! be given.

use super::Shared;
use super::route::is_inside;
use super::scope::DomainPattern;
use crate::grants::HostGrant;
use crate::host::Host;

/// What a grant would add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: it is reached anyway.
    Reached,
    /// Nothing: it is never reached.
    Blocked,
    /// Nothing: it lies inside, where only a grant with an address leads.
    Inside,
    /// What it names.
    Beyond,
}

impl Shared {
    pub(super) fn standing(&self, grant: &HostGrant, reads_only: bool) -> Standing {
        let pattern = grant.names();
        let scope = &self.scope;
        let one_host = match &pattern {
            DomainPattern::Within(host) => Some(host),
            _ => None,
        };
        if one_host.is_some_and(|host| scope.blocked.holds(host)) {
            return Standing::Blocked;
        }
        if self.grants.iter().any(|own| own.covers(grant)) {
            return Standing::Reached;
        }
        let inside = match &pattern {
            DomainPattern::Below(name) => is_inside(&Host::Name(name.clone())),
            _ => one_host.is_some_and(is_inside),
        };
        if inside {
            return Standing::Inside;
        }
        let lists = [Some(&scope.allowed), (!reads_only).then_some(&scope.write)];
        let reached = scope.ports.contains(&grant.port())
            && lists.into_iter().flatten().all(|list| match one_host {
                Some(host) => list.holds(host),
                None => list.iter().any(|own| own.covers(&pattern)),
            });
        match reached {
            true => Standing::Reached,
            false => Standing::Beyond,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DomainList, Gate, GateOptions, Scope};
    use super::*;
    use crate::grants::HostGrants;

    #[test]
    fn a_host_is_asked_for_only_where_a_grant_would_add_something_that_can_be_given() {
        let list = |entries: &[&str]| DomainList::parse(entries).unwrap();
        let gate = Gate::new(GateOptions {
            scope: Scope {
                allowed: list(&["*.example.com", "example.org"]),
                write: list(&["api.example.com"]),
                blocked: list(&["blocked.example.com"]),
                ports: vec![443],
            },
            grants: HostGrants::parse(&["dev.test:80=127.0.0.1"]).unwrap(),
            ..GateOptions::default()
        });
        for (host, to_read, to_write) in [
            ("www.example.com", Standing::Reached, Standing::Beyond),
            ("api.example.com", Standing::Reached, Standing::Reached),
            ("api.example.com:80", Standing::Beyond, Standing::Beyond),
            ("*.www.example.com", Standing::Reached, Standing::Beyond),
            ("*.api.example.com", Standing::Reached, Standing::Reached),
            ("example.com", Standing::Beyond, Standing::Beyond),
            ("blocked.example.com", Standing::Blocked, Standing::Blocked),
            (
                "a.blocked.example.com:80",
                Standing::Blocked,
                Standing::Blocked,
            ),
            ("dev.test:80", Standing::Reached, Standing::Reached),
            ("dev.test:81", Standing::Beyond, Standing::Beyond),
            ("localhost:8080", Standing::Inside, Standing::Inside),
            ("*.corp.internal", Standing::Inside, Standing::Inside),
        ] {
            let grant = host.parse().unwrap();
            assert_eq!(gate.standing(&grant, true), to_read, "{host}");
            assert_eq!(gate.standing(&grant, false), to_write, "{host}");
        }
    }
}
