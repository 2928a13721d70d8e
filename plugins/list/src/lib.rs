//! The tool `list`: the entries of a folder, a line each.
//!
//! It prints entries and nothing else; a count is in the note, and only where entries were left out.

mod listing;

use floe_tool::workspace::{self, EntryKind};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};
use listing::Line;

/// Entries that are gathered at most, so that a deep listing of a huge tree ends.
const GATHERED_MOST: usize = 100_000;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The folder, relative to the Workspace. Default: the Workspace.
    path: Option<String>,
    /// The number of the first entry to show, from 1 on. Default 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// How many levels to list, from 1 to 3. Default 1: only the folder itself.
    #[schemars(range(min = 1, max = 3))]
    depth: Option<u32>,
    /// Add the size of files in bytes as a third column. Default false.
    size: Option<bool>,
}

struct List;

impl Tool for List {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            "list",
            "Lists a folder of the Workspace, a line for each entry, sorted by name: the kind (dir, file, link or other), a tab, the name. Hidden \
             entries are included. At most 1000 entries a call; a note says with which offset to go on.",
        )
        .permission(Permission::ReadOnly)
        .timeout_ms(30_000)
        .max_output_length(32_000)
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        Ok(list(&arguments).unwrap_or_else(Outcome::failed))
    }
}

floe_tool::export!(List);

fn list(arguments: &Arguments) -> Result<Outcome, String> {
    let path = &*workspace::meant(arguments.path.as_deref().unwrap_or("."));
    let depth = arguments.depth.unwrap_or(1).clamp(1, 3);
    let mut lines = Vec::new();
    gather(path, "", depth, &mut lines).map_err(|failure| explain(path, &failure))?;
    let complete = lines.len() < GATHERED_MOST;
    let page = listing::page(
        lines,
        arguments.offset.unwrap_or(1),
        arguments.size.unwrap_or(false),
        complete,
    )?;
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

/// Adds the entries of one folder, and of the folders in it for as many levels as are left. Links are not followed.
fn gather(path: &str, prefix: &str, levels: u32, lines: &mut Vec<Line>) -> Result<(), Failure> {
    for entry in workspace::list_directory(path)? {
        if lines.len() == GATHERED_MOST {
            return Ok(());
        }
        let name = entry.path.rsplit('/').next().unwrap_or(&entry.path);
        let below = (levels > 1 && entry.kind == EntryKind::Directory)
            .then(|| (format!("{path}/{name}"), format!("{prefix}{name}/")));
        lines.push(Line {
            kind: entry.kind,
            name: format!("{prefix}{name}"),
            size: entry.size,
        });
        if let Some((path, prefix)) = below {
            // A folder that cannot be read is still an entry of the one above it.
            let _ = gather(&path, &prefix, levels - 1, lines);
        }
    }
    Ok(())
}

fn explain(path: &str, failure: &Failure) -> String {
    match failure.code.as_str() {
        "not-found" => format!("Failed to resolve path: {}", failure.explanation()),
        "not-directory" => format!(
            "Failed to read directory: \"{path}\" is not a directory. Use file_read for a file."
        ),
        "outside-workspace" => failure.explanation(),
        _ => format!("Failed to read directory: {}", failure.explanation()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_and_a_file_are_told_apart() {
        let missing = Failure::new("not-found", "There is no \"sorce\".")
            .with_hint("Did you mean \"source\"?");
        assert_eq!(
            explain("sorce", &missing),
            "Failed to resolve path: There is no \"sorce\". Did you mean \"source\"?"
        );
        assert_eq!(
            explain("a.txt", &Failure::new("not-directory", "x")),
            "Failed to read directory: \"a.txt\" is not a directory. Use file_read for a file."
        );
    }

    #[test]
    fn a_path_outside_keeps_the_words_of_the_host() {
        let failure = Failure::new(
            "outside-workspace",
            "Path \"../x\" is outside the Workspace.",
        );
        assert_eq!(
            explain("../x", &failure),
            "Path \"../x\" is outside the Workspace."
        );
    }
}
