//! What of the Workspace commands may not change or read: found by the host, enforced by the helper's mounts.
//!
//! Protected are the settings that are executed or obeyed later, by git, by editors, by agents, by Floe itself. Only what
//! exists can be protected: nothing is ever created in the Workspace to hold a place. The search for nested repositories
//! happens once per Session and is bounded; what it found is looked at again before every command.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::error::SandboxError;
use crate::pattern::Pattern;
use crate::policy::{Policy, Search};

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

/// What the search of a Workspace found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Folders that hold a `.git`, relative to the Workspace; its root is always among them.
    repositories: BTreeSet<PathBuf>,
    /// Files whose content is hidden.
    pub(crate) denied: BTreeSet<PathBuf>,
}

/// Searches the Workspace, as far as the policy says.
pub(crate) fn survey(workspace: &OwnedFd, policy: &Policy) -> Result<Survey, SandboxError> {
    let patterns = policy
        .deny_read
        .iter()
        .map(|text| Pattern::parse(text))
        .collect::<Result<Vec<_>, _>>()?;
    let mut found = Survey::default();
    found.repositories.insert(PathBuf::new());
    let mut entries = 0;
    let mut waiting = vec![(PathBuf::new(), 1)];
    while let Some((folder, depth)) = waiting.pop() {
        let Some(opened) = open_folder(workspace, &folder)? else {
            continue;
        };
        let mut listing = Dir::read_from(&opened).map_err(unsearchable(&folder))?;
        while let Some(entry) = listing.read() {
            let entry = entry.map_err(unsearchable(&folder))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            entries += 1;
            if entries > policy.search.entries {
                return Err(too_large(policy.search));
            }
            let path = folder.join(name);
            if name == ".git" {
                found.repositories.insert(folder.clone());
                continue;
            }
            match kind(&opened, name, entry.file_type()) {
                Some(FileType::Directory) if depth < policy.search.depth => {
                    waiting.push((path, depth + 1));
                }
                Some(FileType::RegularFile)
                    if patterns.iter().any(|pattern| pattern.matches(&path)) =>
                {
                    found.denied.insert(path);
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

fn too_large(search: Search) -> SandboxError {
    SandboxError::Protection {
        path: ".".to_owned(),
        reason: format!(
            "it holds more than {} entries within {} folders' depth, so not every repository in it can be found. Lower \
             `search.depth` in the sandbox policy, raise `search.entries`, or open a smaller folder.",
            search.entries, search.depth
        ),
    }
}

fn unsearchable(folder: &Path) -> impl Fn(Errno) -> SandboxError {
    move |errno| SandboxError::Protection {
        path: folder.display().to_string(),
        reason: format!(
            "the folder cannot be searched: {}.",
            crate::error::errno_text(errno.raw_os_error())
        ),
    }
}

/// Opens a folder of the Workspace; none where the host may not look or nothing is any more: there a command finds
/// nothing either.
fn open_folder(workspace: &OwnedFd, folder: &Path) -> Result<Option<OwnedFd>, SandboxError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    match open(workspace, folder, flags, ResolveFlags::NO_SYMLINKS) {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(errno) => Err(unsearchable(folder)(errno)),
    }
}

fn open(
    workspace: &OwnedFd,
    path: &Path,
    flags: OFlags,
    resolve: ResolveFlags,
) -> rustix::io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let resolve = resolve | ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    rustix::io::retry_on_intr(|| {
        rustix::fs::openat2(
            workspace,
            path,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
            resolve,
        )
    })
}

fn kind(folder: &OwnedFd, name: &OsStr, told: FileType) -> Option<FileType> {
    if told != FileType::Unknown {
        return Some(told);
    }
    let status = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(status.st_mode))
}

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
            .all(|part| matches!(part, std::path::Component::Normal(_)));
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
    use std::fs;

    fn workspace(make: impl FnOnce(&Path)) -> (tempfile::TempDir, OwnedFd) {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(folder.path(), flags, Mode::empty()).unwrap();
        (folder, opened)
    }

    fn found(workspace: &OwnedFd, policy: &Policy) -> Vec<String> {
        let survey = survey(workspace, policy).unwrap();
        let paths = protected(workspace, &survey, policy).unwrap();
        paths
            .into_iter()
            .map(|path| path.display().to_string())
            .collect()
    }

    fn file(root: &Path, path: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
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
    fn the_search_refuses_what_it_cannot_finish_and_says_how_to_go_on() {
        let (_folder, workspace) = workspace(|root| {
            for number in 0..20 {
                file(root, &format!("f{number}"));
            }
        });
        let policy = Policy {
            search: Search {
                depth: 6,
                entries: 10,
            },
            ..Policy::default()
        };
        let refusal = survey(&workspace, &policy).unwrap_err().to_string();
        assert!(refusal.contains("more than 10 entries"), "{refusal}");
        assert!(refusal.contains("search.depth"), "{refusal}");
    }

    #[test]
    fn files_that_hold_secrets_are_found_by_pattern_at_any_depth() {
        let (_folder, workspace) = workspace(|root| {
            file(root, ".env");
            file(root, "service/.env.local");
            file(root, "service/env");
        });
        let survey = survey(&workspace, &Policy::default()).unwrap();
        let denied: Vec<_> = survey
            .denied
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        assert_eq!(denied, [".env", "service/.env.local"]);
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
