//! The leader's watch over what a command uses of the machine that no limit of the kernel's bounds as a whole: the memory
//! of all its processes, what it leaves in the Session's private folders, and the free space of the disks it writes to.
//!
//! The watch is one deadline in the leader's loop. It looks rarely where there is far to go to a limit, and never takes
//! more than a small part of a processor: what has cost much is looked at less often. It must never wait for anything the
//! command could hold up, and it never changes what it looks at.

mod folder;
mod memory;

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use self::folder::Walk;
pub(super) use self::memory::Processes;
use super::failed;
use crate::error::SandboxError;
use crate::excess::Excess;
use crate::layer::LayerName;
use crate::plan::{Bytes, Execution};

const MIB: u64 = 1024 * 1024;

/// The first look, which a short command never sees, and the least time between two.
const SOONEST: Duration = Duration::from_millis(100);

/// The most time between two looks, where they cost next to nothing.
const LATEST: Duration = Duration::from_secs(1);

/// How fast a command is expected to use up what is left to a limit, in bytes a second.
const FASTEST: u64 = 4 * 1024 * MIB;

/// A look is followed by at least so many times its own duration without one.
const REST: u32 = 10;

/// So much longer is rested from walks of folders on a disk that has not become fuller.
const QUIET_REST: u32 = 10;

/// How long a walk may keep the leader from its other duties.
const SLICE: Duration = Duration::from_millis(2);

/// Watches over one command.
pub(super) struct Watch<'e> {
    execution: &'e Execution,
    processes: Processes,
    /// Opened before the command runs, so that it cannot put anything else in their place.
    workspace: OwnedFd,
    private: Vec<OwnedFd>,
    /// When memory and free space are looked at.
    look: Instant,
    /// When the private folders are.
    walk: Instant,
    walking: Option<Walk>,
    /// Until when they are not walked again, as long as their disks have not become fuller.
    quiet_until: Instant,
    /// The free space of their disks, in bytes, when the last walk began.
    free_at_walk: u64,
}

impl<'e> Watch<'e> {
    /// Begins just before the command does.
    ///
    /// # Errors
    ///
    /// What is to be watched is not there.
    pub(super) fn over(
        execution: &'e Execution,
        processes: Processes,
    ) -> Result<Watch<'e>, SandboxError> {
        let first = Instant::now() + SOONEST;
        let private = execution.fillable.private.iter().map(open);
        Ok(Watch {
            execution,
            processes,
            workspace: open(&execution.fillable.workspace)?,
            private: private.collect::<Result<_, _>>()?,
            look: first,
            walk: first,
            walking: None,
            quiet_until: first,
            free_at_walk: 0,
        })
    }

    /// How long the leader may sleep.
    pub(super) fn patience(&self) -> Duration {
        self.look
            .min(self.walk)
            .saturating_duration_since(Instant::now())
    }

    /// Looks at what is due, for some milliseconds at most; what the command is to be ended for.
    pub(super) fn look(&mut self) -> Option<Excess> {
        let now = Instant::now();
        let excess = if now >= self.look {
            self.totals()
        } else {
            None
        };
        if excess.is_some() || now < self.walk {
            return excess;
        }
        self.folders()
    }

    /// Memory and free space.
    fn totals(&mut self) -> Option<Excess> {
        let started = Instant::now();
        let limits = self.execution.limits;
        let (most_memory, least_free) = (
            limits.memory_mb.saturating_mul(MIB),
            limits.free_mb.saturating_mul(MIB),
        );
        let disks = std::iter::once(&self.workspace).chain(&self.private);
        let free = disks.filter_map(free_space).min().unwrap_or(u64::MAX);
        if free < least_free {
            return Some(Excess::DiskSpace {
                limit_mb: limits.free_mb,
            });
        }
        let memory = self.processes.memory(most_memory);
        if memory > most_memory {
            return Some(Excess::Memory {
                limit_mb: limits.memory_mb,
            });
        }
        let left = (most_memory - memory).min(free - least_free);
        self.look = after(started, pace(left));
        None
    }

    /// A slice of a walk through the private folders.
    fn folders(&mut self) -> Option<Excess> {
        let started = Instant::now();
        let most = self.execution.limits.tmp_mb.saturating_mul(MIB);
        let mut walk = match self.walking.take() {
            Some(walk) => walk,
            None => {
                let free = self.private.iter().filter_map(free_space).sum();
                if free >= self.free_at_walk && started < self.quiet_until {
                    self.walk = self.quiet_until.min(started + LATEST);
                    return None;
                }
                self.free_at_walk = free;
                Walk::of(&self.private)
            }
        };
        let done = walk.go_on(SLICE);
        if walk.held() > most {
            return Some(Excess::Temporary {
                limit_mb: self.execution.limits.tmp_mb,
            });
        }
        if done {
            let rest = walk.cost() * REST;
            let now = Instant::now();
            self.walk = now + pace(most - walk.held()).max(rest);
            self.quiet_until = now + rest * QUIET_REST;
        } else {
            self.walk = after(started, Duration::ZERO);
            self.walking = Some(walk);
        }
        None
    }
}

/// When a command could have used up `left` bytes at the earliest, within reason.
fn pace(left: u64) -> Duration {
    Duration::from_millis(left / (FASTEST / 1000)).clamp(SOONEST, LATEST)
}

/// After a look that began at `started`: not before `pace` is over, nor before the rest that its duration asks for.
fn after(started: Instant, pace: Duration) -> Instant {
    let now = Instant::now();
    now + pace.max((now - started) * REST)
}

/// Opens a folder as a place only: an earlier command may have taken its owner the right to read it.
fn open(path: &Bytes) -> Result<OwnedFd, SandboxError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path.as_path(), flags, Mode::empty())
        .map_err(failed(LayerName::Limits, "open(a folder to watch)"))
}

/// What an ordinary user may still write to the disk that `folder` lies on, in bytes; nothing where it has no such number.
fn free_space(folder: &OwnedFd) -> Option<u64> {
    let disk = rustix::fs::fstatvfs(folder).ok()?;
    (disk.f_blocks > 0).then(|| disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_less_is_left_the_sooner_is_the_next_look() {
        assert_eq!(pace(u64::MAX / 2), LATEST);
        assert_eq!(pace(2048 * MIB), Duration::from_millis(500));
        assert_eq!(pace(0), SOONEST);
    }

    #[test]
    fn a_look_that_took_long_is_followed_by_a_longer_rest() {
        let started = Instant::now() - Duration::from_millis(300);
        assert!(after(started, SOONEST) >= Instant::now() + Duration::from_millis(2900));
    }
}
