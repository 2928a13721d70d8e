//! The real `edits`: transactions of the Session's editor, on threads that may block. A commit that has begun runs to its end, also where
//! nobody waits for it any more.

use async_trait::async_trait;
use floe_workspace::{Action, Editor, WorkspaceError};

use super::{Change, Edits, Transaction};
use crate::capability::Failure;

/// The Workspace of a Session as tools change it.
#[derive(Clone, Debug)]
pub struct OpenedEdits(Editor);

impl OpenedEdits {
    /// Changes go through this editor.
    pub fn new(editor: Editor) -> OpenedEdits {
        OpenedEdits(editor)
    }
}

#[async_trait]
impl Edits for OpenedEdits {
    async fn begin(&self) -> Result<Box<dyn Transaction>, Failure> {
        Ok(Box::new(OpenedTransaction(Some(self.0.begin()))))
    }
}

/// A transaction under way; it is elsewhere while a thread works on it, and gone once it was committed.
#[derive(Debug)]
struct OpenedTransaction(Option<floe_workspace::Transaction>);

impl OpenedTransaction {
    /// Does something that blocks. Where the caller does not wait for it, the transaction is over.
    async fn work<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut floe_workspace::Transaction) -> Result<T, WorkspaceError>
        + Send
        + 'static,
    ) -> Result<T, Failure> {
        let mut transaction = self.take()?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&mut transaction);
            (transaction, done)
        });
        let (transaction, done) = done.await.map_err(|_panicked| Failure::internal())?;
        self.0 = Some(transaction);
        done.map_err(Failure::from)
    }

    fn take(&mut self) -> Result<floe_workspace::Transaction, Failure> {
        self.0.take().ok_or_else(|| {
            Failure::new("invalid", "The transaction is over.").with_hint("Begin another one.")
        })
    }
}

#[async_trait]
impl Transaction for OpenedTransaction {
    async fn stage_create(&mut self, path: &str, contents: Vec<u8>) -> Result<(), Failure> {
        let path = path.to_owned();
        self.work(move |transaction| transaction.create(&path, contents))
            .await
    }

    async fn stage_replace(
        &mut self,
        path: &str,
        contents: Vec<u8>,
        expected_sha256: Option<String>,
    ) -> Result<(), Failure> {
        let path = path.to_owned();
        self.work(move |transaction| {
            transaction.replace(&path, contents, expected_sha256.as_deref())
        })
        .await
    }

    async fn stage_delete(
        &mut self,
        path: &str,
        expected_sha256: Option<String>,
    ) -> Result<(), Failure> {
        let path = path.to_owned();
        self.work(move |transaction| transaction.delete(&path, expected_sha256.as_deref()))
            .await
    }

    async fn stage_move(
        &mut self,
        source: &str,
        destination: &str,
        expected_sha256: Option<String>,
    ) -> Result<(), Failure> {
        let (source, destination) = (source.to_owned(), destination.to_owned());
        self.work(move |transaction| {
            transaction.move_file(&source, &destination, expected_sha256.as_deref())
        })
        .await
    }

    async fn preview(&mut self) -> Result<String, Failure> {
        self.work(|transaction| Ok(transaction.preview())).await
    }

    async fn commit(&mut self) -> Result<Vec<Change>, Vec<Failure>> {
        let transaction = self.take().map_err(|failure| vec![failure])?;
        let done = tokio::task::spawn_blocking(move || transaction.commit());
        match done.await {
            Ok(Ok(changes)) => Ok(changes.into_iter().map(change).collect()),
            Ok(Err(faults)) => Err(faults.into_iter().map(Failure::from).collect()),
            Err(_panicked) => Err(vec![Failure::internal()]),
        }
    }
}

fn change(change: floe_workspace::Change) -> Change {
    let action = match change.action {
        Action::Created => "created",
        Action::Replaced => "replaced",
        Action::Deleted => "deleted",
        Action::Moved => "moved",
    };
    Change {
        path: change.path,
        action: action.to_owned(),
        lines_added: change.lines_added,
        lines_removed: change.lines_removed,
        sha256: change.sha256,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn opened() -> (tempfile::TempDir, OpenedEdits) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("workspace");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("a"), "one\n").unwrap();
        let options = floe_workspace::EditorOptions {
            journal: folder.path().join("journal"),
            locks: folder.path().join("locks"),
            protects: Arc::new(|path| path.starts_with(".floe")),
        };
        let workspace = floe_workspace::Workspace::open(&root).unwrap();
        (folder, OpenedEdits::new(Editor::new(workspace, options)))
    }

    #[tokio::test]
    async fn a_transaction_is_staged_shown_and_committed_once() {
        let (folder, edits) = opened();
        let mut transaction = edits.begin().await.unwrap();
        transaction
            .stage_replace("a", b"two\n".to_vec(), None)
            .await
            .unwrap();
        let diff = transaction.preview().await.unwrap();
        assert!(diff.contains("-one\n+two\n"), "{diff}");
        let changes = transaction.commit().await.unwrap();
        assert_eq!(
            (changes[0].action.as_str(), changes[0].lines_added),
            ("replaced", 1)
        );
        let written = std::fs::read(folder.path().join("workspace/a")).unwrap();
        assert_eq!(written, b"two\n");
        let again = transaction.commit().await.unwrap_err();
        assert_eq!(again[0].code, "invalid");
    }

    #[tokio::test]
    async fn a_fault_has_its_code_and_its_hint() {
        let (_folder, edits) = opened();
        let mut transaction = edits.begin().await.unwrap();
        let missing = transaction.stage_delete("b", None).await.unwrap_err();
        assert_eq!(missing.code, "not-found");
        let protected = transaction.stage_create(".floe/x", Vec::new()).await;
        assert_eq!(protected.unwrap_err().code, "denied");
        let stale = Some("0".repeat(64));
        let stale = transaction.stage_replace("a", Vec::new(), stale).await;
        assert_eq!(stale.unwrap_err().code, "conflict");
    }
}
