//! From a target to a connection: whether it was granted, where it leads, and whether somebody is there.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::credentials::Admission;
use crate::grants::Route;
use crate::host::{Host, Target};
use crate::proxy::Shared;
use crate::refusal::{Reason, Refusal};
use crate::resolver::NoAddress;

/// Why there is no connection to a target.
#[derive(Debug)]
pub(crate) enum Unreachable {
    /// It may not be reached; the observer has been told.
    Refused(Refusal),
    /// The name is not known.
    Unknown,
    /// The Session's commands have asked for more names than are kept.
    TooManyNames,
    /// It did not answer in time.
    TimedOut,
    /// It cannot be reached.
    Failed(io::Error),
}

impl Shared {
    /// Connects to `target`, if it was granted to the Session or to this client.
    pub(crate) async fn dial(
        &self,
        target: &Target,
        admission: &Admission,
    ) -> Result<TcpStream, Unreachable> {
        let mut grants = self.grants.clone();
        grants.extend(&admission.grants);
        let addresses = match (grants.route(target), &target.host) {
            (Some(Route::Pinned(address) | Route::Literal(address)), _) => vec![address],
            (Some(Route::Resolve), Host::Name(name)) => self.resolve(name, target).await?,
            _ => return Err(self.refused(target, Reason::NotGranted)),
        };
        let stream = connect(&addresses, Instant::now() + self.limits.connect).await?;
        // Small messages go back and forth in what is tunnelled.
        stream.set_nodelay(true).map_err(Unreachable::Failed)?;
        Ok(stream)
    }

    async fn resolve(&self, name: &str, target: &Target) -> Result<Vec<SocketAddr>, Unreachable> {
        match self.pins.addresses(name).await {
            Ok(addresses) => Ok(addresses
                .into_iter()
                .map(|address| SocketAddr::new(address, target.port))
                .collect()),
            Err(NoAddress::NotPublic(address)) => {
                Err(self.refused(target, Reason::NotPublic(address)))
            }
            Err(NoAddress::Unknown) => Err(Unreachable::Unknown),
            Err(NoAddress::TooMany) => Err(Unreachable::TooManyNames),
        }
    }

    fn refused(&self, target: &Target, reason: Reason) -> Unreachable {
        let refusal = Refusal {
            target: target.to_string(),
            reason,
        };
        self.refuse(&refusal);
        Unreachable::Refused(refusal)
    }
}

/// Tries one address after the other; each of several has its share of the time until `end`.
pub(crate) async fn connect(
    addresses: &[SocketAddr],
    end: Instant,
) -> Result<TcpStream, Unreachable> {
    let mut last = Unreachable::Unknown;
    for (index, address) in addresses.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        let others = u32::try_from(addresses.len() - index).unwrap_or(1);
        let share = Instant::now() + left / others;
        last = match timeout_at(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => Unreachable::Failed(error),
            Err(_) => Unreachable::TimedOut,
        };
    }
    Err(last)
}
