//! What is known of the Workspace and of the machine around it: found out at the Session's first command, whatever walls
//! are built of it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::command::ConfinedCommand;
use crate::error::SandboxError;
use crate::newcomers::Newcomers;
use crate::options::SandboxOptions;
use crate::plan::{Bytes, Confined};
use crate::protected;
use crate::survey::{self, Survey};
use crate::view::{self, View};
use crate::widening;

/// What is known of the Workspace and of the machine around it.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) view: View,
    pub(crate) survey: Survey,
    newcomers: Newcomers,
}

impl Site {
    /// Looks around.
    pub(crate) fn look(options: &SandboxOptions) -> Result<Site, SandboxError> {
        Ok(Site {
            view: view::compose(options, options.policy.workspace)?,
            survey: survey::survey(&options.workspace, &options.policy)?,
            newcomers: Newcomers::default(),
        })
    }

    /// What is protected now, relative to the Workspace. What came to be so since the first command is taken notice of.
    pub(crate) fn protected(
        &mut self,
        options: &SandboxOptions,
    ) -> Result<BTreeSet<PathBuf>, SandboxError> {
        let protected = protected::protected(&options.workspace, &self.survey, &options.policy)?;
        // Outside the Workspace too there is what is obeyed and what a command could have made.
        let outside = self.view.git_settings.iter();
        let outside = outside.filter(|path| path.symlink_metadata().is_ok());
        self.newcomers.notice(protected.iter().chain(outside));
        Ok(protected)
    }

    /// What came to be protected since the first command; each is told once.
    pub(crate) fn appeared(&mut self, options: &SandboxOptions) -> Vec<PathBuf> {
        // What cannot be found out now is found out by the next command, or fails it.
        let _ = self.protected(options);
        self.newcomers.take()
    }

    /// The view of one command, in which it may also read `files` of the host at their own paths.
    pub(crate) fn confined(
        &mut self,
        options: &SandboxOptions,
        command: &ConfinedCommand,
        files: &[PathBuf],
        script_file: impl Into<Bytes>,
    ) -> Result<Confined, SandboxError> {
        let protected = self.protected(options)?;
        let policy = options.policy.for_command(command.workspace);
        let narrower;
        let view = if policy.workspace == options.policy.workspace {
            &self.view
        } else {
            narrower = view::compose(options, policy.workspace)?;
            &narrower
        };
        let mut entries = view.entries.clone();
        entries.extend(files.iter().filter_map(|file| view::readable_file(file)));
        let mut confined = Confined {
            view: entries,
            workspace: view.workspace.as_path().into(),
            protected: protected.into_iter().map(Bytes::from).collect(),
            denied: self
                .survey
                .denied
                .iter()
                .map(|path| path.as_path().into())
                .collect(),
            writable: view.writable.clone(),
            identities: Vec::new(),
            execution: command.execution(script_file.into(), policy.limits, view.fillable()),
        };
        widening::apply::apply(&command.widening, &policy, &mut confined)?;
        Ok(confined)
    }
}
