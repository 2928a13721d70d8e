//! The tool `file_read`: a text file of the Workspace, whole where it is small, else in pages of lines.
//!
//! What it prints is the file and nothing else; where a page starts and ends is in the note.

mod content;
mod page;
mod utf16;

use content::Encoding;
use floe_tool::workspace::{self, EntryKind};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};
use page::{LINES_DEFAULT, Page, Pager};
use utf16::Decoder;

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
    let path = &*workspace::meant(&arguments.path);
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
    let mut pager = Pager::new(
        arguments.offset.unwrap_or(1),
        arguments.limit.unwrap_or(LINES_DEFAULT),
        arguments.line_numbers.unwrap_or(false),
    );
    let encoding = feed(path, entry.size, arguments, &mut pager)?;
    let page = pager.finish().map_err(|reason| unreadable(path, &reason))?;
    Ok(shown(page, encoding))
}

/// Gives the file to the pager as UTF-8, and says what it is written in.
fn feed(
    path: &str,
    size: u64,
    arguments: &Arguments,
    pager: &mut Pager,
) -> Result<Encoding, String> {
    let mut encoding = Encoding::Utf8;
    let mut decoder = None;
    let mut seen = 0;
    for piece in workspace::pieces(path) {
        let piece = piece.map_err(|failure| explain(path, &failure))?;
        let mut bytes = piece.as_slice();
        if seen == 0 {
            encoding = content::encoding(bytes)
                .map_err(|reason| unreadable(path, &format!("{reason} ({size} bytes).")))?;
            if let Encoding::Utf16(order) = encoding {
                decoder = Some(Decoder::new(order));
                bytes = &bytes[2..];
            } else if arguments.line_numbers == Some(true) || arguments.asks_for_a_part() {
                bytes = content::without_byte_order_mark(bytes);
            }
        }
        seen += piece.len() as u64;
        match &mut decoder {
            Some(decoder) => {
                let text = decoder.feed(bytes);
                pager.feed(text.map_err(|reason| unreadable(path, reason))?.as_bytes());
            }
            None => pager.feed(bytes),
        }
        if pager.is_full() && seen >= COUNTED_MOST {
            pager.stop_counting();
            return Ok(encoding);
        }
    }
    match decoder.map_or(Ok(()), Decoder::finish) {
        Ok(()) => Ok(encoding),
        Err(reason) => Err(unreadable(path, reason)),
    }
}

/// A file that is shown whole is shown as it is, its byte order mark included; a page of it is text alone.
fn shown(page: Page, encoding: Encoding) -> Outcome {
    let Page { mut text, note } = page;
    let is_utf16 = encoding != Encoding::Utf8;
    if note.is_some() && text.starts_with('\u{feff}') {
        text.remove(0);
    }
    let outcome = if text.is_empty() {
        Outcome::completed()
    } else {
        Outcome::text(text)
    };
    let translated = is_utf16.then(|| "[UTF-16, shown as UTF-8]".to_owned());
    let notes: Vec<String> = note.into_iter().chain(translated).collect();
    match notes.is_empty() {
        true => outcome,
        false => outcome.with_note(notes.join("\n")),
    }
}

fn unreadable(path: &str, reason: &str) -> String {
    format!("Failed to read file: \"{path}\" {reason}")
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
