//! What commands may not change because of what a Workspace says of itself, for writers other than commands: the folder that git
//! looks for hooks in, files that its configuration includes, git directories by whatever name, and what links among them lead
//! to. [`Policy::protects`] knows names; this knows what was found.

use std::collections::BTreeSet;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::policy::Policy;
use crate::protected::protected;
use crate::survey::{Survey, survey};

/// What was found is looked at again after this: many files may be asked about in a row.
const FRESH: Duration = Duration::from_millis(500);

/// Knows what is protected in one Workspace. The Workspace is searched when it is asked for the first time.
pub struct FoundProtection {
    workspace: OwnedFd,
    policy: Policy,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    survey: Option<Survey>,
    protected: Option<(Instant, BTreeSet<PathBuf>)>,
}

impl fmt::Debug for FoundProtection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundProtection").finish_non_exhaustive()
    }
}

impl FoundProtection {
    /// Of the Workspace with this descriptor. Nothing is looked at yet.
    pub fn new(workspace: OwnedFd, policy: Policy) -> FoundProtection {
        FoundProtection {
            workspace,
            policy,
            state: Mutex::default(),
        }
    }

    /// Whether a path relative to the Workspace, links followed, lies at or in what is protected now. Blocks.
    pub fn protects(&self, path: &Path) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { survey, protected } = &mut *state;
        let is_fresh = |found: &(Instant, _)| found.0.elapsed() < FRESH;
        if !protected.as_ref().is_some_and(is_fresh) {
            let survey = survey.get_or_insert_with(|| self.search());
            *protected = Some((Instant::now(), self.look(survey)));
        }
        protected
            .as_ref()
            .is_some_and(|(_, found)| found.iter().any(|above| path.starts_with(above)))
    }

    /// A Workspace that is too large to be searched has at least its root, whose repository is looked at.
    fn search(&self) -> Survey {
        survey(&self.workspace, &self.policy).unwrap_or_else(|_| {
            let mut least = Survey::default();
            least.repositories.insert(PathBuf::new());
            least
        })
    }

    fn look(&self, survey: &Survey) -> BTreeSet<PathBuf> {
        protected(&self.workspace, survey, &self.policy).unwrap_or_else(|_| {
            // A path of the person's list that is none: what is found without the list holds all the same.
            let policy = Policy {
                protect: Vec::new(),
                ..self.policy.clone()
            };
            protected(&self.workspace, survey, &policy).unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn found(policy: Policy, make: impl FnOnce(&Path)) -> (tempfile::TempDir, FoundProtection) {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path());
        let workspace = fs::File::open(folder.path()).unwrap().into();
        (folder, FoundProtection::new(workspace, policy))
    }

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn what_a_repository_names_is_protected_by_whatever_name() {
        let policy = Policy {
            protect: vec!["deploy".into()],
            ..Policy::default()
        };
        let (_folder, found) = found(policy, |root| {
            write(
                root,
                ".git/config",
                "[core]\nhooksPath = tools/hooks\n[include]\npath = ../shared.config\n",
            );
            write(root, "tools/hooks/pre-commit", "");
            write(root, "shared.config", "");
            write(root, "sub/.git", "gitdir: ../store\n");
            for part in ["HEAD", "config", "hooks/pre-commit", "objects/x", "refs/x"] {
                write(root, &format!("store/{part}"), "");
            }
            write(root, "real/key", "");
            symlink("real", root.join("deploy")).unwrap();
        });
        for protected in [
            "tools/hooks/pre-commit",
            "tools/hooks/new",
            "shared.config",
            "store/hooks/pre-commit",
            "store/config",
            "real/key",
            "deploy",
            ".git/config",
        ] {
            assert!(found.protects(Path::new(protected)), "{protected}");
        }
        for free in ["tools/build", "tools", "sub/file", "realm", "shared"] {
            assert!(!found.protects(Path::new(free)), "{free}");
        }
    }

    #[test]
    fn what_is_configured_later_is_found_and_a_workspace_too_large_to_search_still_has_its_root() {
        let mut policy = Policy::default();
        policy.search.entries = 1;
        let (folder, found) = found(policy, |root| {
            write(root, "tools/pre-commit", "");
            write(root, ".git/config", "");
        });
        let path = Path::new("tools/pre-commit");
        assert!(!found.protects(path));
        write(folder.path(), ".git/config", "[core]\nhooksPath = tools\n");
        std::thread::sleep(FRESH);
        assert!(found.protects(path));
    }
}
