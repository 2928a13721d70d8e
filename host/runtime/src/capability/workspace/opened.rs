//! The real `workspace`: the Session's opened root. Every access goes through its descriptor, on a thread that may block.

use std::sync::Arc;

use async_trait::async_trait;
use floe_workspace::{Kind, LetsWalk, MAX_LISTED, WorkspaceError};

use super::{BytesRange, Entry, EntryKind, FileBatch, FileSlice, Walk, WalkOptions, Workspace};
use crate::capability::Failure;

/// The Workspace of a Session as tools read it.
#[derive(Clone)]
pub struct OpenedWorkspace(Arc<floe_workspace::Workspace>);

impl OpenedWorkspace {
    /// Reads go through this root.
    pub fn new(workspace: floe_workspace::Workspace) -> OpenedWorkspace {
        OpenedWorkspace(Arc::new(workspace))
    }

    /// Does something that blocks.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&floe_workspace::Workspace) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let workspace = self.0.clone();
        let done = tokio::task::spawn_blocking(move || work(&workspace)).await;
        done.unwrap_or_else(|_panicked| Err(Failure::internal()))
    }
}

#[async_trait]
impl Workspace for OpenedWorkspace {
    async fn stat(&self, path: &str) -> Result<Entry, Failure> {
        let path = path.to_owned();
        self.read(move |root| root.stat(&path).map(entry).map_err(with_names(root, &path)))
            .await
    }

    async fn list_directory(&self, path: &str) -> Result<Vec<Entry>, Failure> {
        let path = path.to_owned();
        self.read(move |root| {
            let listing = root
                .list_directory(&path, MAX_LISTED)
                .map_err(with_names(root, &path))?;
            if listing.total > listing.entries.len() as u64 {
                return Err(Failure::new(
                    "too-large",
                    format!(
                        "\"{path}\" has {} entries, and at most {MAX_LISTED} can be listed.",
                        listing.total
                    ),
                )
                .with_hint("Name what you look for, or list it with a command."));
            }
            Ok(listing.entries.into_iter().map(entry).collect())
        })
        .await
    }

    async fn read_range(
        &self,
        path: &str,
        offset: u64,
        length: u32,
    ) -> Result<BytesRange, Failure> {
        let path = path.to_owned();
        self.read(move |root| {
            let range = root
                .read_range(&path, offset, length)
                .map_err(with_names(root, &path))?;
            Ok(BytesRange {
                data: range.data,
                offset: range.offset,
                total_size: range.total_size,
            })
        })
        .await
    }

    async fn read_batch(&self, paths: &[String], max_bytes: u32) -> Result<FileBatch, Failure> {
        let paths = paths.to_owned();
        self.read(move |root| Ok(file_batch(root.read_batch(&paths, max_bytes))))
            .await
    }

    async fn open_walk(&self, options: WalkOptions) -> Result<Box<dyn Walk>, Failure> {
        self.read(move |root| {
            let path = options.root.clone();
            let walk = root
                .walk(walk_options(options))
                .map_err(with_names(root, &path))?;
            Ok(Box::new(OpenedWalk {
                _lets_walk: walk.while_held(),
                walk: Some(walk),
            }) as Box<dyn Walk>)
        })
        .await
    }
}

/// A walk under way; it is elsewhere while a thread waits for its next portion.
struct OpenedWalk {
    walk: Option<floe_workspace::Walk>,
    /// A call that ends while a thread waits must not leave a walk that goes on alone.
    _lets_walk: LetsWalk,
}

impl OpenedWalk {
    /// Does something that blocks. Where the caller does not wait for it, the walk is over.
    async fn next<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut floe_workspace::Walk) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, Failure> {
        let mut walk = self.walk.take().ok_or_else(Failure::internal)?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&mut walk);
            (walk, done)
        });
        let (walk, done) = done.await.map_err(|_panicked| Failure::internal())?;
        self.walk = Some(walk);
        done.map_err(Failure::from)
    }
}

#[async_trait]
impl Walk for OpenedWalk {
    async fn next_entries(&mut self, max: u32) -> Result<Vec<Entry>, Failure> {
        let entries = self
            .next(move |walk| walk.next_entries(max as usize))
            .await?;
        Ok(entries.into_iter().map(entry).collect())
    }

    async fn next_files(&mut self, max_bytes: u32) -> Result<FileBatch, Failure> {
        let batch = self
            .next(move |walk| walk.next_files(max_bytes as usize))
            .await?;
        Ok(file_batch(batch))
    }

    fn ready_files(&mut self) -> Option<Result<FileBatch, Failure>> {
        let ready = self.walk.as_mut()?.ready_files()?;
        Some(ready.map(file_batch).map_err(Failure::from))
    }
}

fn walk_options(options: WalkOptions) -> floe_workspace::WalkOptions {
    floe_workspace::WalkOptions {
        root: options.root,
        include: options.include_globs,
        exclude: options.exclude_globs,
        respect_ignore: options.respect_ignore,
        hidden: options.hidden,
        max_depth: options.max_depth,
        max_file_size: options.max_file_size,
        containing: options.containing,
    }
}

