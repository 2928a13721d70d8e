//! The wire between the host and the process that leads a command's sandbox.
//!
//! One `SOCK_SEQPACKET` pair per command. The host's end is the command's lifeline: when the last copy of it is closed, by
//! [`Control::kill`], by dropping, or because the host died, the sandbox ends and the kernel kills everything in it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::SandboxError;
use crate::excess::Excess;
use crate::layer::Layer;
use crate::reaper::Helper;

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

/// How a command ended. What it started may go on to write what it still has, for two seconds at most and only as long as the
/// host holds its control; then all of it is ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(Signal),
    /// It was ended, with everything in its sandbox, because it used more than the operator allows.
    Stopped(Excess),
    /// The sandbox went away under it: it was killed through [`Control::kill`] or from outside.
    SandboxEnded,
}

/// What the host asks of the process that leads the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Request {
    /// The plan is in the first of the descriptors that come along.
    Plan,
    /// Send this signal to the command's process group.
    Signal(i32),
}

/// What that process reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Report {
    /// The Session's namespaces: user and network come along.
    Anchored(Vec<Layer>),
    /// A socket that listens within the Session's network comes along.
    Listening,
    /// Said to the helper outside bubblewrap by the one within it: it has its plan. Where something is to be held in the
    /// Workspace, its mount namespace comes along.
    Inside,
    /// All walls stand and the command runs; with a terminal its master comes along.
    Ready(Vec<Layer>),
    /// The command was not run.
    Failed(SandboxError),
    /// The command ended with this code.
    Exited(i32),
    /// The command was ended by this signal.
    Signaled(i32),
    /// The command is about to be ended, because it used too much.
    Stopped(Excess),
}

/// The longest message: a failed wall with all its words is far below.
const LONGEST_MESSAGE: usize = 64 * 1024;

/// The most descriptors that one message carries.
const MOST_DESCRIPTORS: usize = 8;

/// What came in.
pub(crate) enum Received<T> {
    Message(T, Vec<OwnedFd>),
    /// Nothing yet, on a socket that does not wait.
    Nothing,
    /// The other side is gone.
    End,
}

/// A connected pair; both ends are closed on exec.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Sends one message with the descriptors that belong to it.
pub(crate) fn send<T: Serialize>(
    socket: impl AsFd,
    message: &T,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
    }
    let parts = [IoSlice::new(&bytes)];
    rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(socket.as_fd(), &parts, &mut ancillary, SendFlags::NOSIGNAL)
    })?;
    Ok(())
}

/// Receives one message with its descriptors, which are closed on exec.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Received<T>> {
    let mut bytes = vec![0_u8; LONGEST_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::io::retry_on_intr(|| {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        rustix::net::recvmsg(
            socket.as_fd(),
            &mut parts,
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )
    });
    let length = match received {
        Ok(message) => message.bytes,
        Err(Errno::AGAIN) => return Ok(Received::Nothing),
        Err(Errno::CONNRESET) => return Ok(Received::End),
        Err(errno) => return Err(errno.into()),
    };
    if length == 0 {
        return Ok(Received::End);
    }
    let descriptors = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    Ok(Received::Message(
        serde_json::from_slice(&bytes[..length])?,
        descriptors,
    ))
}

/// Waits until `socket` has something to say, at most `patience` long where that is given; whether it has.
pub(crate) fn wait_readable(socket: impl AsFd, patience: Option<Duration>) -> io::Result<bool> {
    let until = patience.map(|patience| std::time::Instant::now() + patience);
    loop {
        let left = until.map(|until| {
            let left = until.saturating_duration_since(std::time::Instant::now());
            Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            }
        });
        let mut polled = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
        match poll(&mut polled, left.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// The host's hold on a running command. Dropping it ends the sandbox and everything in it.
///
/// Its descriptor ([`AsFd`]) does not block, and polls readable when [`Control::try_event`] has something to say.
#[derive(Debug)]
pub struct Control {
    socket: OwnedFd,
    ended: OnceLock<Event>,
    /// Collected when this is dropped.
    _helper: Helper,
}

impl Control {
    pub(crate) fn new(socket: OwnedFd, helper: Helper) -> io::Result<Control> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Control {
            socket,
            ended: OnceLock::new(),
            _helper: helper,
        })
    }

    /// Sends `signal` to the command's process group. A command that has ended is no error.
    ///
    /// # Errors
    ///
    /// The sandbox cannot be told: its socket takes no more.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match send(&self.socket, &Request::Signal(signal.number()), &[]) {
            Err(error) if gone(&error) => Ok(()),
            other => other,
        }
    }

    /// Ends the sandbox and everything in it, at once. May be called more than once.
    pub fn kill(&self) {
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }

    /// How the command ended, if it has; never waits, and keeps saying the same.
    pub fn try_event(&self) -> Option<Event> {
        if let Some(event) = self.ended.get() {
            return Some(event.clone());
        }
        let event = match receive::<Report>(&self.socket) {
            Ok(Received::Nothing) => return None,
            Ok(Received::Message(Report::Exited(code), _)) => Event::Exited(code),
            Ok(Received::Message(Report::Signaled(number), _)) => Event::Signaled(Signal(number)),
            Ok(Received::Message(Report::Stopped(excess), _)) => Event::Stopped(excess),
            Ok(Received::Message(..) | Received::End) | Err(_) => Event::SandboxEnded,
        };
        Some(self.ended.get_or_init(|| event).clone())
    }

    /// Waits until the command ends.
    pub fn wait(&self) -> Event {
        loop {
            if let Some(event) = self.try_event() {
                return event;
            }
            if wait_readable(&self.socket, None).is_err() {
                return Event::SandboxEnded;
            }
        }
    }
}

/// Whether a send failed because nobody is left to receive it.
fn gone(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPIPE | libc::ECONNRESET | libc::ENOTCONN)
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_known_by_its_long_and_its_short_name() {
        assert_eq!(Signal::from_name("SIGINT"), Some(Signal::INTERRUPT));
        assert_eq!(Signal::from_name("term"), Some(Signal::TERMINATE));
        assert_eq!(Signal::from_name("NOPE"), None);
        assert_eq!(Signal::KILL.name(), "SIGKILL");
        assert_eq!(Signal::from_number(34).unwrap().name(), "SIG34");
        assert_eq!(Signal::from_number(0), None);
    }

    #[test]
    fn a_message_arrives_with_its_descriptors_and_the_end_is_told_apart_from_silence() {
        let (ours, theirs) = pair().unwrap();
        rustix::io::ioctl_fionbio(&theirs, true).unwrap();
        assert!(matches!(
            receive::<Request>(&theirs).unwrap(),
            Received::Nothing
        ));
        send(&ours, &Request::Signal(2), &[ours.as_fd()]).unwrap();
        match receive::<Request>(&theirs).unwrap() {
            Received::Message(Request::Signal(2), descriptors) => {
                assert_eq!(descriptors.len(), 1);
            }
            _ => panic!("the message did not arrive"),
        }
        drop(ours);
        assert!(matches!(
            receive::<Request>(&theirs).unwrap(),
            Received::End
        ));
    }
}
