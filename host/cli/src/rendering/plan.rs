//! What to type when a plan waits for a decision.

use clap::ValueEnum;
use floe_protocol::SessionId;

use crate::arguments::Run;
use crate::terminal::{Keep, visible};

/// The lines for standard error: a command for each decision, with what the run was told and the next one has to be told again.
pub(crate) fn plan_waits(id: &SessionId, run: &Run) -> String {
    let again = format!("floe run --resume {id}{}", options(run));
    format!(
        "\nThe plan waits for your decision; nothing was changed.\n  {again} --mode build      carries it out\n  \
         {again} --revise TEXT     sends it back\n  {again} --reject          rejects it"
    )
}

/// The options without which the next run would have another Workspace, model or tools, or would hold a tool back less. What was
/// granted for one run is granted for that one.
fn options(run: &Run) -> String {
    let session = &run.session;
    let workspace = session.workspace.as_ref();
    let given = [
        (
            "--workspace",
            workspace.map(|path| path.display().to_string()),
        ),
        ("--model", run.model.clone()),
        ("--toolset", name(session.toolset)),
        (
            "--max-permission",
            session.max_permission.map(|level| level.to_string()),
        ),
        ("--approve", name(session.approve)),
    ];
    given
        .into_iter()
        .filter_map(|(flag, value)| Some(format!(" {flag} {}", quoted(&value?))))
        .collect()
}

/// A value as it is written on the command line.
fn name(value: Option<impl ValueEnum>) -> Option<String> {
    Some(value?.to_possible_value()?.get_name().to_owned())
}

/// A word as a shell takes it for that word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    let word = visible(word, Keep::Nothing);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn after(line: &[&str]) -> String {
        let line = ["floe", "run", "-m", "go"].iter().chain(line);
        let Command::Run(run) = Arguments::try_parse_from(line).unwrap().command else {
            panic!("no run");
        };
        options(&run)
    }

    #[test]
    fn a_decision_on_a_plan_is_printed_with_the_options_that_it_needs_again() {
        assert_eq!(after(&["--mode", "plan"]), "");
        assert_eq!(
            after(&[
                "--workspace",
                "/a b/it's",
                "--model",
                "openai:x",
                "--toolset",
                "coding"
            ]),
            r" --workspace '/a b/it'\''s' --model openai:x --toolset coding"
        );
        assert_eq!(
            after(&["--approve", "always-ask", "--max-permission", "write"]),
            " --max-permission write --approve always-ask"
        );
    }

    #[test]
    fn what_was_granted_for_one_run_is_not_offered_again() {
        assert_eq!(
            after(&["--allow-host", "a.example", "--unsafe-no-sandbox"]),
            ""
        );
    }
}
