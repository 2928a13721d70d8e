//! Changing files: the Session's editor, and what hosts that died have left half done.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use floe_protocol::{Home, SessionId};
use floe_sandbox::{FoundProtection, Policy};
use floe_workspace::{Editor, EditorOptions, Recovered, Workspace};

use crate::message_queue::MessageQueue;

/// The editor of a Session. `workspace` remembers what tools have read. What is protected from commands is protected from edits: what
/// has a name that is known, and what was found to be executed or obeyed in this very Workspace.
///
/// # Errors
///
/// The Workspace's descriptor cannot be had twice.
pub(crate) fn editor(
    workspace: Workspace,
    policy: &Policy,
    home: &Home,
    session: &SessionId,
) -> io::Result<Editor> {
    let found = FoundProtection::new(workspace.fd().try_clone_to_owned()?, policy.clone());
    let root = workspace.canonical_path().to_owned();
    let is_repository = move |folder: &Path| root.join(folder).join(".git").exists();
    let by_name = policy.protects(is_repository);
    Ok(Editor::new(
        workspace,
        EditorOptions {
            journal: home.journal(session),
            locks: home.locks(),
            protects: Arc::new(move |path| by_name(path) || found.protects(path)),
        },
    ))
}

/// Finishes or undoes what other hosts have left half done in this Workspace, and tells it.
pub(crate) fn recover(editor: &Editor, home: &Home, queue: &Arc<MessageQueue>) {
    let message = match editor.recover(&journals(home)) {
        Ok(recovered) if recovered.is_empty() => return,
        Ok(recovered) => told(&recovered),
        Err(error) => format!("Edits that were left half done could not be looked at: {error}"),
    };
    queue.warn("edits_recovered", message);
}

/// The journals of all Sessions.
pub fn journals(home: &Home) -> Vec<PathBuf> {
    let sessions = std::fs::read_dir(home.sessions()).into_iter().flatten();
    sessions
        .flatten()
        .map(|entry| entry.path().join("journal"))
        .filter(|journal| journal.is_dir())
        .collect()
}

fn told(recovered: &[Recovered]) -> String {
    let lines: Vec<String> = recovered
        .iter()
        .map(|one| {
            let how = if one.finished {
                "finished"
            } else {
                "taken back"
            };
            let left = match one.left.as_slice() {
                [] => String::new(),
                left => format!(
                    "; changed by others since and left as they are: {}",
                    left.join(", ")
                ),
            };
            format!(
                "An edit that was left half done has been {how}: {}{left}",
                one.paths.join(", ")
            )
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_changes_nothing_that_git_would_execute_by_whatever_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("workspace");
        for (path, text) in [
            (".git/config", "[core]\n\thooksPath = tools\n"),
            ("tools/pre-commit", "true\n"),
            ("free", "true\n"),
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::os::unix::fs::symlink("tools", root.join("link")).unwrap();
        let workspace = Workspace::open(&root).unwrap();
        let home = Home::new(folder.path().join("home"));
        let session = SessionId::generate();
        let editor = editor(workspace, &Policy::default(), &home, &session).unwrap();
        let mut transaction = editor.begin();
        let mut replace = |path: &str| transaction.replace(path, b"evil\n".to_vec(), None);
        for path in ["tools/pre-commit", "link/pre-commit", ".git/config"] {
            assert_eq!(replace(path).unwrap_err().code(), "denied", "{path}");
        }
        replace("free").unwrap();
        let made = transaction.create("tools/post-checkout", Vec::new());
        assert_eq!(made.unwrap_err().code(), "denied");
    }

    #[test]
    fn what_was_finished_and_what_was_taken_back_are_told_apart() {
        let one = Recovered {
            finished: true,
            paths: vec!["a".into(), "b".into()],
            left: Vec::new(),
        };
        let other = Recovered {
            finished: false,
            paths: vec!["c".into()],
            left: vec!["c".into()],
        };
        assert_eq!(
            told(&[one, other]),
            "An edit that was left half done has been finished: a, b\n\
             An edit that was left half done has been taken back: c; changed by others since and left as they are: c"
        );
    }
}
