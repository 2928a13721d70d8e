//! What of the Workspace commands may not change or read: found by the host, enforced by the helper's mounts.
//!
//! Protected are the settings that are executed or obeyed later, by git, by editors, by agents, by Floe itself. Only what
//! exists can be protected: nothing is ever created in the Workspace to hold a place. The search for nested repositories
//! happens once per Session and is bounded; what it found is looked at again before every command.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Dir, FileType, OFlags, ResolveFlags};

use crate::error::SandboxError;
use crate::policy::Policy;
use crate::survey::{Survey, kind, open, open_folder};

/// Protected in the Workspace's root and in the root of every repository in it, where they exist.
pub const PROTECTED: &[&str] = &[
    // Floe's own, and other agents'.
    ".floe",
    ".mcp.json",
    ".agents",
    ".claude",
    ".codex",
    ".continue",
    ".cursor",
    ".gemini",
    ".roo",
    ".windsurf",
    // Editors that run tasks from a folder.
    ".devcontainer",
    ".fleet",
    ".idea",
    ".vscode",
    ".zed",
    // What shells and tools source when the Workspace is somebody's home or current folder.
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".envrc",
    ".gitconfig",
    ".profile",
    ".ripgreprc",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// Protected in every git directory: what git executes, and what tells it to execute something.
const GIT: &[&str] = &["hooks", "config", "config.worktree", "commondir"];

/// Protected in a git directory's entry for a linked worktree.
const GIT_WORKTREE: &[&str] = &["config.worktree", "commondir", "gitdir"];

/// How deep submodules' git directories are looked for: their names may hold slashes, and they nest.
const MODULE_DEPTH: usize = 6;

/// What is protected as the Workspace is now, parents before children, none below another.
pub(crate) fn protected(
    workspace: &OwnedFd,
    survey: &Survey,
    policy: &Policy,
) -> Result<BTreeSet<PathBuf>, SandboxError> {
    let mut finder = Finder {
        workspace,
        found: BTreeSet::new(),
    };
    for path in &policy.protect {
        let inside = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !inside || path.as_os_str().is_empty() {
            return Err(SandboxError::Protection {
                path: path.display().to_string(),
                reason: "name it by its path relative to the Workspace, without `..`.".to_owned(),
            });
        }
        finder.leaf(path.clone());
    }
    for repository in &survey.repositories {
        for name in PROTECTED {
            finder.leaf(repository.join(name));
        }
        finder.git(&repository.join(".git"));
    }
    Ok(outermost(finder.found))
}

/// Leaves out what lies below another path of the set, which already holds it.
fn outermost(paths: BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let covered = |path: &PathBuf| path.ancestors().skip(1).any(|above| paths.contains(above));
    paths
        .iter()
        .filter(|path| !covered(path))
        .cloned()
        .collect()
}

struct Finder<'a> {
    workspace: &'a OwnedFd,
    found: BTreeSet<PathBuf>,
}

