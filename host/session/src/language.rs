//! The language servers of a Session, wired to its Workspace and its folders. Nothing is looked for or started before the first question.

use std::path::PathBuf;

use floe_language::{LanguageServers, ServerOptions, ServerSettings, Waits};
use floe_sandbox::Policy;
use floe_workspace::Workspace;

/// What they stand on.
pub(crate) struct Ground<'s> {
    /// As tools may read it.
    pub(crate) workspace: Workspace,
    pub(crate) policy: &'s Policy,
    pub(crate) helper: Option<PathBuf>,
    /// Where Floe keeps its own files.
    pub(crate) private: PathBuf,
    /// Where each of them gets a folder of its own.
    pub(crate) folder: PathBuf,
    pub(crate) settings: ServerSettings,
}

pub(crate) fn servers(ground: Ground<'_>) -> LanguageServers {
    LanguageServers::new(ServerOptions {
        workspace: ground.workspace,
        policy: ground.policy.clone(),
        helper: ground.helper,
        private: vec![ground.private],
        person_home: std::env::home_dir(),
        search_path: std::env::var_os("PATH").unwrap_or_default(),
        folder: ground.folder,
        settings: ground.settings,
        waits: Waits::default(),
    })
}
