//! Commands without a process: the test holds the other ends of their streams and says when they end.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use floe_sandbox::{ConfinedCommand, Event, SandboxError, Signal, Streams};

use crate::{Hold, Launch, Launched};

/// Starts puppets and hands their other ends out, in the order of their start.
#[derive(Debug, Default)]
pub(crate) struct Puppets {
    started: Mutex<VecDeque<Puppet>>,
    /// How many were killed or dropped.
    pub(crate) killed: Arc<AtomicUsize>,
    /// The environment that the last one was given.
    pub(crate) environment: Mutex<Vec<(OsString, OsString)>>,
}

/// The other ends.
#[derive(Debug)]
pub(crate) struct Puppet {
    pub(crate) stdin: io::PipeReader,
    pub(crate) stdout: io::PipeWriter,
    pub(crate) stderr: io::PipeWriter,
    end: Arc<Mutex<Option<Event>>>,
    told: UnixStream,
}

impl Puppets {
    /// The next puppet that was started.
    pub(crate) fn next(&self) -> Puppet {
        self.started
            .lock()
            .unwrap()
            .pop_front()
            .expect("a command was started")
    }

    pub(crate) fn count_killed(&self) -> usize {
        self.killed.load(Ordering::SeqCst)
    }
}

impl Puppet {
    /// Ends as a process does: its streams are closed.
    pub(crate) fn end(self, event: Event) {
        self.say(event);
    }

    /// Reports its end while its streams stay open.
    pub(crate) fn say(&self, event: Event) {
        *self.end.lock().unwrap() = Some(event);
        (&self.told).write_all(b"!").unwrap();
    }

    pub(crate) fn print(&mut self, bytes: &[u8]) {
        self.stdout.write_all(bytes).unwrap();
    }
}

impl Launch for Puppets {
    fn launch(&self, command: &ConfinedCommand) -> Result<Launched, SandboxError> {
        command
            .environment
            .clone_into(&mut self.environment.lock().unwrap());
        let (stdin, to_stdin) = io::pipe().unwrap();
        let (from_stdout, stdout) = io::pipe().unwrap();
        let (from_stderr, stderr) = io::pipe().unwrap();
        let (told, listening) = UnixStream::pair().unwrap();
        listening.set_nonblocking(true).unwrap();
        let end = Arc::new(Mutex::new(None));
        self.started.lock().unwrap().push_back(Puppet {
            stdin,
            stdout,
            stderr,
            end: Arc::clone(&end),
            told,
        });
        Ok(Launched {
            streams: Streams::Pipes {
                stdin: to_stdin.into(),
                stdout: from_stdout.into(),
                stderr: from_stderr.into(),
            },
            hold: Box::new(Strings {
                end,
                listening,
                killed: Arc::clone(&self.killed),
                counted: Mutex::new(false),
            }),
            pid: 0,
        })
    }

    fn launch_with_files(
        &self,
        command: &ConfinedCommand,
        _: &[PathBuf],
    ) -> Result<Launched, SandboxError> {
        self.launch(command)
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![("HOME".into(), "/floe/home".into())]
    }

    fn confinement(&self) -> String {
        "test".into()
    }
}

#[derive(Debug)]
struct Strings {
    end: Arc<Mutex<Option<Event>>>,
    listening: UnixStream,
    killed: Arc<AtomicUsize>,
    counted: Mutex<bool>,
}

impl AsFd for Strings {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listening.as_fd()
    }
}

impl Hold for Strings {
    fn signal(&self, _: Signal) -> io::Result<()> {
        Ok(())
    }

    fn kill(&self) {
        let mut end = self.end.lock().unwrap();
        if end.is_none() && !std::mem::replace(&mut self.counted.lock().unwrap(), true) {
            self.killed.fetch_add(1, Ordering::SeqCst);
        }
        end.get_or_insert(Event::SandboxEnded);
        let _ = self.listening.shutdown(std::net::Shutdown::Both);
    }

    fn try_event(&self) -> Option<Event> {
        self.end.lock().unwrap().clone()
    }
}

impl Drop for Strings {
    fn drop(&mut self) {
        self.kill();
    }
}
