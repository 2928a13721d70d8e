//! The tool `lsp`: what a language server knows of the code. The host runs the server; this checks the arguments, asks, and prints
//! places as `path:line:col: text`.

mod question;
mod render;

use floe_tool::language_server;
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};
use question::Kind;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// What to ask: definition, references, hover and completion for a place or a symbol, document_symbols and diagnostics for a file,
    /// workspace_symbols for the whole project.
    kind: Kind,
    /// A file of the Workspace. For workspace_symbols any file of the project, which tells the language.
    file: String,
    /// The language, such as rust, python or cpp, where the file's name does not tell it.
    language: Option<String>,
    /// The line, from 1. Together with character.
    #[schemars(range(min = 1))]
    line: Option<u32>,
    /// The character in the line, from 1.
    #[schemars(range(min = 1))]
    character: Option<u32>,
    /// Instead of line and character: a name that stands in the file, also as Outer.inner. For workspace_symbols: the name to look
    /// for, or a part of it.
    symbol: Option<String>,
    /// At most this many results: places up to 100, completions up to 50.
    #[schemars(range(min = 1, max = 100))]
    max_results: Option<u32>,
}

struct Lsp;

impl Tool for Lsp {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            "lsp",
            "Asks a language server about the code: where something is defined or used, what it is (hover), what could be written at a place \
             (completion), what a file or the project defines, and what is wrong with a file (diagnostics). Name a place by line and character, \
             both from 1, or a symbol by its name. Places come back as path:line:col: text. It knows the code as it is on disk. The first question \
             of a language starts its server, which can take a while.",
        )
        .permission(Permission::ReadOnly)
        .timeout_ms(30_000)
        .max_output_length(16_000)
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        let kind = arguments.kind;
        let query = match question::query(arguments) {
            Ok(query) => query,
            Err(message) => return Ok(Outcome::failed(message)),
        };
        Ok(match language_server::ask(&query) {
            Ok(answer) => render::outcome(kind, &answer),
            Err(failure) => Outcome::failed(failed(&failure)),
        })
    }
}

floe_tool::export!(Lsp);

/// A failure with its code where that says more than the words.
fn failed(failure: &Failure) -> String {
    match failure.code.as_str() {
        "unsupported" => format!("unsupported: {}", failure.explanation()),
        _ => failure.explanation(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_server_it_says_unsupported_and_what_was_looked_for() {
        let failure =
            Failure::new("unsupported", "Looked for `gopls` on PATH.").with_hint("Use grep.");
        assert_eq!(
            failed(&failure),
            "unsupported: Looked for `gopls` on PATH. Use grep."
        );
    }
}
