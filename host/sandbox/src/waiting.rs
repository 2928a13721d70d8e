//! Whether a command waits for input: the hint that keeps somebody from waiting for its output.
//!
//! Asked of the kernel from outside, about the processes below the helper; a guess that never fails, only misses.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Where a command's input comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// The pipe that the kernel shows under this name.
    Pipe(String),
    /// The command's terminal.
    Terminal,
}

impl Input {
    /// The input of a command that reads this pipe.
    pub(crate) fn pipe(end: &OwnedFd) -> rustix::io::Result<Input> {
        Ok(Input::Pipe(format!(
            "pipe:[{}]",
            rustix::fs::fstat(end)?.st_ino
        )))
    }

    /// Whether that is what lies behind a process's standard input.
    fn is(&self, standard_input: &Path) -> bool {
        let shown = standard_input.to_string_lossy();
        match self {
            Input::Pipe(name) => shown == *name,
            Input::Terminal => shown.contains("/pts/") || shown == "/dev/tty",
        }
    }
}

/// Whether a process below `helper` is blocked reading `input`.
pub(crate) fn waits_for(input: &Input, helper: u32) -> bool {
    let mut waiting = children(helper);
    while let Some(pid) = waiting.pop() {
        if reads_standard_input(pid)
            && fs::read_link(format!("/proc/{pid}/fd/0")).is_ok_and(|link| input.is(&link))
        {
            return true;
        }
        waiting.extend(children(pid));
    }
    false
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| {
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// The kernel shows a blocked call as its number and its arguments: `0 0x0 0x7ffe…`.
fn reads_standard_input(pid: u32) -> bool {
    let Ok(call) = fs::read_to_string(format!("/proc/{pid}/syscall")) else {
        return false;
    };
    let mut words = call.split_ascii_whitespace();
    let number = words.next().and_then(|word| word.parse::<i64>().ok());
    number == Some(libc::SYS_read) && words.next() == Some("0x0")
}
