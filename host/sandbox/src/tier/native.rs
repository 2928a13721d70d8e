//! The helper's own walls: namespaces, mounts, Landlock and seccomp.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::Prepared;
use crate::command::ConfinedCommand;
use crate::control::Report;
use crate::error::SandboxError;
use crate::launch::Sandbox;
use crate::launch::site::Site;
use crate::launch::start::{self, duplicate, unexpected};
use crate::layer::Layer;
use crate::options::SandboxOptions;
use crate::plan::Plan;
use crate::policy::Network;

/// The namespaces that the commands of a Session share, alive as long as this.
#[derive(Debug)]
pub(crate) struct Ground {
    user: OwnedFd,
    network: OwnedFd,
    layers: Vec<Layer>,
}

impl Ground {
    pub(super) fn lay(options: &SandboxOptions) -> Result<Ground, SandboxError> {
        let plan = Plan::Anchor {
            network: options.policy.network != Network::Host,
        };
        let answer = start::ask(start::program(&options.helper), &plan, &[])?;
        let Report::Anchored(layers) = answer.report else {
            return Err(unexpected());
        };
        let [user, network]: [OwnedFd; 2] =
            answer.descriptors.try_into().map_err(|_| unexpected())?;
        Ok(Ground {
            user,
            network,
            layers,
        })
    }

    /// The user and the network namespace.
    pub(super) fn namespaces(&self) -> (&OwnedFd, &OwnedFd) {
        (&self.user, &self.network)
    }

    pub(super) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    pub(super) fn prepare(
        &self,
        options: &SandboxOptions,
        site: &mut Site,
        command: &ConfinedCommand,
        files: &[PathBuf],
    ) -> Result<Prepared, SandboxError> {
        let confined = site.confined(options, command, files, Sandbox::SCRIPT)?;
        Ok(Prepared {
            program: start::program(&options.helper),
            plan: Plan::Confined(Box::new(confined)),
            descriptors: vec![
                duplicate(&options.workspace)?,
                duplicate(&self.user)?,
                duplicate(&self.network)?,
            ],
        })
    }
}
