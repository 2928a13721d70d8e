//! The tool `file_read`: a text file of the Workspace, whole where it is small, else in pages of lines.
//!
//! What it prints is the file and nothing else; where a page starts and ends is in the note.

mod content;
mod page;

use floe_tool::workspace::{self, EntryKind};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};
use page::{LINES_DEFAULT, Pager};

const NAME: &str = "file_read";
/// The largest file that may be asked for without saying where to start.
const WHOLE_MOST: u64 = 10 * 1024 * 1024;
/// After a page, lines are counted up to here, so that a call on a huge file ends in time.
const COUNTED_MOST: u64 = 512 * 1024 * 1024;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The path of the file, relative to the Workspace.
    #[schemars(length(min = 1))]
    path: String,
    /// The number of the first line to read, from 1 on. Default 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// How many lines to read. Default 2000.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// Put the line number and a tab before each line. Default false.
    line_numbers: Option<bool>,
}

impl Arguments {
    fn asks_for_a_part(&self) -> bool {
        self.offset.is_some() || self.limit.is_some()
    }
}

struct FileRead;

impl Tool for FileRead {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            NAME,
            "Reads a text file of the Workspace. A small file comes back as it is. Of a larger one you get up to 2000 lines or 64 KiB from offset on, \
             and a note that says which lines they are and with which offset to go on; lines over 2000 characters are cut. Use line_numbers \
             to refer to lines, and leave it out to copy text for an edit.",
        )
        .permission(Permission::ReadOnly)
        .timeout_ms(30_000)
        .max_output_length(66_000)
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        if arguments.path.is_empty() {
            return Ok(Outcome::missing_argument("path", NAME));
        }
        Ok(read(&arguments).unwrap_or_else(Outcome::failed))
    }
}

floe_tool::export!(FileRead);

fn read(arguments: &Arguments) -> Result<Outcome, String> {
    let path = arguments.path.as_str();
    let entry = workspace::stat(path).map_err(|failure| explain(path, &failure))?;
    match entry.kind {
        EntryKind::File => {}
        EntryKind::Directory => return Err(is_directory(path)),
        EntryKind::Symlink | EntryKind::Other => {
            return Err(format!(
                "Failed to read file: \"{path}\" is not a regular file."
            ));
        }
    }
    if entry.size > WHOLE_MOST && !arguments.asks_for_a_part() {
        return Err(format!(
            "File too large: {} bytes (limit: {WHOLE_MOST} bytes). Read it in pages: pass offset and limit, in lines.",
            entry.size
        ));
    }
    let numbers = arguments.line_numbers.unwrap_or(false);
    let mut pager = Pager::new(
        arguments.offset.unwrap_or(1),
        arguments.limit.unwrap_or(LINES_DEFAULT),
        numbers,
    );
    let mut seen = 0;
    for piece in workspace::pieces(path) {
        let piece = piece.map_err(|failure| explain(path, &failure))?;
        let mut bytes = piece.as_slice();
        if seen == 0 {
            content::check(bytes).map_err(|reason| {
                format!(
                    "Failed to read file: \"{path}\" {reason} ({} bytes).",
                    entry.size
                )
            })?;
            if numbers || arguments.asks_for_a_part() {
                bytes = content::without_byte_order_mark(bytes);
            }
        }
        pager.feed(bytes);
        seen += piece.len() as u64;
        if pager.is_full() && seen >= COUNTED_MOST {
            pager.stop_counting();
            break;
        }
    }
    let page = pager
        .finish()
        .map_err(|reason| format!("Failed to read file: \"{path}\" {reason}"))?;
    let outcome = if page.text.is_empty() {
        Outcome::completed()
    } else {
        Outcome::text(page.text)
    };
    Ok(match page.note {
        Some(note) => outcome.with_note(note),
        None => outcome,
    })
}

fn is_directory(path: &str) -> String {
    format!("Failed to read file: \"{path}\" is a directory. Use list to see what is in it.")
}

fn explain(path: &str, failure: &Failure) -> String {
    match failure.code.as_str() {
        "not-found" => format!("Failed to resolve file path: {}", failure.explanation()),
        "is-directory" => is_directory(path),
        "outside-workspace" => failure.explanation(),
        _ => format!("Failed to read file: {}", failure.explanation()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_start_with_their_class_and_say_what_to_do() {
        let missing =
            Failure::new("not-found", "There is no \"a\".").with_hint("Did you mean \"b\"?");
        assert_eq!(
            explain("a", &missing),
            "Failed to resolve file path: There is no \"a\". Did you mean \"b\"?"
        );
        assert_eq!(
            explain("src", &Failure::new("is-directory", "x")),
            "Failed to read file: \"src\" is a directory. Use list to see what is in it."
        );
        let outside = Failure::new(
            "outside-workspace",
            "Path \"../a\" is outside the Workspace.",
        );
        assert_eq!(
            explain("../a", &outside),
            "Path \"../a\" is outside the Workspace."
        );
        assert_eq!(
            explain("a", &Failure::new("io", "The disk is gone.")),
            "Failed to read file: The disk is gone."
        );
    }
}
