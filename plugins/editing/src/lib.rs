//! What the tools that edit share. Nothing of it is a tool.
//!
//! A [`Document`] is a text with everything about its bytes that an edit must keep; [`replace`] finds the part of it that is to be replaced, by
//! steps that allow more and more, and says which step it took.

mod changes;
mod document;
mod ladder;
mod lines;
mod nearest;

pub use changes::{Changed, commit};
pub use document::{Document, NotText, Rewritten};
pub use ladder::{Fault, Replaced, Step, fold, replace};

use floe_tool::{Failure, workspace};
use sha2::{Digest, Sha256};

/// Larger files are not edited, in bytes (spec/coding-tools.md, appendix A).
pub const FILE_BYTES: u64 = 5 * 1024 * 1024;

/// The digest of some bytes, in hexadecimal, as a transaction expects it.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A file that is to be edited.
#[derive(Debug)]
pub struct Opened {
    /// Relative to the Workspace, without what means nothing in a path.
    pub path: String,
    /// Its text.
    pub document: Document,
    /// The digest of its bytes.
    pub sha256: String,
}

/// Reads a file that is to be edited.
///
/// # Errors
/// Those of the host, and `too-large` and `not-text`.
pub fn open(path: &str) -> Result<Opened, Failure> {
    let entry = workspace::stat(path)?;
    if entry.size > FILE_BYTES {
        return Err(Failure::new(
            "too-large",
            format!(
                "file too large ({} bytes); at most {FILE_BYTES} bytes are edited.",
                entry.size
            ),
        ));
    }
    let bytes = workspace::read(path, FILE_BYTES)?;
    let document = Document::decode(&bytes).map_err(|NotText| {
        Failure::new(
            "not-text",
            format!("\"{path}\" is not text in UTF-8 or UTF-16."),
        )
    })?;
    Ok(Opened {
        path: entry.path,
        document,
        sha256: digest(&bytes),
    })
}

/// As much of a diff as a result shows, in bytes, with the line that says what is left out.
pub fn bounded(diff: &str, most: usize) -> String {
    if diff.len() <= most {
        return diff.to_owned();
    }
    let room = most.saturating_sub(LEFT_OUT);
    let end = diff[..diff.floor_char_boundary(room)]
        .rfind('\n')
        .map_or(0, |end| end + 1);
    let left = diff[end..].lines().count();
    format!("{}[{left} more lines of the diff]\n", &diff[..end])
}

/// What the line about lines that are left out may take, in bytes.
const LEFT_OUT: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_is_cut_at_a_line_and_says_so() {
        assert_eq!(bounded("a\nb\n", 4), "a\nb\n");
        let line = "é".repeat(30) + "\n";
        let diff = line.repeat(3);
        assert_eq!(bounded(&diff, diff.len()), diff);
        let cut = bounded(&diff, diff.len() - 1);
        assert_eq!(cut, format!("{line}{line}[1 more lines of the diff]\n"));
        assert_eq!(bounded("éééé", 3), "[1 more lines of the diff]\n");
        let long = "x\n".repeat(100_000);
        assert!(bounded(&long, 4096).len() <= 4096);
    }

    #[test]
    fn a_digest_is_hexadecimal() {
        assert!(digest(b"").starts_with("e3b0c442"));
    }
}
