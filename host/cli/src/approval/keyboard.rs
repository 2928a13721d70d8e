//! The keyboard of a terminal as a source of answers. It reads only while a question is open, and stops the moment the
//! question is closed in another way.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{QueueSelector, tcflush};

use super::answer::{Line, Lines};

/// More than an answer ever has.
const LONGEST_LINE: usize = 4096;

/// Standard input, where it is a terminal.
pub(crate) struct Keyboard {
    input: io::Stdin,
    /// The other end is closed when the question is.
    closed: OwnedFd,
}

impl Keyboard {
    /// The keyboard for one question, which is closed by closing the other end of `closed`.
    pub(crate) fn new(closed: OwnedFd) -> Keyboard {
        Keyboard {
            input: io::stdin(),
            closed,
        }
    }

    /// Waits until something is there. The descriptor is read directly: a buffer of the library could hold keys from before.
    fn wait(&self) -> Result<(), Line> {
        loop {
            let mut watched = [
                PollFd::new(&self.input, PollFlags::IN),
                PollFd::new(&self.closed, PollFlags::IN),
            ];
            match poll(&mut watched, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => return Err(Line::Ended),
            }
            let [input, closed] = watched.map(|watched| watched.revents());
            if !closed.is_empty() {
                return Err(Line::Closed);
            }
            if !input.is_empty() {
                return Ok(());
            }
        }
    }
}

impl Lines for Keyboard {
    fn discard_typed(&mut self) {
        // Where this fails, input is no terminal and nothing was typed.
        let _ = tcflush(self.input.as_fd(), QueueSelector::IFlush);
    }

    fn next_line(&mut self) -> Line {
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            if let Err(instead) = self.wait() {
                return instead;
            }
            let mut piece = [0; 256];
            match rustix::io::read(&self.input, &mut piece) {
                Ok(0) => return Line::Ended,
                Ok(count) => line.extend_from_slice(&piece[..count]),
                Err(Errno::INTR) => {}
                Err(_) => return Line::Ended,
            }
            if line.len() > LONGEST_LINE {
                line.clear();
            }
        }
        Line::Text(String::from_utf8_lossy(&line).into_owned())
    }
}
