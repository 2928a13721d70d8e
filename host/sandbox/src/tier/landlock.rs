//! Walls by Landlock.

use std::path::PathBuf;

use super::Prepared;
use crate::command::ConfinedCommand;
use crate::error::SandboxError;
use crate::launch::site::Site;

use crate::options::SandboxOptions;

/// What the commands of a Session share.
#[derive(Debug)]
pub(crate) enum Ground {}

impl Ground {
    pub(super) fn lay(_options: &SandboxOptions) -> Result<Ground, SandboxError> {
        Err(SandboxError::Setting {
            what: "tier".to_owned(),
            reason: "this build does not have it.".to_owned(),
        })
    }

    pub(super) fn prepare(
        &self,
        _options: &SandboxOptions,
        _site: &mut Site,
        _command: &ConfinedCommand,
        _files: &[PathBuf],
    ) -> Result<Prepared, SandboxError> {
        match *self {}
    }
}
