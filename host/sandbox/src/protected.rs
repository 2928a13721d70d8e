//! What of the Workspace commands may not change or read: found by the host, enforced by the helper's mounts.
//!
//! Protected are the settings that are executed or obeyed later, by git, by editors, by agents, by Floe itself. Only what
//! exists can be protected: nothing is ever created in the Workspace to hold a place. The search for nested repositories
//! happens once per Session and is bounded; what it found is looked at again before every command.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Dir, FileType};

use crate::error::SandboxError;
use crate::executable;
use crate::git_config;
use crate::links;
use crate::newcomers::{Executed, Obeyed};
use crate::policy::Policy;
use crate::survey::{self, Survey, kind, open_folder};

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

/// Protected in the same places, where other version controls keep what they execute, or where to look for it.
const OTHER_VERSION_CONTROLS: &[&str] = &[
    ".hg/hgrc",
    ".hg/hgrc-not-shared",
    ".hg/requires",
    ".hg/sharedpath",
    ".jj/repo/config.toml",
    ".jj/repo/config-id",
    ".sl/config",
    ".sl/requires",
    ".sl/sharedpath",
];

/// Protected in every git directory: what git executes, and what tells it to execute something.
const GIT: &[&str] = &["hooks", "config", "config.worktree", "commondir"];

/// Protected in a git directory's entry for a linked worktree.
const GIT_WORKTREE: &[&str] = &["config.worktree", "commondir", "gitdir"];

/// How deep git directories are looked for in each other: submodules' names may hold slashes, and they nest; others are
/// pointed to.
const GIT_DEPTH: usize = 6;

/// How many git directories and configuration files are looked at; more are not in any honest Workspace.
const MOST_SEEN: usize = 10_000;

/// What is protected as the Workspace is now, parents before children, none below another.
pub(crate) fn protected(
    workspace: &OwnedFd,
    survey: &Survey,
    policy: &Policy,
) -> Result<BTreeSet<PathBuf>, SandboxError> {
    let mut finder = Finder::new(workspace);
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
        if path
            .as_os_str()
            .as_bytes()
            .iter()
            .any(|byte| b"*?[".contains(byte))
        {
            return Err(SandboxError::Protection {
                path: path.display().to_string(),
                reason: "`protect` takes paths, no patterns: name each file or folder.".to_owned(),
            });
        }
        finder.leaf(path);
    }
    finder.look(survey);
    if finder.found.contains(Path::new("")) {
        return Err(survey::closed_workspace());
    }
    Ok(outermost(finder.found))
}

/// What is obeyed as the Workspace is now, and what git would execute of it, in the repositories that were found.
pub(crate) fn obeyed(workspace: &OwnedFd, survey: &Survey) -> Obeyed {
    let mut finder = Finder::new(workspace);
    finder.look(survey);
    let repositories = finder.repositories.into_iter();
    Obeyed {
        settings: outermost(finder.found),
        repositories: repositories
            .map(|(git, obeyed)| {
                let mut executed = obeyed.settings;
                for hooks in &obeyed.hooks {
                    executed.extend(executable::hooks(workspace, hooks));
                }
                (git, executed)
            })
            .collect(),
        is_partial: false,
    }
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

/// A path as git expands it.
fn in_home(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(below), Some(home)) => Path::new(&home).join(below),
        _ => path,
    }
}

struct Finder<'a> {
    workspace: &'a OwnedFd,
    found: BTreeSet<PathBuf>,
    /// Git directories and configuration files that were looked at: they may name each other in circles.
    seen: BTreeSet<PathBuf>,
    /// The git directories among them, and what git would execute by them.
    repositories: BTreeMap<PathBuf, ByRepository>,
}

/// What git would execute by one git directory.
#[derive(Default)]
struct ByRepository {
    /// Folders of hooks.
    hooks: BTreeSet<PathBuf>,
    settings: BTreeSet<Executed>,
}

