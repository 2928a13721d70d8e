//! Whether a command waits for input: looked up in `/proc`, when a reader waited in vain. True only where it is known: a
//! process of it is blocked reading its input, or waiting for that and nothing else without a limit of time. A program
//! that also waits for a socket, another program or a clock, and a kernel that does not tell, count as not waiting.
//!
//! What is read belongs to programs that may be hostile: everything is bounded, and all they can gain by lying is a wrong
//! hint about themselves.

use std::fs;
use std::path::PathBuf;

use self::blocked::Blocked;
use crate::processes;

mod blocked;

/// So many descriptors of one process are looked at.
const MOST_DESCRIPTORS: usize = 64;

/// The input of a command as its processes have it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputKind {
    /// A pipe with this inode.
    Pipe(u64),
    /// A terminal. Within walls there is no other.
    Terminal,
}

/// True where `leader` or a process below it waits for this input.
pub(crate) fn waits_for_input(leader: u32, input: InputKind) -> bool {
    processes::any(leader, |pid| Process { pid, input }.waits())
}

/// One process that may wait for the command's input.
struct Process {
    pid: u32,
    input: InputKind,
}

impl Process {
    fn waits(&self) -> bool {
        let call = fs::read_to_string(format!("/proc/{}/syscall", self.pid));
        match call.ok().as_deref().and_then(Blocked::in_call) {
            None => false,
            Some(Blocked::Reading(descriptor)) => self.is_input(descriptor),
            Some(Blocked::Watching(watch)) => {
                let watched = watch.descriptors(self.pid, MOST_DESCRIPTORS);
                watched.is_some_and(|watched| {
                    watched.iter().any(|descriptor| self.is_input(*descriptor))
                        && watched.iter().all(|descriptor| {
                            self.is_input(*descriptor) || self.is_its_own(*descriptor)
                        })
                })
            }
        }
    }

    fn is_input(&self, descriptor: u64) -> bool {
        let Some(opened) = self.opened(descriptor) else {
            return false;
        };
        match self.input {
            InputKind::Pipe(inode) => opened.as_os_str() == format!("pipe:[{inode}]").as_str(),
            InputKind::Terminal => opened.starts_with("/dev/pts") || opened.starts_with("/dev/tty"),
        }
    }

    /// Whether only the process itself can make this descriptor ready: what event loops wake themselves with.
    fn is_its_own(&self, descriptor: u64) -> bool {
        let Some(opened) = self.opened(descriptor) else {
            return false;
        };
        let name = opened.to_string_lossy();
        if matches!(&*name, "anon_inode:[eventfd]" | "anon_inode:[signalfd]") {
            return true;
        }
        // A pipe of which it holds both ends.
        name.starts_with("pipe:[")
            && fs::read_dir(format!("/proc/{}/fd", self.pid)).is_ok_and(|descriptors| {
                descriptors
                    .take(4 * MOST_DESCRIPTORS)
                    .flatten()
                    .filter(|entry| fs::read_link(entry.path()).is_ok_and(|other| other == opened))
                    .nth(1)
                    .is_some()
            })
    }

    fn opened(&self, descriptor: u64) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{}/fd/{descriptor}", self.pid)).ok()
    }
}

#[cfg(test)]
mod tests;
