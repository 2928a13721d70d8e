//! The seam to the network: what a command is given before it starts, so that it finds its way to the hosts that it may
//! reach. Without anybody behind it commands are given nothing.

use std::any::Any;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use async_trait::async_trait;
use floe_sandbox::{Event, Signal};

use crate::CommandError;
use crate::launch::Hold;

/// Decides what commands reach over the network.
#[async_trait]
pub trait NetworkAccess: Send + Sync + 'static {
    /// Called before each command is started. `hosts` are those that were granted to this command alone, beside the
    /// Session's.
    ///
    /// # Errors
    /// What was granted cannot be given; the command is not started.
    async fn admit(&self, hosts: &[String]) -> Result<Pass, CommandError>;
}

/// What a command is given.
#[derive(Default)]
pub struct Pass {
    /// Variables that lead it through a proxy. They win over those that a call and the sandbox set, but for the hardened ones.
    pub environment: Vec<(String, String)>,
    /// Dropped when the command has ended.
    pub hold: Option<Box<dyn Any + Send + Sync>>,
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values may hold what only the command is to know.
        f.debug_struct("Pass").finish_non_exhaustive()
    }
}

/// Nothing but the sandbox's own network.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoNetwork;

#[async_trait]
impl NetworkAccess for NoNetwork {
    async fn admit(&self, _hosts: &[String]) -> Result<Pass, CommandError> {
        Ok(Pass::default())
    }
}

/// The hold on a command that has a pass, which ends with it.
#[derive(Debug)]
pub(crate) struct Passing {
    hold: Box<dyn Hold>,
    _pass: Pass,
}

impl Passing {
    pub(crate) fn new(hold: Box<dyn Hold>, pass: Pass) -> Passing {
        Passing { hold, _pass: pass }
    }
}

impl AsFd for Passing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.hold.as_fd()
    }
}

impl Hold for Passing {
    fn signal(&self, signal: Signal) -> io::Result<()> {
        self.hold.signal(signal)
    }

    fn kill(&self) {
        self.hold.kill();
    }

    fn try_event(&self) -> Option<Event> {
        self.hold.try_event()
    }
}
