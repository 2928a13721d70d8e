//! The host's own place in the Session's network: a socket that listens there, on which it serves what commands may reach
//! beyond it.

use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::PathBuf;

use super::Sandbox;
use super::start::{self, duplicate, unexpected};
use crate::command::{ConfinedCommand, Program};
use crate::control::Report;
use crate::error::SandboxError;
use crate::plan::Plan;
use crate::policy::{Network, WorkspaceMode};
use crate::widening::Widening;

impl Sandbox {
    /// A socket that listens on a free port of the loopback that the Session's commands share; whoever accepts on it needs no
    /// namespace. Blocks for some milliseconds, and chooses the Session's walls where no command has yet.
    ///
    /// None where the commands have no network of their own: by the policy, or because of the walls.
    ///
    /// # Errors
    ///
    /// No walls stand here, or no socket can be had in the Session's network.
    pub fn proxy_listener(&self) -> Result<Option<TcpListener>, SandboxError> {
        if self.options.policy.network == Network::Host {
            return Ok(None);
        }
        self.choose_walls()?;
        let namespaces = match &self.session().ground {
            Some(ground) => ground.namespaces(),
            None => None,
        }
        .map(|(user, network)| Ok((duplicate(user)?, duplicate(network)?)))
        .transpose()?;
        let Some((user, network)) = namespaces else {
            return Ok(None);
        };
        let helper = start::program(&self.options.helper);
        let mut answer = start::ask(helper, &Plan::Listener, &[user.as_fd(), network.as_fd()])?;
        match (answer.report, answer.descriptors.pop()) {
            (Report::Listening, Some(socket)) => Ok(Some(socket.into())),
            _ => Err(unexpected()),
        }
    }

    /// Runs a command that does nothing where none was run yet: walls are chosen by building them around a command.
    pub(super) fn choose_walls(&self) -> Result<(), SandboxError> {
        if self.session().ground.is_some() {
            return Ok(());
        }
        let nothing = ConfinedCommand {
            program: Program::Shell { script: ":".into() },
            working_directory: PathBuf::new(),
            environment: vec![("PATH".into(), self.options.search_path.clone())],
            terminal: None,
            workspace: WorkspaceMode::ReadOnly,
            widening: Widening::default(),
        };
        match self.spawn(&nothing) {
            Ok(child) => {
                child.control.wait();
                Ok(())
            }
            // All walls stood; that there is no shell concerns commands alone.
            Err(SandboxError::Program { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
