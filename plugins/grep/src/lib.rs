//! The tool `grep`: the lines of the Workspace's files that match a pattern.
//!
//! It prints matches and nothing else; what was cut or passed over is counted in the note, and only then is there one.

mod literals;
mod output;
mod render;
mod search;
mod tally;

use std::time::Duration;

use floe_tool::workspace::{self, Walk, WalkOptions};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool, cancellation};
use output::{Progress, Search};
use search::{Pattern, Syntax};

/// Matches of one call where nothing else is asked for, and at most (spec/coding-tools.md, appendix A, as all limits here).
const MATCHES: u32 = 200;
const MATCHES_MOST: u32 = 5000;
/// Larger files are passed over, and counted.
const FILE_BYTES: u64 = 5 * 1024 * 1024;
const FILES: u64 = 50_000;
const FILES_MOST: u64 = 10_000_000;
const BYTES: u64 = 64 * 1024 * 1024;
const BYTES_MOST: u64 = 64 * 1024 * 1024 * 1024;
/// Compiling a pattern takes memory, for some several thousand times its length.
const PATTERN_BYTES: usize = 4 * 1024;
const FIXED_BYTES: usize = 32 * 1024;
/// So much of a text is looked for in the host; what holds the whole holds this.
const SIEVE_BYTES: usize = 256;
/// What the regex library says of a pattern repeats it; so much of that is shown.
const EXPLANATION_BYTES: usize = 1000;
/// A search ends by itself when so much of the time that it has is over, with what it has found.
const PART_OF_TIME: f64 = 2.0 / 3.0;
/// What one host call hands over, in bytes.
const BATCH: u32 = 256 * 1024;

#[derive(Debug, Default, serde::Deserialize, schemars::JsonSchema)]
#[schemars(inline)]
struct Arguments {
    /// A regular expression in Rust's syntax, matched line by line.
    #[schemars(length(min = 1))]
    pattern: String,
    /// The folder or file to search, relative to the Workspace. Default: the Workspace.
    path: Option<String>,
    /// How many matches to show at most, up to 5000. Default 200. Of `files` and `count`: how many files.
    #[schemars(range(min = 1, max = 5000))]
    max_matches: Option<u32>,
    /// How many matches to pass over first, to go on where the call before stopped. Default 0.
    offset: Option<u64>,
    /// Ignore the case of letters. Default false.
    case_insensitive: Option<bool>,
    /// The pattern is plain text. Default false.
    fixed_strings: Option<bool>,
    /// A match may go over several lines, and `.` matches their ends too. Default false.
    multiline: Option<bool>,
    /// content: path:line:text of each match; files: the paths of files with one; count: path:number of matching lines. Default content.
    output_mode: Option<Mode>,
    /// Lines to show before and after each match, up to 20. Default 0.
    #[schemars(range(max = 20))]
    context: Option<u32>,
    /// Lines to show before each match.
    #[schemars(range(max = 20))]
    before: Option<u32>,
    /// Lines to show after each match.
    #[schemars(range(max = 20))]
    after: Option<u32>,
    /// Search only files whose paths match this glob, such as *.{rs,toml} or src/**.
    include: Option<String>,
    /// Leave out paths that match this glob.
    exclude: Option<String>,
    /// Look into what .gitignore, .ignore and the usual build folders leave out. Default false.
    no_ignore: Option<bool>,
    /// Stop after so many files. Default 50000.
    max_files: Option<u64>,
    /// Stop after so many bytes. Default 67108864.
    max_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Mode {
    #[default]
    Content,
    Files,
    Count,
}

struct Grep;

impl Tool for Grep {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            "grep",
            "Searches the text files of the Workspace for a regular expression; a line for each match: path:line:text. Hidden files are included; \
             what .gitignore and .ignore name, and folders such as .git, node_modules and target, are not. A note counts what was cut or passed \
             over.",
        )
        .permission(Permission::ReadOnly)
        .timeout_ms(30_000)
        .max_output_length(32_000)
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        Ok(grep(&arguments).unwrap_or_else(Outcome::failed))
    }
}

floe_tool::export!(Grep);

fn grep(arguments: &Arguments) -> Result<Outcome, String> {
    let syntax = Syntax {
        case_insensitive: arguments.case_insensitive.unwrap_or(false),
        fixed_strings: arguments.fixed_strings.unwrap_or(false),
        multi_line: arguments.multiline.unwrap_or(false),
    };
    let most = match syntax.fixed_strings {
        true => FIXED_BYTES,
        false => PATTERN_BYTES,
    };
    if arguments.pattern.len() > most {
        return Err(format!(
            "Invalid regex: the pattern has {} bytes, and at most {most} are taken.",
            arguments.pattern.len()
        ));
    }
    let pattern = Pattern::new(&arguments.pattern, syntax)
        .map_err(|error| format!("Invalid regex: {}", last_part(&error)))?;
    let walk = Walk::open(&options(arguments, syntax))
        .map_err(|failure| as_given(arguments, explain(&failure)))?;
    let context = arguments.context.unwrap_or(0);
    let mut search = Search::new(
        &pattern,
        output::Wanted {
            mode: arguments.output_mode.unwrap_or_default(),
            skip: arguments.offset.unwrap_or(0),
            most: u64::from(
                arguments
                    .max_matches
                    .unwrap_or(MATCHES)
                    .clamp(1, MATCHES_MOST),
            ),
            before: arguments.before.unwrap_or(context) as usize,
            after: arguments.after.unwrap_or(context) as usize,
            files: arguments.max_files.unwrap_or(FILES).clamp(1, FILES_MOST),
            bytes: arguments.max_bytes.unwrap_or(BYTES).clamp(1, BYTES_MOST),
        },
    );
    let time = cancellation::remaining();
    loop {
        let batch = walk
            .next_files(BATCH)
            .map_err(|failure| explain(&failure))?;
        if batch.files.is_empty() || cancellation::is_cancelled() {
            break;
        }
        let progress = search.add(&batch)?;
        let room = match search.take_text() {
            text if text.is_empty() => u32::MAX,
            text => floe_tool::output::write(&text),
        };
        // Nobody would see more.
        if progress == Progress::Done || room == 0 {
            break;
        }
        if let Some(seconds) = used_up(time, cancellation::remaining()) {
            search.stop(format!("[stopped after {seconds} s]"));
            break;
        }
    }
    Ok(match search.note() {
        Some(note) => Outcome::completed().with_note(note),
        None => Outcome::completed(),
    })
}

