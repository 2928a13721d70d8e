//! Whether a command waits for input: looked up in `/proc`, when a reader waited in vain. True only where it is known;
//! a program that polls, or a kernel that does not tell, counts as not waiting.

use std::collections::VecDeque;
use std::fs;

/// So many processes of a command are looked at: some microseconds each, on the reader's thread.
const MOST_PROCESSES: usize = 64;

/// The number of `read` as `/proc/<pid>/syscall` shows it.
#[cfg(target_arch = "x86_64")]
const READ: &str = "0";
#[cfg(not(target_arch = "x86_64"))]
const READ: &str = "63";

/// The input of a command as its processes have it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputKind {
    /// A pipe with this inode.
    Pipe(u64),
    /// A terminal. Within walls there is no other.
    Terminal,
}

/// True where `leader` or a process below it is blocked reading this input.
pub(crate) fn waits_for_input(leader: u32, input: InputKind) -> bool {
    let mut queue = VecDeque::from([leader]);
    let mut seen = 0;
    while let Some(pid) = queue.pop_front() {
        seen += 1;
        if seen > MOST_PROCESSES {
            return false;
        }
        if reads_from(pid, input) {
            return true;
        }
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        queue.extend(
            children
                .unwrap_or_default()
                .split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    false
}

/// True where the process is in `read` on a descriptor that is this input.
fn reads_from(pid: u32, input: InputKind) -> bool {
    let Ok(call) = fs::read_to_string(format!("/proc/{pid}/syscall")) else {
        return false;
    };
    let Some(descriptor) = descriptor_read(&call) else {
        return false;
    };
    let Ok(opened) = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")) else {
        return false;
    };
    match input {
        InputKind::Pipe(inode) => opened.as_os_str() == format!("pipe:[{inode}]").as_str(),
        InputKind::Terminal => opened.starts_with("/dev/pts") || opened.starts_with("/dev/tty"),
    }
}

/// The descriptor of a `read`, from a line of `/proc/<pid>/syscall`: the call's number, then its arguments in
/// hexadecimal.
fn descriptor_read(call: &str) -> Option<u64> {
    let mut fields = call.split_ascii_whitespace();
    if fields.next()? != READ {
        return None;
    }
    u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_read_has_a_descriptor() {
        let read = format!("{READ} 0x3 0x7ffd 0x1000 0x0 0x0 0x0 0x7ffc 0x7f1b\n");
        assert_eq!(descriptor_read(&read), Some(3));
        for other in [
            "running\n",
            "",
            "61 0x0 0x0",
            "-1 0x7ffd 0x7f1b",
            "read 0x0",
        ] {
            assert_eq!(descriptor_read(other), None, "{other:?}");
        }
    }
}