fn entry(entry: floe_workspace::Entry) -> Entry {
    Entry {
        kind: match entry.kind {
            Kind::File => EntryKind::File,
            Kind::Directory => EntryKind::Directory,
            Kind::Symlink => EntryKind::Symlink,
            Kind::Other => EntryKind::Other,
        },
        path: entry.path,
        size: entry.size,
        modified_ms: Some(entry.modified_ms),
    }
}

fn file_batch(batch: floe_workspace::FileBatch) -> FileBatch {
    FileBatch {
        data: batch.data,
        files: batch.files.into_iter().map(slice).collect(),
    }
}

fn slice(slice: floe_workspace::FileSlice) -> FileSlice {
    // A batch is at most 16 MiB, so the positions always fit.
    let position = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    FileSlice {
        path: slice.path,
        start: position(slice.start),
        length: position(slice.length),
        total_size: slice.total_size,
        failure: slice.failure.map(Failure::from),
    }
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Failure {
        Failure {
            code: error.code().to_owned(),
            hint: error.hint().map(str::to_owned),
            retryable: error.is_retryable(),
            message: error.to_string(),
        }
    }
}

/// A failure whose hint names what is near a path that does not exist.
fn with_names<'a>(
    root: &'a floe_workspace::Workspace,
    path: &'a str,
) -> impl Fn(WorkspaceError) -> Failure + 'a {
    move |error| {
        let missing = matches!(error, WorkspaceError::NotFound { .. });
        let near = if missing {
            root.near_names(path)
        } else {
            Vec::new()
        };
        let failure = Failure::from(error);
        if near.is_empty() {
            return failure;
        }
        let near: Vec<String> = near.iter().map(|name| format!("\"{name}\"")).collect();
        failure.with_hint(format!("Did you mean {}?", near.join(" or ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(files: &[&str]) -> (tempfile::TempDir, OpenedWorkspace) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::write(folder.path().join(file), "contents").unwrap();
        }
        let root = floe_workspace::Workspace::open(folder.path()).unwrap();
        (folder, OpenedWorkspace::new(root))
    }

    #[tokio::test]
    async fn files_are_listed_stated_and_read() {
        let (_folder, workspace) = opened(&["a.txt", "b.txt"]);
        let names: Vec<String> = workspace
            .list_directory(".")
            .await
            .unwrap()
            .into_iter()
            .map(|entry| entry.path)
            .collect();
        assert_eq!(names, ["a.txt", "b.txt"]);
        assert_eq!(workspace.stat("a.txt").await.unwrap().size, 8);
        let range = workspace.read_range("a.txt", 3, 2).await.unwrap();
        assert_eq!((range.data.as_slice(), range.total_size), (&b"te"[..], 8));
        let paths = ["b.txt".to_owned(), "none".to_owned()];
        let batch = workspace.read_batch(&paths, 1024).await.unwrap();
        assert_eq!(batch.data, b"contents");
        assert_eq!(batch.files[1].failure.as_ref().unwrap().code, "not-found");
    }

    #[tokio::test]
    async fn a_walk_gives_entries_or_contents_and_can_be_left_under_way() {
        let (_folder, workspace) = opened(&["a.txt", "b.txt"]);
        let options = || WalkOptions {
            root: String::new(),
            include_globs: vec!["b*".into()],
            exclude_globs: Vec::new(),
            respect_ignore: true,
            hidden: false,
            max_depth: None,
            max_file_size: None,
            containing: vec![b"tent".to_vec()],
        };
        let mut walk = workspace.open_walk(options()).await.unwrap();
        assert_eq!(walk.next_entries(9).await.unwrap()[0].path, "b.txt");
        assert!(walk.next_entries(9).await.unwrap().is_empty());
        let mut walk = workspace.open_walk(options()).await.unwrap();
        let batch = walk.next_files(9).await.unwrap();
        assert_eq!(
            (batch.data.as_slice(), batch.files.len()),
            (&b"contents"[..], 1)
        );
        assert!(walk.next_files(9).await.unwrap().files.is_empty());
        let missing = WalkOptions {
            root: "a.tx".into(),
            ..options()
        };
        let failure = workspace.open_walk(missing).await.err().unwrap();
        assert_eq!(failure.hint.as_deref(), Some("Did you mean \"a.txt\"?"));
    }

    #[tokio::test]
    async fn a_path_that_leaves_the_workspace_and_one_that_is_missing_have_their_codes() {
        let (_folder, workspace) = opened(&["main.rs"]);
        let outside = workspace.stat("../x").await.unwrap_err();
        assert_eq!(outside.code, "outside-workspace");
        assert_eq!(outside.message, "Path \"../x\" is outside the Workspace.");
        let missing = workspace.read_range("main.r", 0, 1).await.unwrap_err();
        assert_eq!(missing.code, "not-found");
        assert_eq!(missing.hint.as_deref(), Some("Did you mean \"main.rs\"?"));
    }
}
