//! Files of the Workspace whose content no tool may read. Which they are is the operator's word; that no other name leads round it is
//! seen to here.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use crate::place::Place;
use crate::{Workspace, WorkspaceError};

/// Says of a path relative to the Workspace whether its content is hidden.
#[derive(Clone)]
pub(crate) struct Hidden(Arc<dyn Fn(&Path) -> bool + Send + Sync>);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden")
    }
}

impl Workspace {
    /// The same Workspace without the content of the files that `hides` names by their path in it. They are still listed. A link is
    /// judged by its own name and by the file that it leads to; a hard link is another file.
    #[must_use]
    pub fn with_hidden(
        mut self,
        hides: impl Fn(&Path) -> bool + Send + Sync + 'static,
    ) -> Workspace {
        self.hidden = Some(Hidden(Arc::new(hides)));
        self
    }

    /// Whether the file at this path of the Workspace, links followed, is hidden.
    pub(crate) fn hides(&self, path: &Path) -> bool {
        self.hidden
            .as_ref()
            .is_some_and(|Hidden(hides)| hides(path))
    }

    /// Refuses a file that was opened at `place`, where its content is hidden.
    pub(crate) fn require_shown(
        &self,
        place: &Place<'_>,
        opened: BorrowedFd<'_>,
    ) -> Result<(), WorkspaceError> {
        let Some(Hidden(hides)) = &self.hidden else {
            return Ok(());
        };
        if !place.is_in_workspace() {
            return Ok(());
        }
        // A file whose place cannot be told is not shown either.
        let is_shown =
            !hides(place.path.as_path()) && place.path_of(opened).is_some_and(|real| !hides(&real));
        if is_shown {
            return Ok(());
        }
        Err(WorkspaceError::Hidden {
            path: place.shown(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn hidden_content_is_refused_by_every_name_and_still_listed() {
        let fixture = Fixture::new();
        fixture.write("a/.env", "KEY=1");
        fixture.write("a/other", "shown");
        let link = |target: &str, name: &str| symlink(target, fixture.path().join(name)).unwrap();
        link("a/.env", "innocent");
        link("a", "folder");
        link("a/other", ".env");
        link(fixture.path().join("a/.env").to_str().unwrap(), "absolute");
        let hides = |path: &Path| path.file_name().is_some_and(|name| name == ".env");
        let workspace = fixture.workspace.clone().with_hidden(hides);
        let host = format!("{}/a/.env", fixture.path().display());
        for path in [
            "a/.env",
            "innocent",
            "folder/.env",
            "absolute",
            ".env",
            "a/./x/../.env",
            &host,
        ] {
            let error = workspace.read_range(path, 0, 9).unwrap_err();
            assert_eq!(error.code(), "denied", "{path}");
            assert!(error.to_string().contains("hidden"), "{error}");
            let batch = workspace.read_batch(&[path], 9);
            assert_eq!((batch.data.len(), batch.files[0].length), (0, 0));
        }
        let shown = workspace.read_range("folder/other", 0, 9).unwrap();
        assert_eq!(shown.data, b"shown");
        let listing = workspace.list_directory("a", 9).unwrap();
        assert_eq!(listing.total, 2);
        assert_eq!(workspace.stat("a/.env").unwrap().size, 5);
    }

    #[test]
    fn a_workspace_that_was_moved_hides_what_it_hid() {
        let fixture = Fixture::new();
        fixture.write(".env", "KEY=1");
        fixture.write("other", "shown");
        symlink(".env", fixture.path().join("innocent")).unwrap();
        let hides = |path: &Path| path == Path::new(".env");
        let workspace = fixture.workspace.clone().with_hidden(hides);
        std::fs::rename(fixture.path(), fixture.outside().join("moved")).unwrap();
        assert!(workspace.read_range("innocent", 0, 9).is_err());
        assert!(workspace.read_range("other", 0, 9).is_ok());
    }

    #[test]
    fn what_a_mount_holds_is_the_hosts_own_and_not_hidden() {
        let fixture = Fixture::new();
        let outputs = fixture.outside().join("outputs");
        std::fs::create_dir(&outputs).unwrap();
        std::fs::write(outputs.join("x"), "whole").unwrap();
        let workspace = fixture.workspace.clone();
        let workspace = workspace
            .with_mount("/floe/outputs", &outputs)
            .with_hidden(|_| true);
        assert!(workspace.read_range("/floe/outputs/x", 0, 9).is_ok());
    }
}
