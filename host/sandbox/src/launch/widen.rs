//! What a call asks for beyond the Session's policy, before a person is asked.

use super::Sandbox;
use crate::error::SandboxError;
use crate::layer::Tier;
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
        // Copied, so that a search of large folders does not keep other commands from starting.
        let (view, survey, protected) = {
            let site = &mut self.session().site;
            let site = self.look(site)?;
            let protected = site.protected(&self.options)?;
            (site.view.clone(), site.survey.clone(), protected)
        };
        let grounds = Grounds {
            options: &self.options,
            tier,
            view: &view,
            survey: &survey,
            protected: &protected,
        };
        judge(&grounds, read, write)
    }

    /// The Session's set of walls, which it keeps; chosen now where no command has been run yet. Blocks for some milliseconds.
    ///
    /// # Errors
    ///
    /// No set of walls stands here.
    pub fn settled_tier(&self) -> Result<Tier, SandboxError> {
        if self.options.unconfined {
            return Ok(Tier::Unconfined);
        }
        self.choose_walls()?;
        Ok(self.confinement().tier)
    }
}
