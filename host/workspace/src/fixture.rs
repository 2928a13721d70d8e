//! A Workspace in a temporary folder, with a secret beside it.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Workspace;

pub(crate) struct Fixture {
    folder: TempDir,
    path: PathBuf,
    pub(crate) workspace: Workspace,
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("workspace");
        fs::create_dir(&path).unwrap();
        fs::write(folder.path().join("secret"), "outside").unwrap();
        let workspace = Workspace::open(&path).unwrap();
        Fixture {
            folder,
            path,
            workspace,
        }
    }

    /// The Workspace on the host.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder around it.
    pub(crate) fn outside(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file of the Workspace, with the folders above it.
    pub(crate) fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.path.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
}
