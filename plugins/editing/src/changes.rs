//! From a transaction to what is told of it, to the model and to programs.

use floe_tool::Failure;
use floe_tool::edits::{Change, Transaction};

/// What one file became, for programs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Changed {
    /// Relative to the Workspace.
    pub path: String,
    /// created, replaced, deleted or moved.
    pub action: String,
    /// Lines of the diff that were added.
    pub lines_added: u32,
    /// Lines of the diff that were removed.
    pub lines_removed: u32,
    /// Digest (hexadecimal) of the new contents; none where the file is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl From<Change> for Changed {
    fn from(change: Change) -> Changed {
        Changed {
            path: change.path,
            action: change.action,
            lines_added: change.lines_added,
            lines_removed: change.lines_removed,
            sha256: change.sha256,
        }
    }
}

/// Makes all changes of a transaction.
///
/// # Errors
/// Each fault on a line of its own: what to tell the model.
pub fn commit(transaction: &Transaction) -> Result<Vec<Changed>, String> {
    let made = transaction.commit().map_err(|faults| {
        let told: Vec<String> = faults.iter().map(Failure::explanation).collect();
        told.join("\n")
    })?;
    Ok(made.into_iter().map(Changed::from).collect())
}
