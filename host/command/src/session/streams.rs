//! A command's descriptors as the reactor watches them.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use floe_sandbox::Streams;
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::Channel;
use crate::output::Source;
use crate::waiting::InputKind;

/// A command's streams as the reactor watches them.
#[derive(Debug)]
pub(crate) struct Descriptors {
    pub(crate) stdin: Sender,
    /// By what the command's processes can be recognised as readers of it, where that is known.
    pub(crate) input_kind: Option<InputKind>,
    pub(crate) sources: Vec<Arc<Source>>,
    pub(crate) terminal: Option<Arc<Source>>,
}

impl Descriptors {
    /// Must be called in the context of a tokio runtime.
    pub(crate) fn of(streams: Streams) -> io::Result<Descriptors> {
        let source = |channel, descriptor| {
            let descriptor = Receiver::from_owned_fd_unchecked(not_blocking(descriptor)?)?;
            io::Result::Ok(Arc::new(Source {
                channel,
                descriptor,
            }))
        };
        let sink = |descriptor| Sender::from_owned_fd_unchecked(not_blocking(descriptor)?);
        match streams {
            Streams::Pipes {
                stdin,
                stdout,
                stderr,
            } => Ok(Descriptors {
                input_kind: rustix::fs::fstat(&stdin)
                    .ok()
                    .map(|stat| InputKind::Pipe(stat.st_ino)),
                stdin: sink(stdin)?,
                sources: vec![
                    source(Channel::Stdout, stdout)?,
                    source(Channel::Stderr, stderr)?,
                ],
                terminal: None,
            }),
            Streams::Terminal(master) => {
                let stdin = sink(master.try_clone()?)?;
                let master = source(Channel::Stdout, master)?;
                Ok(Descriptors {
                    stdin,
                    input_kind: Some(InputKind::Terminal),
                    sources: vec![Arc::clone(&master)],
                    terminal: Some(master),
                })
            }
        }
    }
}

fn not_blocking(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    Ok(descriptor)
}
