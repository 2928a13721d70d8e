//! The tool `edit`: a part of a file, named by its text, gets another text.

use floe_editing::{Changed, Document, Replaced, bounded, replace};
use floe_tool::edits::Transaction;
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};

/// As much of the diff as a result shows, in bytes (spec/coding-tools.md 1.6).
const DIFF: usize = 4096;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The file, relative to the Workspace.
    #[schemars(length(min = 1))]
    path: String,
    /// The text to replace, as it stands in the file, with enough of what is around it to be there once.
    old_string: String,
    /// The text that takes its place.
    new_string: String,
    /// Replace it everywhere in the file. Default false.
    replace_all: Option<bool>,
}

/// What was done, for programs.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
struct Edited {
    /// How many places were replaced.
    replacements: usize,
    /// What was allowed to differ; none where the text was there exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    matched: Option<String>,
    /// The file; none where nothing changed.
    changes: Vec<Changed>,
}

struct Edit;

impl Tool for Edit {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            "edit",
            "Replaces a text in a file of the Workspace by another and shows the diff. The text must be there exactly once, unless replace_all is \
             true. Where it is not there exactly, it may differ in line endings, space at the ends of lines, indentation or typographic \
             punctuation, if that finds one place; the result says so.",
        )
        .permission(Permission::Write)
        .timeout_ms(30_000)
        .max_output_length(16_000)
        .structured_output::<Edited>()
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        Ok(edit(&arguments).unwrap_or_else(Outcome::failed))
    }
}

floe_tool::export!(Edit);

fn edit(arguments: &Arguments) -> Result<Outcome, String> {
    let path = &arguments.path;
    refuse_nothing(&arguments.old_string, &arguments.new_string)?;
    let explain = |failure: Failure| failure.explanation();
    let opened = floe_editing::open(path).map_err(explain)?;
    let replaced = find(&opened.document, arguments)?;
    let bytes = opened.document.with_text(replaced.text.clone()).encode();
    let transaction = Transaction::begin().map_err(explain)?;
    transaction
        .replace(path, &bytes, Some(&opened.sha256))
        .map_err(explain)?;
    let diff = transaction.preview().map_err(explain)?;
    let changes = floe_editing::commit(&transaction)?;
    Ok(
        Outcome::text(told(path, &replaced, &diff)).with_structured(&Edited {
            replacements: replaced.count,
            matched: replaced.step.told().map(str::to_owned),
            changes,
        }),
    )
}

fn refuse_nothing(old: &str, new: &str) -> Result<(), String> {
    if old.is_empty() {
        return Err("`old_string` must not be empty; use file_write to make a file.".to_owned());
    }
    if old == new {
        return Err("`old_string` and `new_string` are identical — nothing to do".to_owned());
    }
    Ok(())
}

fn find(document: &Document, arguments: &Arguments) -> Result<Replaced, String> {
    let all = arguments.replace_all.unwrap_or(false);
    replace(
        &document.text,
        &arguments.old_string,
        &arguments.new_string,
        all,
    )
    .map_err(|fault| {
        let remedy = "pass `replace_all: true` or expand `old_string` so it is unique";
        fault.told(&arguments.path, remedy)
    })
}

fn told(path: &str, replaced: &Replaced, diff: &str) -> String {
    let how = replaced
        .step
        .told()
        .map_or_else(String::new, |how| format!(" ({how})"));
    format!(
        "Edited {path}: {} replacement(s){how}\n{}",
        replaced.count,
        bounded(diff, DIFF)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, old: &str, new: &str, all: bool) -> Result<Replaced, String> {
        let arguments = Arguments {
            path: "f".into(),
            old_string: old.into(),
            new_string: new.into(),
            replace_all: Some(all),
        };
        find(&Document::decode(text.as_bytes()).unwrap(), &arguments)
    }

    #[test]
    fn an_empty_and_an_identical_text_are_refused() {
        assert!(
            refuse_nothing("", "x")
                .unwrap_err()
                .contains("must not be empty")
        );
        assert!(refuse_nothing("x", "x").unwrap_err().contains("identical"));
    }

    #[test]
    fn what_is_not_there_once_says_how_often_and_where() {
        assert_eq!(
            found("a\nb\na\na\n", "a", "x", false).unwrap_err(),
            "`old_string` matches 3 times in f; pass `replace_all: true` or expand `old_string` so it is unique (lines 1, 3, 4)"
        );
        let nowhere = found("", "a", "x", false).unwrap_err();
        assert!(
            nowhere.starts_with("`old_string` not found in f; "),
            "{nowhere}"
        );
        let near = found("let total = 1;\n", "let total = 2;", "x", false).unwrap_err();
        assert!(
            near.contains("most similar text starts at line 1"),
            "{near}"
        );
    }

    #[test]
    fn the_result_counts_and_says_what_was_allowed_to_differ() {
        let replaced = found("a  \nb", "a\nb", "x", false).unwrap();
        assert_eq!(
            told("f", &replaced, "-a\n"),
            "Edited f: 1 replacement(s) (matched ignoring space at the ends of lines)\n-a\n"
        );
    }
}
