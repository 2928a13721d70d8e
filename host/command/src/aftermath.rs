//! What a command leaves behind for programs outside the sandbox to obey: looked for when it has ended, told to the
//! person and to whoever reads of its end.

use std::path::Path;
use std::sync::Arc;

use floe_sandbox::{Appearance, AppearanceKind};
use tokio::runtime::Handle;

use crate::launch::Launch;
use crate::spec::Observe;

/// Of many things the uppermost are named: a command that makes many does not hide what matters most among them.
const NAMED: usize = 10;

/// Of many things to execute in one place the first are named.
const EXECUTED_NAMED: usize = 12;

/// Who looks, and who is told.
#[derive(Clone)]
pub(crate) struct Aftermath {
    pub(crate) launcher: Arc<dyn Launch>,
    pub(crate) observer: Arc<dyn Observe>,
}

impl Aftermath {
    /// Looks for what has appeared since the last time, tells the person of it, and returns it as a sentence.
    pub(crate) async fn look(&self, runtime: &Handle) -> Option<String> {
        let launcher = Arc::clone(&self.launcher);
        let looking = runtime.spawn_blocking(move || launcher.appeared());
        let appeared = looking.await.ok().filter(|found| !found.is_empty())?;
        let message = message(&appeared);
        self.observer.warning("executed_later", &message);
        Some(message)
    }

    /// Tells the person, at the first command, of files through which commands may write outside the Workspace.
    pub(crate) fn tell_of_hard_links(&self) {
        let links = self.launcher.hard_links();
        if let Some(first) = links.first() {
            let others = match links.len() - 1 {
                0 => String::new(),
                others => format!(" and {others} more files"),
            };
            let text = format!(
                "{}{others} of the Workspace have a further name outside it: what a command writes to them is written \
                 there too. Set `shell.hard_links` to `deny` to refuse commands in such a Workspace",
                shown(first)
            );
            self.observer.warning("hard_links", &text);
        }
    }
}

/// What appeared, in one sentence that is safe to be shown.
fn message(appeared: &[Appearance]) -> String {
    let mut appeared: Vec<_> = appeared.iter().collect();
    // What is certain to be executed comes first.
    appeared.sort_by_key(|new| {
        let depth = new.path.components().count();
        (new.executes.is_empty(), depth, &new.path)
    });
    let mut parts: Vec<_> = appeared.iter().take(NAMED).map(|new| part(new)).collect();
    if appeared.len() > NAMED {
        parts.push(format!("{} more", appeared.len() - NAMED));
    }
    format!(
        "{} appeared in the Workspace, and programs outside the sandbox may execute or obey what it says; look at it \
         before you use git, an editor or an agent there",
        parts.join(", ")
    )
}

fn part(new: &Appearance) -> String {
    let path = shown(&new.path);
    let mut executes: Vec<_> = new.executes.iter().take(EXECUTED_NAMED).cloned().collect();
    if new.executes.len() > EXECUTED_NAMED {
        executes.push(format!("{} more", new.executes.len() - EXECUTED_NAMED));
    }
    let executes = executes.join(", ");
    match new.kind {
        AppearanceKind::Settings => path,
        AppearanceKind::Repository if executes.is_empty() => {
            format!("the git repository {path} (without hooks or settings that are executed)")
        }
        AppearanceKind::Repository => format!("the git repository {path} ({executes})"),
        AppearanceKind::Executed => format!("{executes} of the git repository {path}"),
        AppearanceKind::Unsearched => {
            "more than could be searched for repositories and settings".to_owned()
        }
    }
}

fn shown(path: &Path) -> String {
    format!("{:?}", path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(path: &str, kind: AppearanceKind, executes: &[&str]) -> Appearance {
        Appearance {
            path: path.into(),
            kind,
            executes: executes.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn of_many_things_that_appeared_the_uppermost_are_named_with_what_they_hide_made_visible() {
        let setting = |path: &str| new(path, AppearanceKind::Settings, &[]);
        let many = (0..300).map(|number| setting(&format!(".git/worktrees/{number}/gitdir")));
        let all: Vec<_> = many.chain([setting(".vscode\n\u{202e}")]).collect();
        let message = message(&all);
        let start = r#"".vscode\n\u{202e}", ".git/worktrees/0/gitdir", "#;
        assert!(message.starts_with(start), "{message}");
        assert!(message.contains(", 291 more appeared in the Workspace, "));
    }

    #[test]
    fn a_repository_is_told_with_what_it_would_execute_and_before_all_else() {
        let text = message(&[
            new(".vscode", AppearanceKind::Settings, &[]),
            new(
                "sub/.git",
                AppearanceKind::Repository,
                &["hook pre-commit", "core.fsmonitor"],
            ),
            new("other/.git", AppearanceKind::Repository, &[]),
            new(".git", AppearanceKind::Executed, &["alias.x"]),
        ]);
        let start = r#"alias.x of the git repository ".git", the git repository "sub/.git" (hook pre-commit, core.fsmonitor), ".vscode", the git repository "other/.git" (without hooks or settings that are executed) appeared"#;
        assert!(text.starts_with(start), "{text}");
    }
}
