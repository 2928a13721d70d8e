//! What a keyboard does to a terminal, from its master's side.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, QueueSelector, SpecialCodeIndex};

use crate::control::Signal;

/// Ctrl-C.
const END_OF_TEXT: u8 = 0x03;

/// Does what Ctrl-C does where a terminal is set to be interrupted by it: forgets what was typed and not read, shows `^C`
/// where it echoes, and sends SIGINT to its foreground group. False, and nothing is done, where the program has asked for
/// that character itself: it is to be typed then.
///
/// Typing it is not enough everywhere: a terminal whose program does not read takes no further characters, and does not
/// look at those that wait.
///
/// # Errors
///
/// It is no master, or its terminal has gone. What was typed may be forgotten already.
pub fn interrupt_foreground(master: impl AsFd) -> io::Result<bool> {
    let master = master.as_fd();
    // A master shows the modes of its terminal.
    let modes = rustix::termios::tcgetattr(master)?;
    let interrupts = modes.local_modes.contains(LocalModes::ISIG)
        && modes.special_codes[SpecialCodeIndex::VINTR] == END_OF_TEXT;
    if !interrupts {
        return Ok(false);
    }
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let terminal = rustix::pty::ioctl_tiocgptpeer(master, flags)?;
    if !modes.local_modes.contains(LocalModes::NOFLSH) {
        rustix::termios::tcflush(master, QueueSelector::OFlush)?;
        rustix::termios::tcflush(&terminal, QueueSelector::IFlush)?;
    }
    if modes.local_modes.contains(LocalModes::ECHO) {
        // Nothing waits for a terminal that is held up.
        rustix::io::ioctl_fionbio(&terminal, true)?;
        let _ = rustix::io::write(&terminal, b"^C");
    }
    let (descriptor, signal) = (master.as_raw_fd(), Signal::INTERRUPT.number());
    // SAFETY: takes a number by value and touches no memory; what is no master is refused.
    match unsafe { libc::ioctl(descriptor, libc::TIOCSIG, signal) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_master_of_a_terminal_is_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let refusal = interrupt_foreground(&file).unwrap_err();
        assert_eq!(refusal.raw_os_error(), Some(libc::ENOTTY));
    }

    #[test]
    fn a_terminal_in_raw_mode_is_left_to_its_program() {
        let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let mut modes = rustix::termios::tcgetattr(&master).unwrap();
        modes.make_raw();
        rustix::termios::tcsetattr(&master, rustix::termios::OptionalActions::Now, &modes).unwrap();
        assert!(!interrupt_foreground(&master).unwrap());
    }
}
