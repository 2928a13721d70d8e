//! The sets of walls: what each of them prepares for a Session once, and for each of its commands.
//!
//! Everything else about a command (its streams, its control, its end) is the same in all of them and lies in
//! [`crate::launch`].

mod anchored;
mod bwrap;
mod landlock;
mod native;
mod unconfined;

pub(crate) use self::landlock::lacking;

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::Command;

use self::anchored::Anchored;
use crate::command::{Child, ConfinedCommand};
use crate::error::SandboxError;
use crate::launch::site::Site;
use crate::launch::start;
use crate::layer::{Layer, Tier};
use crate::options::SandboxOptions;
use crate::plan::Plan;

/// What all commands of a Session stand on, made at its first command and never changed for another kind.
#[derive(Debug)]
pub(crate) enum Ground {
    Native(Anchored),
    Bwrap(Anchored),
    Landlock(landlock::Ground),
    Unconfined,
}

/// What starts one command.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// What is executed: the helper, or what starts the helper.
    pub(crate) program: Command,
    pub(crate) plan: Plan,
    /// What comes with the plan, but for the command's streams.
    pub(crate) descriptors: Vec<OwnedFd>,
}

impl Ground {
    /// Makes it, or says which wall does not stand.
    pub(crate) fn lay(tier: Tier, options: &SandboxOptions) -> Result<Ground, SandboxError> {
        match tier {
            Tier::Native => native::lay(options).map(Ground::Native),
            Tier::Bwrap => bwrap::lay(options).map(Ground::Bwrap),
            Tier::Landlock => Ok(Ground::Landlock(landlock::Ground::lay(options))),
            Tier::Unconfined => Ok(Ground::Unconfined),
        }
    }

    pub(crate) fn tier(&self) -> Tier {
        match self {
            Ground::Native(_) => Tier::Native,
            Ground::Bwrap(_) => Tier::Bwrap,
            Ground::Landlock(_) => Tier::Landlock,
            Ground::Unconfined => Tier::Unconfined,
        }
    }

    /// The walls that stand once for all commands of the Session; each command's own follow them.
    pub(crate) fn layers(&self) -> &[Layer] {
        match self {
            Ground::Native(anchored) | Ground::Bwrap(anchored) => anchored.layers(),
            Ground::Landlock(ground) => ground.layers(),
            Ground::Unconfined => &[],
        }
    }

    /// The Session's own user and network namespace, where these walls have any.
    pub(crate) fn namespaces(&self) -> Option<(&OwnedFd, &OwnedFd)> {
        match self {
            Ground::Native(anchored) | Ground::Bwrap(anchored) => Some(anchored.namespaces()),
            Ground::Landlock(_) | Ground::Unconfined => None,
        }
    }

    /// Prepares one command, which may also read `files` of the host at their own paths.
    pub(crate) fn prepare(
        &self,
        options: &SandboxOptions,
        site: &mut Site,
        command: &ConfinedCommand,
        files: &[PathBuf],
    ) -> Result<Prepared, SandboxError> {
        match self {
            Ground::Native(anchored) => native::prepare(anchored, options, site, command, files),
            Ground::Bwrap(anchored) => bwrap::prepare(anchored, options, site, command, files),
            Ground::Landlock(ground) => ground.prepare(options, site, command, files),
            Ground::Unconfined => unconfined::prepare(options, command),
        }
    }
}

impl Prepared {
    /// Starts the command and waits until it runs; with the walls that were built for it alone.
    pub(crate) fn start(self, terminal: bool) -> Result<(Child, Vec<Layer>), SandboxError> {
        let descriptors: Vec<_> = self.descriptors.iter().map(AsFd::as_fd).collect();
        start::run(self.program, &self.plan, &descriptors, terminal)
    }
}
