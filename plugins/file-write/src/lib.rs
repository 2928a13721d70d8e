//! The tool `file_write`: a whole file, new or in the place of the old one.

use floe_editing::{Changed, FILE_BYTES, Rewritten, bounded};
use floe_tool::edits::Transaction;
use floe_tool::workspace::{self, EntryKind};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};

/// As much of the diff as a result shows, in bytes.
const DIFF: usize = 4096;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The file, relative to the Workspace. Folders that are not there are made.
    #[schemars(length(min = 1))]
    path: String,
    /// What it is to hold, whole.
    content: String,
    /// The SHA-256 digest (hexadecimal) that the file has now; another one is refused.
    expected_hash: Option<String>,
}

/// What was done, for programs.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
struct Written {
    /// created or overwrote.
    action: String,
    /// Bytes that the file has now.
    bytes: usize,
    /// What it kept though `content` did not say it.
    kept: Vec<String>,
    /// The file; none where it held that already.
    changes: Vec<Changed>,
}

struct FileWrite;

impl Tool for FileWrite {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            "file_write",
            "Writes a file of the Workspace whole: a new one, or in the place of the old one. At most 5 MiB. A file that is overwritten keeps its \
             encoding, and CRLF line endings where it has no others and the content has none. To change a part of a file use edit.",
        )
        .permission(Permission::Write)
        .timeout_ms(30_000)
        .max_output_length(16_000)
        .structured_output::<Written>()
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
        expected_hash,
    } = arguments;
    refuse_long(content.len() as u64)?;
    let explain = |failure: Failure| {
        let told = failure.explanation();
        told.replacen("Refusing to edit", "Refusing to write", 1)
    };
    let exists = is_there(path)?;
    let expected = expected_hash.as_deref().map(str::to_ascii_lowercase);
    let transaction = Transaction::begin().map_err(explain)?;
    let (bytes, kept) = if exists {
        let (bytes, kept) = in_the_manner_of(path, content);
        transaction
            .replace(path, &bytes, expected.as_deref())
            .map_err(explain)?;
        (bytes.len(), kept)
    } else if expected.is_some() {
        return Err(format!(
            "\"{path}\" does not exist, so it has no digest; leave expected_hash out."
        ));
    } else {
        transaction
            .create(path, content.as_bytes())
            .map_err(explain)?;
        (content.len(), Vec::new())
    };
    // Who made a file has just seen what is in it.
    let diff = match exists {
        true => transaction.preview().map_err(explain)?,
        false => String::new(),
    };
    let written = Written {
        action: if exists { "overwrote" } else { "created" }.to_owned(),
        bytes,
        kept,
        changes: floe_editing::commit(&transaction)?,
    };
    Ok(Outcome::text(told(path, &written, &diff)).with_structured(&written))
}

fn refuse_long(bytes: u64) -> Result<(), String> {
    if bytes > FILE_BYTES {
        return Err(format!(
            "Content too large: {bytes} bytes (limit: {FILE_BYTES} bytes)."
        ));
    }
    Ok(())
}

/// Whether there is a file to be overwritten.
fn is_there(path: &str) -> Result<bool, String> {
    match workspace::stat(path) {
        Ok(entry) if entry.kind == EntryKind::Directory => Err(format!(
            "Invalid path: missing file name: \"{path}\" is a directory; name a file in it."
        )),
        Ok(_) => Ok(true),
        Err(failure) if failure.code == "not-found" => Ok(false),
        Err(failure) => Err(failure.explanation()),
    }
}

/// The content as the file that is there holds text, and what that keeps of it. What is no text, or too long to be one, keeps nothing.
fn in_the_manner_of(path: &str, content: &str) -> (Vec<u8>, Vec<String>) {
    match floe_editing::open(path) {
        Ok(opened) => {
            let Rewritten { document, kept } = opened.document.rewritten(content);
            let kept = kept.into_iter().map(str::to_owned).collect();
            (document.encode(), kept)
        }
        Err(_) => (content.as_bytes().to_vec(), Vec::new()),
    }
}

fn told(path: &str, written: &Written, diff: &str) -> String {
    let kept = match written.kept.as_slice() {
        [] => String::new(),
        kept => format!("; kept {}", kept.join(" and ")),
    };
    let lines = written.changes.first().map_or_else(
        || "; it held that already".to_owned(),
        |change| format!("; +{} −{} lines", change.lines_added, change.lines_removed),
    );
    let text = format!(
        "Written {} bytes to {path} ({}{kept}{lines})",
        written.bytes, written.action
    );
    match diff {
        "" => text,
        diff => format!("{text}\n{}", bounded(diff, DIFF)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(action: &str, bytes: usize, kept: &[&str]) -> Written {
        Written {
            action: action.into(),
            bytes,
            kept: kept.iter().map(|kept| (*kept).to_owned()).collect(),
            changes: vec![Changed {
                path: "a".into(),
                action: "replaced".into(),
                lines_added: 2,
                lines_removed: 1,
                sha256: None,
            }],
        }
    }

    #[test]
    fn the_result_names_bytes_path_and_whether_the_file_is_new() {
        assert_eq!(
            told("a", &written("created", 8, &[]), ""),
            "Written 8 bytes to a (created; +2 −1 lines)"
        );
        let same = Written {
            changes: Vec::new(),
            ..written("overwrote", 0, &[])
        };
        assert_eq!(
            told("a", &same, ""),
            "Written 0 bytes to a (overwrote; it held that already)"
        );
    }

    #[test]
    fn the_result_shows_what_changed_and_what_was_kept() {
        let kept = ["the byte order mark", "CRLF line endings"];
        assert_eq!(
            told("a", &written("overwrote", 9, &kept), "-x\n+y\n"),
            "Written 9 bytes to a (overwrote; kept the byte order mark and CRLF line endings; +2 −1 lines)\n-x\n+y\n"
        );
        let long = "-x\n".repeat(5000);
        assert!(told("a", &written("overwrote", 9, &[]), &long).len() < DIFF + 100);
    }

    #[test]
    fn content_of_exactly_the_limit_passes_and_of_one_byte_more_does_not() {
        assert_eq!(refuse_long(FILE_BYTES), Ok(()));
        assert_eq!(
            refuse_long(FILE_BYTES + 1).unwrap_err(),
            "Content too large: 5242881 bytes (limit: 5242880 bytes)."
        );
    }
}
