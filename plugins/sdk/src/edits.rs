//! Changes the Workspace: all of a transaction or nothing. Paths are relative to its root, with `/`.
//!
//! Every function fails with code `outside-workspace` for a path that leaves it, `denied` for one that may not be changed or where
//! the tool was not granted changing, `not-found`, `exists`, and `conflict` for a file that is not what the tool took it for.

use crate::Failure;
use crate::bindings::floe::tool::edits as host;
pub use host::Change;

/// Changes that are staged and then committed together. Dropping it abandons them.
#[derive(Debug)]
pub struct Transaction(host::Transaction);

impl Transaction {
    /// Begins one.
    ///
    /// # Errors
    /// As the module says.
    pub fn begin() -> Result<Transaction, Failure> {
        host::Transaction::begin().map(Transaction)
    }

    /// Stages a new file, with the folders that it needs.
    ///
    /// # Errors
    /// As the module says.
    pub fn create(&self, path: &str, contents: &[u8]) -> Result<(), Failure> {
        self.0.stage_create(path, contents)
    }

    /// Stages new contents of a file. `expected_sha256` is the digest (hexadecimal) of what the tool read.
    ///
    /// # Errors
    /// As the module says.
    pub fn replace(
        &self,
        path: &str,
        contents: &[u8],
        expected_sha256: Option<&str>,
    ) -> Result<(), Failure> {
        self.0.stage_replace(path, contents, expected_sha256)
    }

    /// Stages the removal of a file.
    ///
    /// # Errors
    /// As the module says.
    pub fn delete(&self, path: &str, expected_sha256: Option<&str>) -> Result<(), Failure> {
        self.0.stage_delete(path, expected_sha256)
    }

    /// Stages that a file goes elsewhere.
    ///
    /// # Errors
    /// As the module says.
    pub fn move_file(
        &self,
        source: &str,
        destination: &str,
        expected_sha256: Option<&str>,
    ) -> Result<(), Failure> {
        self.0.stage_move(source, destination, expected_sha256)
    }

    /// A unified diff of what is staged.
    ///
    /// # Errors
    /// As the module says.
    pub fn preview(&self) -> Result<String, Failure> {
        self.0.preview()
    }

    /// Makes all changes, or none.
    ///
    /// # Errors
    /// Each fault with its reason.
    pub fn commit(&self) -> Result<Vec<Change>, Vec<Failure>> {
        self.0.commit()
    }
}
