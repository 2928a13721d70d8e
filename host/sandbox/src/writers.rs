//! What writers other than commands may not change: the same list, by name, so that it holds for what does not exist yet too.
//!
//! Where a command is held by mounts, a tool that edits files is asked before it writes. A git directory is git's alone: commands
//! commit, nothing else writes there.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::policy::Policy;
use crate::protected::PROTECTED;

/// Where version controls keep what is theirs alone.
const VERSION_CONTROLS: [&str; 4] = [".git", ".hg", ".jj", ".sl"];

impl Policy {
    /// Says of a path relative to the Workspace, links followed, that no tool may change it. `is_repository` says of a folder of the
    /// Workspace that a repository starts there: [`PROTECTED`] names are protected in each and in the root.
    pub fn protects<F: Fn(&Path) -> bool + Send + Sync + 'static>(
        &self,
        is_repository: F,
    ) -> impl Fn(&Path) -> bool + Send + Sync + use<F> {
        let protect: Vec<PathBuf> = self.protect.clone();
        move |path: &Path| {
            let mut above = PathBuf::new();
            for part in path.components() {
                let Component::Normal(name) = part else {
                    return true;
                };
                let obeyed = PROTECTED.iter().any(|known| OsStr::new(known) == name);
                let is_root = above.as_os_str().is_empty();
                let is_store = VERSION_CONTROLS
                    .iter()
                    .any(|known| OsStr::new(known) == name);
                if is_store || (obeyed && (is_root || is_repository(&above))) {
                    return true;
                }
                above.push(name);
            }
            protect.iter().any(|protected| path.starts_with(protected))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_obeyed_is_protected_where_it_is_and_what_only_looks_like_it_is_not() {
        let policy = Policy {
            protect: vec!["deploy".into()],
            ..Policy::default()
        };
        let protects = policy.protects(|folder| folder == Path::new("sub/repository"));
        for protected in [
            ".floe/config.yaml",
            ".vscode/tasks.json",
            ".git",
            ".git/hooks/pre-commit",
            "sub/other/.git/config",
            ".hg/hgrc",
            "sub/repository/.envrc",
            "deploy/key",
            "deploy",
            "../x",
        ] {
            assert!(protects(Path::new(protected)), "{protected}");
        }
        for free in [
            "src/main.rs",
            ".gitignore",
            "sub/.vscode/tasks.json",
            "deployed",
            ".github/workflows/ci.yml",
        ] {
            assert!(!protects(Path::new(free)), "{free}");
        }
    }
}
