//! What the commands of a Session share within walls of namespaces, whoever builds them: those that the Session's anchor
//! has made and handed out.

use std::os::fd::OwnedFd;

use crate::control::Report;
use crate::error::SandboxError;
use crate::launch::start::{self, duplicate, unexpected};
use crate::layer::Layer;
use crate::options::SandboxOptions;
use crate::plan::Plan;

/// The namespaces that the commands of a Session share, alive as long as this.
#[derive(Debug)]
pub(crate) struct Anchored {
    user: OwnedFd,
    network: OwnedFd,
    layers: Vec<Layer>,
}

impl Anchored {
    /// Has an anchor make them.
    ///
    /// # Errors
    ///
    /// Which namespace cannot be had.
    pub(super) fn by(options: &SandboxOptions, plan: &Plan) -> Result<Anchored, SandboxError> {
        let answer = start::ask(start::program(&options.helper), plan, &[])?;
        let Report::Anchored(layers) = answer.report else {
            return Err(unexpected());
        };
        let [user, network]: [OwnedFd; 2] =
            answer.descriptors.try_into().map_err(|_| unexpected())?;
        Ok(Anchored {
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

    /// What the helper of every command gets: the Workspace, then the namespaces.
    pub(super) fn descriptors(
        &self,
        options: &SandboxOptions,
    ) -> Result<Vec<OwnedFd>, SandboxError> {
        let shared = [&options.workspace, &self.user, &self.network];
        shared.into_iter().map(duplicate).collect()
    }
}
