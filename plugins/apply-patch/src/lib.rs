//! The tool `apply_patch`: many changes of the Workspace at once, all or none.
//!
//! Two forms: a list of edits, each as the tool `edit` takes it, and the text of a patch that adds, updates, deletes and moves files.

mod hunks;
mod patch;
mod plan;

use floe_editing::bounded;
use floe_tool::edits::{Change, Transaction};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};
use plan::{Desk, Work};

/// As much of the diff as a result shows, in bytes.
const DIFF: usize = 8192;

#[derive(Debug, Default, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The edits, made in this order, at most 50. Either this or `patch`.
    edits: Option<Vec<Edit>>,
    /// The file of the edits that name none.
    path: Option<String>,
    /// A patch: between `*** Begin Patch` and `*** End Patch`, sections `*** Add File: PATH` with lines that start with +, `*** Delete File: PATH`, and
    /// `*** Update File: PATH` (then perhaps `*** Move to: PATH`) with hunks that start with @@ and hold lines that start with a space, - or +.
    patch: Option<String>,
}

#[derive(Debug, Default, Clone, serde::Deserialize, schemars::JsonSchema)]
#[schemars(inline)]
struct Edit {
    /// The file, relative to the Workspace.
    path: Option<String>,
    /// The text to replace. Empty to make a file that is not there.
    old_string: String,
    /// The text that takes its place.
    new_string: String,
    /// Replace it everywhere in the file. Default false.
    replace_all: Option<bool>,
}

struct ApplyPatch;

impl Tool for ApplyPatch {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            "apply_patch",
            "Makes many changes of the Workspace's files at once, all or none, and shows what changed: a list of edits (path, old_string, \
             new_string), or a patch in the form *** Begin Patch … *** End Patch, which can also add, delete and move files.",
        )
        .permission(Permission::Write)
        .timeout_ms(30_000)
        .max_output_length(16_000)
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        Ok(apply(&arguments).unwrap_or_else(Outcome::failed))
    }
}

floe_tool::export!(ApplyPatch);

fn apply(arguments: &Arguments) -> Result<Outcome, String> {
    let mut desk = Desk::new(floe_editing::open);
    let count = match (&arguments.edits, &arguments.patch) {
        (Some(_), Some(_)) => return Err("Pass `edits` or `patch`, not both.".to_owned()),
        (None, None) => return Err("Missing 'edits' array (or a `patch`).".to_owned()),
        (Some(edits), None) => plan::edits(&mut desk, edits, arguments.path.as_deref())?,
        (None, Some(text)) => plan::patch(&mut desk, &patch::parse(text)?)?,
    };
    let explain = |failure: Failure| failure.explanation();
    let transaction = Transaction::begin().map_err(explain)?;
    for work in desk.works() {
        match work {
            Work::Create { path, bytes } => transaction.create(path, &bytes),
            Work::Replace {
                path,
                bytes,
                sha256,
            } => transaction.replace(path, &bytes, Some(sha256)),
            Work::Delete { path, sha256 } => transaction.delete(path, Some(sha256)),
            Work::Move { from, to, sha256 } => transaction.move_file(from, to, Some(sha256)),
            Work::Rewrite { path, bytes } => transaction.replace(path, &bytes, None),
        }
        .map_err(explain)?;
    }
    let diff = transaction.preview().map_err(explain)?;
    let changes = floe_editing::commit(&transaction)?;
    Ok(Outcome::text(told(count, &changes, desk.told(), &diff)))
}

fn told(count: usize, changes: &[Change], remarks: &[String], diff: &str) -> String {
    let mut text = format!("Applied {count} edit(s) across {} file(s)\n", changes.len());
    for change in changes {
        text.push_str(&format!(
            "{}: {} (+{} −{})\n",
            change.path, change.action, change.lines_added, change.lines_removed
        ));
    }
    for remark in remarks {
        text.push_str(remark);
        text.push('\n');
    }
    text + &bounded(diff, DIFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_counts_edits_and_names_each_file() {
        let change = |path: &str, action: &str| Change {
            path: path.into(),
            action: action.into(),
            lines_added: 2,
            lines_removed: 1,
            sha256: None,
        };
        let changes = [change("a", "replaced"), change("b", "created")];
        assert_eq!(
            told(
                3,
                &changes,
                &["edit[1]: matched ignoring indentation".into()],
                "-x\n"
            ),
            "Applied 3 edit(s) across 2 file(s)\na: replaced (+2 −1)\nb: created (+2 −1)\nedit[1]: matched ignoring indentation\n-x\n"
        );
    }
}
