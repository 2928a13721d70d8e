//! The helper's own walls: namespaces, mounts, Landlock and seccomp.

use std::path::PathBuf;

use super::Prepared;
use super::anchored::Anchored;
use crate::command::ConfinedCommand;
use crate::error::SandboxError;
use crate::launch::Sandbox;
use crate::launch::site::Site;
use crate::launch::start;
use crate::options::SandboxOptions;
use crate::plan::Plan;
use crate::policy::Network;

pub(super) fn lay(options: &SandboxOptions) -> Result<Anchored, SandboxError> {
    let network = options.policy.network != Network::Host;
    Anchored::by(options, &Plan::Anchor { network })
}

pub(super) fn prepare(
    anchored: &Anchored,
    options: &SandboxOptions,
    site: &mut Site,
    command: &ConfinedCommand,
    files: &[PathBuf],
) -> Result<Prepared, SandboxError> {
    let confined = site.confined(options, command, files, Sandbox::SCRIPT)?;
    Ok(Prepared {
        program: start::program(&options.helper),
        plan: Plan::Confined(Box::new(confined)),
        descriptors: anchored.descriptors(options)?,
    })
}