impl Finder<'_> {
    fn kind(&self, path: &Path) -> Option<FileType> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let found = open(self.workspace, path, flags, ResolveFlags::NO_SYMLINKS).ok()?;
        let status = rustix::fs::fstat(found).ok()?;
        Some(FileType::from_raw_mode(status.st_mode))
    }

    /// Protects `path`, if it is there, and what it leads to, if it is a link to something in the Workspace.
    fn leaf(&mut self, path: PathBuf) {
        match self.kind(&path) {
            None => {}
            Some(FileType::Symlink) => {
                self.found.extend(self.target(&path));
                self.found.insert(path);
            }
            Some(_) => {
                self.found.insert(path);
            }
        }
    }

    /// Where a link leads, relative to the Workspace, if that is in it.
    fn target(&self, link: &Path) -> Option<PathBuf> {
        let target = open(self.workspace, link, OFlags::PATH, ResolveFlags::empty()).ok()?;
        let real = |fd: &OwnedFd| std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        let (root, target) = (real(self.workspace).ok()?, real(&target).ok()?);
        let inside = target.strip_prefix(root).ok()?;
        (!inside.as_os_str().is_empty()).then(|| inside.to_owned())
    }

    fn git(&mut self, git: &Path) {
        match self.kind(git) {
            Some(FileType::Directory) => self.git_directory(git, MODULE_DEPTH),
            Some(FileType::Symlink) => {
                self.found.insert(git.to_owned());
                if let Some(target) = self.target(git) {
                    self.git_directory(&target, MODULE_DEPTH);
                }
            }
            // A file that says where the git directory is: whoever changes it brings settings of their own.
            Some(_) => {
                self.found.insert(git.to_owned());
            }
            None => {}
        }
    }

    fn git_directory(&mut self, git: &Path, depth: usize) {
        for name in GIT {
            self.leaf(git.join(name));
        }
        for worktree in self.folders(&git.join("worktrees")) {
            for name in GIT_WORKTREE {
                self.leaf(worktree.join(name));
            }
        }
        self.modules(&git.join("modules"), depth);
    }

    fn modules(&mut self, folder: &Path, depth: usize) {
        if depth == 0 {
            return;
        }
        for module in self.folders(folder) {
            if self.kind(&module.join("HEAD")).is_some() {
                self.git_directory(&module, depth - 1);
            } else {
                self.modules(&module, depth - 1);
            }
        }
    }

    fn folders(&self, folder: &Path) -> Vec<PathBuf> {
        let Ok(Some(opened)) = open_folder(self.workspace, folder) else {
            return Vec::new();
        };
        let Ok(mut listing) = Dir::read_from(&opened) else {
            return Vec::new();
        };
        let mut folders = Vec::new();
        while let Some(Ok(entry)) = listing.read() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let is_folder = kind(&opened, name, entry.file_type()) == Some(FileType::Directory);
            if name != "." && name != ".." && is_folder {
                folders.push(folder.join(name));
            }
        }
        folders
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::survey;
    use crate::survey::tests::{file, workspace};

    fn found(workspace: &OwnedFd, policy: &Policy) -> Vec<String> {
        let survey = survey(workspace, policy).unwrap();
        let paths = protected(workspace, &survey, policy).unwrap();
        paths
            .into_iter()
            .map(|path| path.display().to_string())
            .collect()
    }

    #[test]
    fn what_git_executes_or_obeys_is_found_in_nested_repositories_and_modules_too() {
        let (_folder, workspace) = workspace(|root| {
            file(root, ".git/config");
            file(root, ".git/hooks/pre-commit");
            file(root, ".git/modules/libs/one/HEAD");
            file(root, ".git/modules/libs/one/config");
            file(root, ".git/worktrees/w/commondir");
            file(root, "deep/er/sub/.git/config");
            file(root, "deep/er/sub/.vscode/tasks.json");
            file(root, "plain/.vscode/tasks.json");
            file(root, ".mcp.json");
        });
        assert_eq!(
            found(&workspace, &Policy::default()),
            [
                ".git/config",
                ".git/hooks",
                ".git/modules/libs/one/config",
                ".git/worktrees/w/commondir",
                ".mcp.json",
                "deep/er/sub/.git/config",
                "deep/er/sub/.vscode",
            ]
        );
    }

    #[test]
    fn a_link_is_protected_together_with_what_it_leads_to() {
        let (_folder, workspace) = workspace(|root| {
            file(root, "settings/tasks.json");
            std::os::unix::fs::symlink("settings", root.join(".vscode")).unwrap();
            std::os::unix::fs::symlink("/etc", root.join(".idea")).unwrap();
        });
        assert_eq!(
            found(&workspace, &Policy::default()),
            [".idea", ".vscode", "settings"]
        );
    }

    #[test]
    fn a_git_file_is_protected_as_it_is() {
        let (_folder, workspace) = workspace(|root| file(root, ".git"));
        assert_eq!(found(&workspace, &Policy::default()), [".git"]);
    }

    #[test]
    fn a_path_to_protect_that_leaves_the_workspace_is_refused() {
        let (_folder, workspace) = workspace(|_| {});
        let policy = Policy {
            protect: vec!["../other".into()],
            ..Policy::default()
        };
        let survey = survey(&workspace, &policy).unwrap();
        assert!(protected(&workspace, &survey, &policy).is_err());
    }
}
