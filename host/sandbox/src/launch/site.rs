//! What is known of the Workspace and of the machine around it: found out at the Session's first command, whatever walls
//! are built of it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::command::ConfinedCommand;
use crate::error::SandboxError;
use crate::newcomers::{Appearance, Newcomers};
use crate::options::SandboxOptions;
use crate::plan::{Bytes, Confined};
use crate::policy::{HardLinks, Policy};
use crate::protected;
use crate::survey::{self, Survey};
use crate::view::{self, View};
use crate::widening;

/// What is known of the Workspace and of the machine around it.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) view: View,
    pub(crate) survey: Survey,
    /// What the search would find by now.
    grown: Survey,
    newcomers: Newcomers,
    /// Files with a name elsewhere, until they are told.
    linked: Vec<PathBuf>,
}

impl Site {
    /// Looks around.
    pub(crate) fn look(options: &SandboxOptions) -> Result<Site, SandboxError> {
        let survey = survey::survey(&options.workspace, &options.policy)?;
        refuse_hard_links(&survey, &options.policy)?;
        let mut site = Site {
            view: view::compose(options, options.policy.workspace)?,
            grown: survey.clone(),
            linked: survey.linked.clone(),
            survey,
            newcomers: Newcomers::default(),
        };
        site.notice(options);
        Ok(site)
    }

    /// Takes notice of what is obeyed by now.
    fn notice(&mut self, options: &SandboxOptions) {
        let is_whole = self.grown.search_again(&options.workspace, &options.policy);
        let mut now = protected::obeyed(&options.workspace, &self.grown);
        now.is_partial = !is_whole;
        // Outside the Workspace too there is what is obeyed and what a command could have made.
        let outside = self.view.git_settings.iter();
        let outside = outside.filter(|path| path.symlink_metadata().is_ok());
        now.settings.extend(outside.cloned());
        self.newcomers.notice(now);
    }

    /// What is protected now, relative to the Workspace.
    pub(crate) fn protected(
        &mut self,
        options: &SandboxOptions,
    ) -> Result<BTreeSet<PathBuf>, SandboxError> {
        protected::protected(&options.workspace, &self.survey, &options.policy)
    }

    /// What came to be obeyed since the first command; each is told once.
    pub(crate) fn appeared(&mut self, options: &SandboxOptions) -> Vec<Appearance> {
        self.notice(options);
        self.newcomers.take()
    }

    /// The files that have a name elsewhere; told once.
    pub(crate) fn hard_links(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.linked)
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

/// Refuses a Workspace with files that have a name elsewhere, where the operator wants that.
pub(crate) fn refuse_hard_links(survey: &Survey, policy: &Policy) -> Result<(), SandboxError> {
    let Some(first) = survey.linked.first() else {
        return Ok(());
    };
    if policy.hard_links == HardLinks::Warn {
        return Ok(());
    }
    let others = match survey.linked.len() - 1 {
        0 => String::new(),
        others => format!(" So have {others} more."),
    };
    Err(SandboxError::Protection {
        path: first.display().to_string(),
        reason: format!(
            "the file has a further name that was not found in the Workspace, and what is written to it is written there \
             too.{others} Copy such files (`cp --remove-destination`), or set `shell.hard_links` to `warn`."
        ),
    })
}
