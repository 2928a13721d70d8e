//! The decision: whether a request may be sent where it wants to go, and to which addresses that leads. Names are looked up here and
//! nowhere else, once per Session, and only after everything that can be said without their addresses.

use std::net::{IpAddr, SocketAddr};

use tokio::time::{Instant, timeout_at};

use super::address::Address;
use super::denial::{Denial, Why};
use super::error::GateError;
use super::names;
use super::{Reach, Shared};
use crate::address::{is_of_this_machine, is_public};
use crate::grants::Route;
use crate::host::Host;
use crate::resolver::NoAddress;

/// Where a request may go.
pub(super) enum Permit {
    /// To this address, on the person's own word.
    Pinned(SocketAddr),
    /// To what its host leads to, as long as that is public.
    Public,
}

impl Permit {
    /// Whether what is sent does not leave the machine.
    pub(super) fn is_loopback(&self) -> bool {
        matches!(self, Permit::Pinned(address) if address.ip().to_canonical().is_loopback())
    }
}

impl Shared {
    /// Whether `to` may be asked, before anything is looked up.
    pub(super) fn permit(
        &self,
        to: &Address,
        reads_only: bool,
        reach: &Reach,
    ) -> Result<Permit, GateError> {
        let refuse = |why| Err(denial(to, why));
        if !reads_only && reach.reads_only {
            return refuse(Why::ReadOnlyCall);
        }
        let host = &to.target.host;
        let scope = &self.scope;
        if scope.blocked.holds(host) {
            return refuse(Why::Blocked);
        }
        let granted = self.grants.route(&to.target);
        match granted.or_else(|| reach.hosts.route(&to.target)) {
            Some(Route::Pinned(address)) => return Ok(Permit::Pinned(address)),
            Some(Route::Literal(_) | Route::Resolve) => {}
            None if is_inside(host) => return refuse(Why::Local),
            None if !scope.allowed.holds(host) => return refuse(Why::NotAllowed),
            None if !scope.ports.contains(&to.target.port) => return refuse(Why::Port),
            None if !reads_only && !scope.write.holds(host) => return refuse(Why::ReadOnlyHost),
            None => {}
        }
        match is_inside(host) {
            true => refuse(Why::Local),
            false => Ok(Permit::Public),
        }
    }

    /// Whether a response of `from` may lead a request to `to`: a page of the web sends nobody to what the person alone made reachable.
    pub(super) fn may_lead(&self, from: &Address, to: &Address, reach: &Reach) -> bool {
        let is_pinned = |at| matches!(self.permit(at, true, reach), Ok(Permit::Pinned(_)));
        is_pinned(from) || !is_pinned(to)
    }

    /// The addresses to connect to.
    pub(super) async fn addresses(
        &self,
        to: &Address,
        permit: &Permit,
        deadline: Instant,
    ) -> Result<Vec<SocketAddr>, GateError> {
        let name = match (permit, &to.target.host) {
            (Permit::Pinned(address), _) => return Ok(vec![*address]),
            (Permit::Public, Host::Address(address)) => {
                if is_of_this_machine(*address) {
                    return Err(denial(to, Why::LeadsInside(*address)));
                }
                return Ok(vec![SocketAddr::new(*address, to.target.port)]);
            }
            (Permit::Public, Host::Name(name)) => name,
        };
        let found = timeout_at(deadline, self.pins.addresses(name)).await;
        let blocked = |address: &IpAddr| self.scope.blocked.holds(&Host::Address(*address));
        let unknown = || {
            GateError::failed(format!(
                "Host '{name}' cannot be resolved; nothing was sent"
            ))
        };
        match found.map_err(|_| unknown())? {
            // Whoever blocks an address means it, whatever name it goes by.
            Ok(addresses) if addresses.iter().any(blocked) => Err(denial(to, Why::Blocked)),
            Ok(addresses) => Ok(addresses
                .into_iter()
                .map(|address| SocketAddr::new(address, to.target.port))
                .collect()),
            Err(NoAddress::NotPublic(address)) => Err(denial(to, Why::LeadsInside(address))),
            Err(NoAddress::Unknown) => Err(unknown()),
            Err(NoAddress::TooMany) => Err(denial(to, Why::TooManyNames)),
        }
    }
}

/// Whether a host is inside by what it is called.
pub(super) fn is_inside(host: &Host) -> bool {
    match host {
        Host::Name(name) => names::is_local(name),
        Host::Address(address) => !is_public(*address),
    }
}

fn denial(to: &Address, why: Why) -> GateError {
    GateError::Refused(Denial {
        host: to.target.host.to_string(),
        port: to.target.port,
        why,
    })
}
