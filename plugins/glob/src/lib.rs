//! The tool `glob`: the files of the Workspace whose paths match a pattern, newest first.
//!
//! It prints paths and nothing else; how many there are is in the note, and only where some were left out.

mod newest;
mod pattern;

use floe_tool::workspace::{self, Entry, EntryKind, Walk, WalkOptions};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};
use newest::Newest;

/// Paths of one call where nothing else is asked for.
const RESULTS: u32 = 500;
/// Paths of one call at most.
const RESULTS_MOST: u32 = 5000;
/// No path is as long as a pattern of so many bytes without its alternatives.
const PATTERN_BYTES: usize = 16 * 1024;
/// Entries of one host call.
const BATCH: u32 = 1000;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The pattern, over the path below `path`: `*` and `?` stay within one folder, `**` crosses folders, `{a,b}` is either, `[ab]` is one
    /// of these. `*.rs` is the folder itself; `**/*.rs` is everything below it.
    #[schemars(length(min = 1))]
    pattern: String,
    /// The folder to look in, relative to the Workspace. Default: the Workspace.
    path: Option<String>,
    /// How many paths to show at most, up to 5000. Default 500.
    #[schemars(range(min = 1, max = 5000))]
    max_results: Option<u32>,
    /// Ignore the case of letters. Default false.
    case_insensitive: Option<bool>,
    /// Show folders too. Default false: files only, and links to files.
    include_dirs: Option<bool>,
    /// Look into what .gitignore, .ignore and the usual build folders leave out. Default false.
    no_ignore: Option<bool>,
}

struct Glob;

impl Tool for Glob {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            "glob",
            "Finds files of the Workspace whose paths match a pattern such as src/**/*.rs, newest first, a path on each line. Hidden files are \
             included; what .gitignore and .ignore name, and folders such as .git, node_modules and target, are not. A note says where there are \
             more than are shown.",
        )
        .permission(Permission::ReadOnly)
        .timeout_ms(30_000)
        .max_output_length(32_000)
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        Ok(glob(&arguments).unwrap_or_else(Outcome::failed))
    }
}

floe_tool::export!(Glob);

fn glob(arguments: &Arguments) -> Result<Outcome, String> {
    let given = arguments.path.as_deref().unwrap_or(".");
    let root = workspace::meant(given);
    let start = workspace::stat(&root).map_err(|failure| explain(&failure))?;
    if start.kind != EntryKind::Directory {
        return Err(format!(
            "\"{given}\" is not a directory. Name the folder to look in as path, or use file_read for a file."
        ));
    }
    if arguments.pattern.len() > PATTERN_BYTES {
        return Err(format!(
            "Invalid glob pattern: it has {} bytes, and at most {PATTERN_BYTES} are taken.",
            arguments.pattern.len()
        ));
    }
    let pattern = pattern::below(&arguments.pattern, &root);
    let pattern = match arguments.case_insensitive {
        Some(true) => pattern::without_case(pattern),
        _ => pattern.to_owned(),
    };
    let walk = Walk::open(&WalkOptions {
        root: root.into_owned(),
        include_globs: vec![pattern],
        exclude_globs: Vec::new(),
        respect_ignore: !arguments.no_ignore.unwrap_or(false),
        hidden: true,
        max_depth: None,
        max_file_size: None,
        containing: Vec::new(),
    })
    .map_err(|failure| explain(&failure))?;
    let with_folders = arguments.include_dirs.unwrap_or(false);
    let mut newest = Newest::new(
        arguments
            .max_results
            .unwrap_or(RESULTS)
            .clamp(1, RESULTS_MOST) as usize,
    );
    loop {
        let entries = walk
            .next_entries(BATCH)
            .map_err(|failure| explain(&failure))?;
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            let Some((kind, modified_ms)) = behind(&entry) else {
                continue;
            };
            if kind == EntryKind::File || with_folders && kind == EntryKind::Directory {
                newest.add(modified_ms.unwrap_or(0), entry.path);
            }
        }
    }
    let (text, note) = newest.render();
    let outcome = if text.is_empty() {
        Outcome::completed()
    } else {
        Outcome::text(text)
    };
    Ok(match note {
        Some(note) => outcome.with_note(note),
        None => outcome,
    })
}

/// What an entry is and when it was changed, links followed; none for a link that leads nowhere or out of the Workspace. What is named here
/// can be opened.
fn behind(entry: &Entry) -> Option<(EntryKind, Option<i64>)> {
    if entry.kind != EntryKind::Symlink {
        return Some((entry.kind, entry.modified_ms));
    }
    let target = workspace::stat(&entry.path).ok()?;
    Some((target.kind, target.modified_ms))
}

fn explain(failure: &Failure) -> String {
    match failure.code.as_str() {
        "not-found" => format!("Path is not accessible: {}", failure.explanation()),
        _ => failure.explanation(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_keeps_the_hint_of_the_host() {
        let missing = Failure::new("not-found", "\"sorce\" does not exist.")
            .with_hint("Did you mean \"source\"?");
        assert_eq!(
            explain(&missing),
            "Path is not accessible: \"sorce\" does not exist. Did you mean \"source\"?"
        );
        let invalid = Failure::new("invalid", "Invalid glob pattern \"[\": unclosed.");
        assert_eq!(explain(&invalid), "Invalid glob pattern \"[\": unclosed.");
    }
}
