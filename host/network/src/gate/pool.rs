//! Connections that wait to be used again within their Session. One is used only for the very target that it was made for, whose
//! addresses do not change while the Session lasts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::address::Address;
use super::dial::Connection;
use crate::host::Target;

/// Connections that wait at once.
const MOST: usize = 16;
/// How long one waits.
const LONGEST: Duration = Duration::from_secs(20);

struct Waiting {
    target: Target,
    is_secure: bool,
    since: Instant,
    connection: Connection,
}

/// The waiting connections of one Session, the longest waiting first.
#[derive(Default)]
pub(super) struct Pool(Mutex<Vec<Waiting>>);

impl Pool {
    /// A connection to `to` that looks alive.
    pub(super) fn take(&self, to: &Address) -> Option<Connection> {
        let mut waiting = self.waiting();
        waiting.retain(|one| one.since.elapsed() < LONGEST && one.connection.sender.is_ready());
        let same = |one: &Waiting| one.target == to.target && one.is_secure == to.is_secure;
        let index = waiting.iter().rposition(same)?;
        Some(waiting.remove(index).connection)
    }

    /// Keeps a connection whose last response was read to its end.
    pub(super) fn put(&self, target: Target, is_secure: bool, connection: Connection) {
        if connection.sender.is_closed() {
            return;
        }
        let mut waiting = self.waiting();
        if waiting.len() >= MOST {
            waiting.remove(0);
        }
        waiting.push(Waiting {
            target,
            is_secure,
            since: Instant::now(),
            connection,
        });
    }

    /// Ends all of them.
    pub(super) fn clear(&self) {
        self.waiting().clear();
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
