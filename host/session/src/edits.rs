//! Changing files: the Session's editor, and what hosts that died have left half done.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use floe_protocol::{Home, SessionId};
use floe_sandbox::Policy;
use floe_workspace::{Editor, EditorOptions, Recovered, Workspace};

use crate::message_queue::MessageQueue;

/// The editor of a Session. `workspace` remembers what tools have read.
pub(crate) fn editor(
    workspace: Workspace,
    policy: &Policy,
    home: &Home,
    session: &SessionId,
) -> Editor {
    let root = workspace.canonical_path().to_owned();
    let is_repository = move |folder: &Path| root.join(folder).join(".git").exists();
    Editor::new(
        workspace,
        EditorOptions {
            journal: home.journal(session),
            locks: home.locks(),
            protects: Arc::new(policy.protects(is_repository)),
        },
    )
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
