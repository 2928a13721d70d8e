//! The seam to what starts processes: the sandbox in the product, a double in tests. Nothing else in this crate starts
//! one.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use floe_sandbox::{
    Appearance, ConfinedCommand, Control, Event, Sandbox, SandboxError, Signal, Streams,
};
use tokio::net::unix::pipe::Receiver;

/// Starts confined commands.
pub trait Launch: Send + Sync + 'static {
    /// Starts one. May block for some milliseconds; it is called from a thread that may.
    fn launch(&self, command: &ConfinedCommand) -> Result<Launched, SandboxError>;

    /// As [`Launch::launch`], with `files` of the host readable at their own paths for this one command.
    fn launch_with_files(
        &self,
        command: &ConfinedCommand,
        files: &[PathBuf],
    ) -> Result<Launched, SandboxError>;

    /// The variables that only the launcher knows: HOME, TMPDIR and where tool chains lie.
    fn environment(&self) -> Vec<(OsString, OsString)>;

    /// The word that a result carries: `native`, `bwrap`, `landlock` or `UNCONFINED`.
    fn confinement(&self) -> String;

    /// What the person should know of the walls once the first command stands in them; told once.
    fn warning(&self) -> Option<String> {
        None
    }

    /// What has appeared in the Workspace that is obeyed outside the sandbox; each is told once. May block for some
    /// milliseconds.
    fn appeared(&self) -> Vec<Appearance> {
        Vec::new()
    }

    /// Files of the Workspace that have a further name elsewhere, once the first command was started; told once.
    fn hard_links(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// A process that runs.
#[derive(Debug)]
pub struct Launched {
    /// What it reads and writes.
    pub streams: Streams,
    /// The hold on it.
    pub hold: Box<dyn Hold>,
    /// A process on the host that is, or is above, every process of the command.
    pub pid: u32,
}

/// The hold on a running command and all its children; dropping it ends them. Its descriptor polls readable when
/// [`Hold::try_event`] has something to say.
pub trait Hold: AsFd + Send + Sync + std::fmt::Debug {
    /// Sends a signal to the command's group. A command that has ended is no error.
    fn signal(&self, signal: Signal) -> io::Result<()>;

    /// Ends the command and all its children at once. May be called more than once.
    fn kill(&self);

    /// How the command ended, if it has; never waits.
    fn try_event(&self) -> Option<Event>;
}

impl Launch for Sandbox {
    fn launch(&self, command: &ConfinedCommand) -> Result<Launched, SandboxError> {
        self.launch_with_files(command, &[])
    }

    fn launch_with_files(
        &self,
        command: &ConfinedCommand,
        files: &[PathBuf],
    ) -> Result<Launched, SandboxError> {
        let child = self.spawn_with_files(command, files)?;
        Ok(Launched {
            streams: child.streams,
            hold: Box::new(child.control),
            pid: child.pid,
        })
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        Sandbox::environment(self)
    }

    fn confinement(&self) -> String {
        Sandbox::confinement(self).as_str().to_owned()
    }

    fn warning(&self) -> Option<String> {
        Sandbox::warning(self)
    }

    fn appeared(&self) -> Vec<Appearance> {
        Sandbox::appeared(self)
    }

    fn hard_links(&self) -> Vec<PathBuf> {
        Sandbox::hard_links(self)
    }
}

impl Hold for Control {
    fn signal(&self, signal: Signal) -> io::Result<()> {
        Control::signal(self, signal)
    }

    fn kill(&self) {
        Control::kill(self);
    }

    fn try_event(&self) -> Option<Event> {
        Control::try_event(self)
    }
}

/// A [`Hold`] that the reactor watches.
#[derive(Debug)]
pub(crate) struct Held {
    hold: Box<dyn Hold>,
    /// A copy of the hold's descriptor, which is only ever waited for. It goes when the hold does.
    readiness: Receiver,
}

impl Held {
    /// Must be called in the context of a tokio runtime.
    pub(crate) fn new(hold: Box<dyn Hold>) -> io::Result<Held> {
        let readiness = Receiver::from_owned_fd_unchecked(hold.as_fd().try_clone_to_owned()?)?;
        Ok(Held { hold, readiness })
    }

    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        self.hold.signal(signal)
    }

    pub(crate) fn kill(&self) {
        self.hold.kill();
    }

    /// Waits for the end.
    pub(crate) async fn event(&self) -> Event {
        let event = || {
            self.hold
                .try_event()
                .ok_or_else(|| io::ErrorKind::WouldBlock.into())
        };
        loop {
            if let Ok(event) = event() {
                return event;
            }
            if self.readiness.readable().await.is_err() {
                return Event::SandboxEnded;
            }
            if let Ok(event) = self.readiness.try_io(event) {
                return event;
            }
        }
    }
}
