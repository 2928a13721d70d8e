//! What a call asks for beyond the Session's policy, before a person is asked.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Sandbox;
use crate::command::{ConfinedCommand, Program};
use crate::error::SandboxError;
use crate::layer::Tier;
use crate::policy::WorkspaceMode;
use crate::widening::{Grounds, Widening, WideningFault, judge};

impl Sandbox {
    /// What of `read` and `write`, which are paths as a call names them, a person is to be asked about: what commands have
    /// anyway is left out. Blocks for some milliseconds. Nothing is granted by this.
    ///
    /// # Errors
    ///
    /// What cannot be asked for, or cannot be given here.
    pub fn widening(&self, read: &[String], write: &[String]) -> Result<Widening, WideningFault> {
        let tier = self.settled_tier()?;
        let site = &mut self.session().site;
        let site = self.look(site)?;
        let protected = site.protected(&self.options)?;
        let grounds = Grounds {
            options: &self.options,
            tier,
            view: &site.view,
            survey: &site.survey,
            protected: &protected,
        };
        judge(&grounds, read, write)
    }

    /// The Session's set of walls; where none is chosen yet, the one that its first command gets is.
    fn settled_tier(&self) -> Result<Tier, SandboxError> {
        let settled = || {
            self.session()
                .ground
                .as_ref()
                .map(crate::tier::Ground::tier)
        };
        if self.options.unconfined {
            return Ok(Tier::Unconfined);
        }
        if let Some(tier) = settled() {
            return Ok(tier);
        }
        let child = self.spawn(&ConfinedCommand {
            program: Program::Exec {
                program: OsString::from("true"),
                args: Vec::new(),
            },
            working_directory: PathBuf::new(),
            environment: Vec::new(),
            terminal: None,
            workspace: WorkspaceMode::ReadOnly,
            widening: Widening::default(),
        })?;
        drop(child.streams);
        child.control.wait();
        Ok(settled().unwrap_or(Tier::Native))
    }
}
