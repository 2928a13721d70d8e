//! The tool `file_write`: a whole file, new or in the place of the old one.

use floe_editing::FILE_BYTES;
use floe_tool::edits::{Change, Transaction};
use floe_tool::workspace::{self, EntryKind};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The file, relative to the Workspace. Folders that are not there are made.
    #[schemars(length(min = 1))]
    path: String,
    /// What it is to hold, whole.
    content: String,
    /// The SHA-256 digest (hexadecimal) that the file has now; another one is refused.
    expected_sha256: Option<String>,
}

struct FileWrite;

impl Tool for FileWrite {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            "file_write",
            "Writes a file of the Workspace whole: a new one, or in the place of the old one. At most 5 MiB. To change a part of a file use edit.",
        )
        .permission(Permission::Write)
        .timeout_ms(30_000)
        .max_output_length(16_000)
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        Ok(write(&arguments).unwrap_or_else(Outcome::failed))
    }
}

floe_tool::export!(FileWrite);

fn write(arguments: &Arguments) -> Result<Outcome, String> {
    let Arguments {
        path,
        content,
        expected_sha256,
    } = arguments;
    if content.len() as u64 > FILE_BYTES {
        return Err(format!(
            "Content too large: {} bytes (limit: {FILE_BYTES} bytes).",
            content.len()
        ));
    }
    let exists = match workspace::stat(path) {
        Ok(entry) if entry.kind == EntryKind::Directory => {
            return Err(format!("\"{path}\" is a directory; name a file."));
        }
        Ok(_) => true,
        Err(failure) if failure.code == "not-found" => false,
        Err(failure) => return Err(failure.explanation()),
    };
    let explain = |failure: Failure| failure.explanation();
    let transaction = Transaction::begin().map_err(explain)?;
    if exists {
        transaction
            .replace(path, content.as_bytes(), expected_sha256.as_deref())
            .map_err(explain)?;
    } else if expected_sha256.is_some() {
        return Err(format!(
            "\"{path}\" does not exist, so it has no digest; leave expected_sha256 out."
        ));
    } else {
        transaction
            .create(path, content.as_bytes())
            .map_err(explain)?;
    }
    let changes = floe_editing::commit(&transaction)?;
    Ok(Outcome::text(told(path, content.len(), exists, &changes)))
}

fn told(path: &str, bytes: usize, existed: bool, changes: &[Change]) -> String {
    let lines = changes.first().map_or_else(
        || "; it held that already".to_owned(),
        |change| format!("; +{} −{} lines", change.lines_added, change.lines_removed),
    );
    let how = if existed { "overwrote" } else { "created" };
    // An empty new file is a change without lines.
    format!("Written {bytes} bytes to {path} ({how}{lines})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_names_bytes_path_and_whether_the_file_is_new() {
        let change = Change {
            path: "a".into(),
            action: "created".into(),
            lines_added: 2,
            lines_removed: 1,
            sha256: None,
        };
        assert_eq!(
            told("a", 8, false, std::slice::from_ref(&change)),
            "Written 8 bytes to a (created; +2 −1 lines)"
        );
        assert_eq!(
            told("a", 0, true, &[]),
            "Written 0 bytes to a (overwrote; it held that already)"
        );
    }
}
