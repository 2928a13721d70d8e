//! The tool `apply_patch`: many changes of the Workspace at once, all or none.
//!
//! Two forms: a list of edits, each as the tool `edit` takes it, and the text of a patch that adds, updates, deletes and moves files.

mod hunks;
mod patch;
mod plan;

use floe_editing::{Changed, bounded};
use floe_tool::edits::Transaction;
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

/// What was done, for programs.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
struct Applied {
    /// Edits, or hunks and whole files of a patch.
    edits: usize,
    /// What was allowed to differ where a text was not there exactly.
    remarks: Vec<String>,
    /// Every file that changed.
    changes: Vec<Changed>,
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
        .structured_output::<Applied>()
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
    let works = desk.works();
    let faults: Vec<String> = works
        .iter()
        .filter_map(|work| {
            let fault = stage(&transaction, work).err()?;
            Some(format!("{}: {}", desk.named_by(work.path()), why(&fault)))
        })
        .collect();
    if !faults.is_empty() {
        return Err(faults.join("\n"));
    }
    let diff = transaction.preview().map_err(explain)?;
    let applied = Applied {
        edits: count,
        remarks: desk.told().to_vec(),
        changes: floe_editing::commit(&transaction)?,
    };
    let text = told(&applied, |path| desk.replacements(path), &diff);
    Ok(Outcome::text(text).with_structured(&applied))
}

fn stage(transaction: &Transaction, work: &Work<'_>) -> Result<(), Failure> {
    match work {
        Work::Create { path, bytes } => transaction.create(path, bytes),
        Work::Replace {
            path,
            bytes,
            sha256,
        } => transaction.replace(path, bytes, Some(sha256)),
        Work::Delete { path, sha256 } => transaction.delete(path, Some(sha256)),
        Work::Move { from, to, sha256 } => transaction.move_file(from, to, Some(sha256)),
        Work::Rewrite { path, bytes } => transaction.replace(path, bytes, None),
    }
}

/// Why a change could not be staged. What was read a moment ago and is another file now is most often one that has two names here.
fn why(fault: &Failure) -> String {
    let explanation = fault.explanation().replacen("Refusing", "refusing", 1);
    match fault.code.as_str() {
        "conflict" => format!(
            "{explanation} If another edit of this call names the same file through a link, use one name for both."
        ),
        _ => explanation,
    }
}

/// `replacements` knows in how many places a file has other text.
fn told(applied: &Applied, replacements: impl Fn(&str) -> Option<usize>, diff: &str) -> String {
    let changes = &applied.changes;
    let mut text = format!(
        "Applied {} edit(s) across {} file(s)\n",
        applied.edits,
        changes.len()
    );
    for change in changes {
        let what = match (change.action.as_str(), replacements(&change.path)) {
            ("replaced", Some(count)) => format!("{count} replacement(s)"),
            (action, _) => action.to_owned(),
        };
        text.push_str(&format!(
            "{}: {what} (+{} −{})\n",
            change.path, change.lines_added, change.lines_removed
        ));
    }
    for remark in &applied.remarks {
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
        let change = |path: &str, action: &str| Changed {
            path: path.into(),
            action: action.into(),
            lines_added: 2,
            lines_removed: 1,
            sha256: None,
        };
        let applied = Applied {
            edits: 3,
            remarks: vec!["edit[1]: matched ignoring indentation".into()],
            changes: vec![change("a", "replaced"), change("b", "created")],
        };
        assert_eq!(
            told(&applied, |path| (path == "a").then_some(2), "-x\n"),
            "Applied 3 edit(s) across 2 file(s)\na: 2 replacement(s) (+2 −1)\nb: created (+2 −1)\nedit[1]: matched ignoring indentation\n-x\n"
        );
    }
}