/// A long explanation without the pattern that it begins with.
fn last_part(explanation: &str) -> &str {
    if explanation.len() <= EXPLANATION_BYTES {
        return explanation;
    }
    let error = explanation.rfind("error: ").unwrap_or(0);
    &explanation[explanation.ceil_char_boundary(error.max(explanation.len() - EXPLANATION_BYTES))..]
}

/// The seconds that have gone by, where most of the time of a call is over.
fn used_up(at_first: Option<Duration>, now: Option<Duration>) -> Option<u64> {
    let (at_first, now) = (at_first?, now?);
    let used = at_first.saturating_sub(now);
    (used > at_first.mul_f64(PART_OF_TIME)).then_some(used.as_secs())
}

fn options(arguments: &Arguments, syntax: Syntax) -> WalkOptions {
    let containing = if syntax.fixed_strings && !syntax.case_insensitive {
        let pattern = arguments.pattern.as_bytes();
        vec![pattern[..pattern.len().min(SIEVE_BYTES)].to_vec()]
    } else if syntax.fixed_strings {
        Vec::new()
    } else {
        literals::required(
            &arguments.pattern,
            syntax.case_insensitive,
            syntax.multi_line,
        )
    };
    let globs = |glob: &Option<String>| glob.iter().map(|glob| anywhere(glob)).collect();
    WalkOptions {
        root: workspace::meant(arguments.path.as_deref().unwrap_or(".")).into_owned(),
        include_globs: globs(&arguments.include),
        exclude_globs: globs(&arguments.exclude),
        respect_ignore: !arguments.no_ignore.unwrap_or(false),
        hidden: true,
        max_depth: None,
        max_file_size: Some(FILE_BYTES),
        containing,
    }
}

/// A glob without a folder means a name at any depth.
fn anywhere(glob: &str) -> String {
    let glob = glob.strip_prefix("./").unwrap_or(glob);
    if glob.trim_end_matches('/').contains('/') {
        glob.to_owned()
    } else {
        format!("**/{}", glob.trim_end_matches('/'))
    }
}

/// The globs in a message as they were given.
fn as_given(arguments: &Arguments, message: String) -> String {
    let globs = [&arguments.include, &arguments.exclude];
    globs.into_iter().flatten().fold(message, |message, glob| {
        message.replace(&format!("\"{}\"", anywhere(glob)), &format!("\"{glob}\""))
    })
}

fn explain(failure: &Failure) -> String {
    match failure.code.as_str() {
        "not-found" => format!("Failed to resolve path: {}", failure.explanation()),
        _ => failure.explanation(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_without_a_folder_means_a_name_at_any_depth() {
        assert_eq!(anywhere("*.rs"), "**/*.rs");
        assert_eq!(anywhere("vendor/"), "**/vendor");
        assert_eq!(anywhere("./src/*.rs"), "src/*.rs");
        assert_eq!(anywhere("/a"), "/a");
    }

    #[test]
    fn a_glob_that_cannot_be_read_is_named_as_it_was_given() {
        let arguments = Arguments {
            include: Some("[a".into()),
            ..Arguments::default()
        };
        let message = "Invalid glob pattern \"**/[a\": unclosed character class.".to_owned();
        assert_eq!(
            as_given(&arguments, message),
            "Invalid glob pattern \"[a\": unclosed character class."
        );
    }

    #[test]
    fn a_search_ends_by_itself_before_its_time_is_over() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(used_up(seconds(30), seconds(11)), None);
        assert_eq!(used_up(seconds(30), seconds(9)), Some(21));
        assert_eq!(used_up(None, None), None);
    }

    #[test]
    fn a_fixed_string_is_what_the_host_looks_for() {
        let arguments = Arguments {
            pattern: "a.c(".into(),
            ..Arguments::default()
        };
        let fixed = Syntax {
            fixed_strings: true,
            ..Syntax::default()
        };
        assert_eq!(options(&arguments, fixed).containing, [b"a.c(".to_vec()]);
        let insensitive = Syntax {
            case_insensitive: true,
            ..fixed
        };
        assert!(options(&arguments, insensitive).containing.is_empty());
    }
}