impl<'a> Finder<'a> {
    fn new(workspace: &'a OwnedFd) -> Finder<'a> {
        Finder {
            workspace,
            found: BTreeSet::new(),
            seen: BTreeSet::new(),
            repositories: BTreeMap::new(),
        }
    }

    /// Protects what lies in the repositories that a search has found.
    fn look(&mut self, survey: &Survey) {
        for repository in &survey.repositories {
            for name in PROTECTED.iter().chain(OTHER_VERSION_CONTROLS) {
                self.leaf(&repository.join(name));
            }
            self.git(repository);
        }
        for store in &survey.stores {
            self.git_directory(store, store, GIT_DEPTH);
        }
    }

    /// Where `path` leads in the Workspace, which is what it is unless there are links on the way. They are protected:
    /// whoever may change one decides where the path leads. So is a folder that cannot be looked into, as a whole: a
    /// command that could open it again would reach what is protected in it.
    fn follow(&mut self, path: &Path) -> Option<(PathBuf, FileType)> {
        let way = links::follow(self.workspace, path);
        self.found.extend(way.links);
        self.found.extend(way.closed);
        way.end
    }

    /// Protects what `path` leads to, if it is there and in the Workspace.
    fn leaf(&mut self, path: &Path) {
        if let Some((path, _)) = self.follow(path) {
            self.found.insert(path);
        }
    }

    fn first_sight(&mut self, path: &Path) -> bool {
        self.seen.len() < MOST_SEEN && self.seen.insert(path.to_owned())
    }

    /// Protects the git directory of a work tree.
    fn git(&mut self, work_tree: &Path) {
        match self.follow(&work_tree.join(".git")) {
            Some((git, FileType::Directory)) => self.git_directory(&git, work_tree, GIT_DEPTH),
            // A file that says where the git directory is: whoever changes it brings settings of their own.
            Some((file, _)) => {
                let git = self.pointer(&file, "gitdir: ");
                self.found.insert(file);
                if let Some(git) = git.map(|git| work_tree.join(git)) {
                    self.pointed_to(&git, work_tree, GIT_DEPTH);
                }
            }
            None => {}
        }
    }

    /// Protects a git directory that something points to, if it is in the Workspace.
    fn pointed_to(&mut self, git: &Path, work_tree: &Path, depth: usize) {
        if let Some((git, FileType::Directory)) = self.follow(git) {
            self.git_directory(&git, work_tree, depth);
        }
    }

    fn git_directory(&mut self, git: &Path, work_tree: &Path, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        if !self.first_sight(git) {
            return;
        }
        for name in GIT {
            self.leaf(&git.join(name));
        }
        let mut executed = ByRepository::default();
        executed
            .hooks
            .extend(self.follow(&git.join("hooks")).map(|(path, _)| path));
        for name in ["config", "config.worktree"] {
            self.configured(git.join(name), work_tree, &mut executed);
        }
        self.repositories.insert(git.to_owned(), executed);
        if let Some(common) = self.pointer(&git.join("commondir"), "") {
            self.pointed_to(&git.join(common), work_tree, depth);
        }
        for worktree in self.folders(&git.join("worktrees")) {
            for name in GIT_WORKTREE {
                self.leaf(&worktree.join(name));
            }
        }
        self.modules(&git.join("modules"), work_tree, depth);
    }

    fn modules(&mut self, folder: &Path, work_tree: &Path, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        for module in self.folders(folder) {
            if links::follow(self.workspace, &module.join("HEAD"))
                .end
                .is_some()
            {
                self.git_directory(&module, work_tree, depth);
            } else {
                self.modules(&module, work_tree, depth);
            }
        }
    }

    /// Protects what a configuration file makes git execute or obey.
    fn configured(&mut self, file: PathBuf, work_tree: &Path, executed: &mut ByRepository) {
        let mut waiting = vec![file];
        while let Some(file) = waiting.pop() {
            if !self.first_sight(&file) {
                continue;
            }
            let Some(text) = links::read(self.workspace, &file) else {
                continue;
            };
            let named = git_config::read(&text);
            for hooks in named.hooks {
                let hooks = work_tree.join(in_home(hooks));
                self.leaf(&hooks);
                executed
                    .hooks
                    .extend(self.follow(&hooks).map(|(path, _)| path));
            }
            let settings = named.executed.into_iter();
            executed
                .settings
                .extend(settings.map(|(name, value)| Executed { name, mark: value }));
            let folder = file.parent().unwrap_or(Path::new(""));
            for included in named.included {
                let included = folder.join(in_home(included));
                self.leaf(&included);
                waiting.extend(self.follow(&included).map(|(path, _)| path));
            }
        }
    }

    /// The path in a file that holds nothing else.
    fn pointer(&self, file: &Path, prefix: &str) -> Option<PathBuf> {
        let text = links::read(self.workspace, file)?;
        Some(text.trim_end().strip_prefix(prefix)?.into())
    }

    fn folders(&mut self, folder: &Path) -> Vec<PathBuf> {
        let Some((folder, FileType::Directory)) = self.follow(folder) else {
            return Vec::new();
        };
        let opened = open_folder(self.workspace, &folder).ok().flatten();
        let listed = opened.and_then(|opened| Some((Dir::read_from(&opened).ok()?, opened)));
        let Some((mut listing, opened)) = listed else {
            // It is there and cannot be looked into.
            self.found.insert(folder);
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
    fn a_git_file_is_protected_with_the_git_directory_that_it_points_to() {
        let (_folder, workspace) = workspace(|root| {
            file(root, "store/hooks/pre-commit");
            file(root, "common/config");
            std::fs::write(root.join(".git"), "gitdir: ./store\n").unwrap();
            std::fs::write(root.join("store/commondir"), "../common\n").unwrap();
        });
        assert_eq!(
            found(&workspace, &Policy::default()),
            [".git", "common/config", "store/commondir", "store/hooks"]
        );
    }

    #[test]
    fn every_link_on_the_way_to_what_is_protected_is_protected_too() {
        let (_folder, workspace) = workspace(|root| {
            file(root, ".git/config");
            file(root, "real/hooks/pre-commit");
            let link = |to: &Path, from| std::os::unix::fs::symlink(to, root.join(from)).unwrap();
            link(&root.canonicalize().unwrap().join("first"), ".git/hooks");
            link(Path::new("second/hooks"), "first");
            link(Path::new("real"), "second");
        });
        assert_eq!(
            found(&workspace, &Policy::default()),
            [".git/config", ".git/hooks", "first", "real/hooks", "second"]
        );
    }

    #[test]
    fn what_a_git_configuration_names_is_found() {
        let (_folder, workspace) = workspace(|root| {
            file(root, ".husky/pre-commit");
            file(root, "settings/git");
            let config = "[core]\nhooksPath = .husky\n[include]\npath = ../settings/git\n";
            file(root, ".git/HEAD");
            std::fs::write(root.join(".git/config"), config).unwrap();
            let circle = "[include]\npath = git\npath = /etc/passwd\npath = ../../x\n";
            std::fs::write(root.join("settings/git"), circle).unwrap();
        });
        assert_eq!(
            found(&workspace, &Policy::default()),
            [".git/config", ".husky", "settings/git"]
        );
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
