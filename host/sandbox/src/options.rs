//! What a Session's sandbox is made from.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

#[cfg(doc)]
use crate::launch::Sandbox;
use crate::layer::Tier;
use crate::plan::Fillable;
use crate::policy::Policy;

/// What a Session's sandbox is made from.
#[derive(Debug)]
pub struct SandboxOptions {
    /// The opened Workspace: its descriptor, not its path, decides what is mounted.
    pub workspace: OwnedFd,
    /// The Workspace's canonical path on the host, under which commands see it too (beside `/workspace`).
    pub workspace_path: PathBuf,
    /// The folder of the Session that commands see as `$HOME` ([`Sandbox::HOME`]).
    pub home_dir: PathBuf,
    /// The folder of the Session that commands see as `/tmp`.
    pub tmp_dir: PathBuf,
    /// The folder of the Session that commands see read-only as [`Sandbox::OUTPUTS`].
    pub outputs_dir: PathBuf,
    /// What the operator allows.
    pub policy: Policy,
    /// The binary whose `main` calls [`crate::helper_main`] first.
    pub helper: PathBuf,
    /// The person's home, which commands do not see, except the tool chains in it.
    pub person_home: Option<PathBuf>,
    /// Folders of the host that no command ever sees and no widening reaches: Floe's own. Canonical.
    pub private: Vec<PathBuf>,
    /// The PATH on which tool chains are looked for.
    pub search_path: OsString,
    /// Run without walls. Only on the operator's explicit word.
    pub unconfined: bool,
    /// Exactly this set of walls, instead of the best that stands here. For tests and examinations; a weaker one than the
    /// policy's minimum is built all the same.
    pub tier: Option<Tier>,
}

impl SandboxOptions {
    /// The defaults: this very binary as the helper, the default policy, the host's own home and PATH, walls up.
    pub fn new(
        workspace: OwnedFd,
        workspace_path: PathBuf,
        home_dir: PathBuf,
        tmp_dir: PathBuf,
        outputs_dir: PathBuf,
    ) -> Self {
        SandboxOptions {
            workspace,
            workspace_path,
            home_dir,
            tmp_dir,
            outputs_dir,
            policy: Policy::default(),
            helper: PathBuf::from("/proc/self/exe"),
            person_home: std::env::home_dir(),
            private: Vec::new(),
            search_path: std::env::var_os("PATH").unwrap_or_default(),
            unconfined: false,
            tier: None,
        }
    }
    /// What a command may fill that sees the host's own paths.
    pub(crate) fn fillable(&self) -> Fillable {
        Fillable {
            workspace: self.workspace_path.as_path().into(),
            private: [
                self.tmp_dir.as_path().into(),
                self.home_dir.as_path().into(),
            ],
        }
    }
}
