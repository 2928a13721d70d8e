//! What programs outside the sandbox obey and commands have made: noticed once it is there.
//!
//! A command may start a repository, and may make a file whose name is protected where there was none, because nothing is
//! ever put in the Workspace to hold a place. Git, editors and agents outside would obey them, so the person is to be told,
//! and again whenever there is more in them to execute.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Something that programs outside the sandbox obey and that was not there before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appearance {
    /// Relative to the Workspace, but for the settings of a git directory outside it.
    pub path: PathBuf,
    /// What it is.
    pub kind: AppearanceKind,
    /// What git would execute of it that it would not have before: `hook pre-commit`, `core.fsmonitor`. Safe to be shown.
    pub executes: Vec<String>,
}

/// What has appeared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppearanceKind {
    /// A file or folder with settings.
    Settings,
    /// A git directory.
    Repository,
    /// Something to execute in a git directory that was known before.
    Executed,
    /// So much came to be in the Workspace that not all of it was searched.
    Unsearched,
}

/// Something that git would execute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Executed {
    /// Its name, as it is shown.
    pub(crate) name: String,
    /// What is different when it is another one of the same name.
    pub(crate) mark: String,
}

/// What is obeyed at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Obeyed {
    /// Files and folders with settings.
    pub(crate) settings: BTreeSet<PathBuf>,
    /// Git directories, and what git would execute of them.
    pub(crate) repositories: BTreeMap<PathBuf, BTreeSet<Executed>>,
    /// Whether something was left unsearched.
    pub(crate) is_partial: bool,
}

/// What has come to be obeyed since the Session's first command.
#[derive(Debug, Default)]
pub(crate) struct Newcomers {
    known: Option<Obeyed>,
    untold: Vec<Appearance>,
}

impl Newcomers {
    /// Takes notice of what is obeyed now. What is there the first time is nothing new.
    pub(crate) fn notice(&mut self, now: Obeyed) {
        let Some(known) = &mut self.known else {
            self.known = Some(now);
            return;
        };
        for (path, executed) in &now.repositories {
            let before = known.repositories.get(path);
            let new: Vec<_> = executed
                .iter()
                .filter(|item| before.is_none_or(|before| !before.contains(item)))
                .map(|item| item.name.clone())
                .collect();
            let kind = match before {
                None => AppearanceKind::Repository,
                Some(_) if new.is_empty() => continue,
                Some(_) => AppearanceKind::Executed,
            };
            self.untold.push(Appearance {
                path: path.clone(),
                kind,
                executes: new,
            });
        }
        for path in now.settings.difference(&known.settings) {
            // What is in a new repository was told with it, and a folder of hooks with the hooks in it.
            let told = self.untold.iter().any(|told| match told.kind {
                AppearanceKind::Repository => path.starts_with(&told.path),
                AppearanceKind::Executed => *path == told.path.join("hooks"),
                _ => false,
            });
            if !told {
                self.untold.push(Appearance {
                    path: path.clone(),
                    kind: AppearanceKind::Settings,
                    executes: Vec::new(),
                });
            }
        }
        if now.is_partial && !known.is_partial {
            self.untold.push(Appearance {
                path: PathBuf::from("."),
                kind: AppearanceKind::Unsearched,
                executes: Vec::new(),
            });
        }
        // A setting that goes and comes again is not new; something to execute is.
        known.settings.extend(now.settings);
        known.repositories = now.repositories;
        known.is_partial |= now.is_partial;
    }

    /// What is new; each is told once.
    pub(crate) fn take(&mut self) -> Vec<Appearance> {
        std::mem::take(&mut self.untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obeyed(settings: &[&str], repositories: &[(&str, &[&str])]) -> Obeyed {
        let executed = |names: &[&str]| {
            let item = |name: &&str| Executed {
                name: (*name).to_owned(),
                mark: String::new(),
            };
            names.iter().map(item).collect()
        };
        Obeyed {
            settings: settings.iter().map(PathBuf::from).collect(),
            repositories: repositories
                .iter()
                .map(|(path, names)| (path.into(), executed(names)))
                .collect(),
            is_partial: false,
        }
    }

    fn told(newcomers: &mut Newcomers) -> Vec<String> {
        let all = newcomers.take().into_iter();
        all.map(|new| {
            format!(
                "{:?} {} {}",
                new.kind,
                new.path.display(),
                new.executes.join(",")
            )
        })
        .collect()
    }

    #[test]
    fn what_was_there_at_first_is_not_new_and_what_is_new_is_told_once() {
        let mut newcomers = Newcomers::default();
        newcomers.notice(obeyed(&["old"], &[(".git", &["hook a"])]));
        assert!(told(&mut newcomers).is_empty());
        newcomers.notice(obeyed(&["old", "new"], &[(".git", &["hook a"])]));
        assert_eq!(told(&mut newcomers), ["Settings new "]);
        newcomers.notice(obeyed(&["old"], &[(".git", &["hook a"])]));
        newcomers.notice(obeyed(&["new"], &[(".git", &["hook a"])]));
        assert!(told(&mut newcomers).is_empty());
    }

    #[test]
    fn a_repository_is_told_when_it_is_new_and_when_there_is_more_to_execute() {
        let mut newcomers = Newcomers::default();
        newcomers.notice(Obeyed::default());
        newcomers.notice(obeyed(&["a/.git/config"], &[("a/.git", &[])]));
        assert_eq!(told(&mut newcomers), ["Repository a/.git "]);
        let hooks = ["a/.git/config", "a/.git/hooks"];
        newcomers.notice(obeyed(&hooks, &[("a/.git", &["hook b"])]));
        assert_eq!(told(&mut newcomers), ["Executed a/.git hook b"]);
        newcomers.notice(obeyed(&hooks, &[("a/.git", &["hook b"])]));
        assert!(told(&mut newcomers).is_empty());
        newcomers.notice(obeyed(&[], &[]));
        newcomers.notice(obeyed(&hooks, &[("a/.git", &["hook b"])]));
        assert_eq!(told(&mut newcomers), ["Repository a/.git hook b"]);
    }
}
