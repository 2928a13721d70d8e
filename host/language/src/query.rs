//! One question to a language server and its answer, as plain data.

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Where something is defined.
    Definition,
    /// Where something is used, its definition included.
    References,
    /// What is known of something.
    Hover,
    /// What could be written at a place.
    Completion,
    /// What a file defines.
    DocumentSymbols,
    /// What the project defines, by a part of its name.
    WorkspaceSymbols,
    /// What is wrong with a file.
    Diagnostics,
}

impl Kind {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Kind; 7] = [
        Kind::Definition,
        Kind::References,
        Kind::Hover,
        Kind::Completion,
        Kind::DocumentSymbols,
        Kind::WorkspaceSymbols,
        Kind::Diagnostics,
    ];

    /// The name in the contract with tools.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Definition => "definition",
            Kind::References => "references",
            Kind::Hover => "hover",
            Kind::Completion => "completion",
            Kind::DocumentSymbols => "document-symbols",
            Kind::WorkspaceSymbols => "workspace-symbols",
            Kind::Diagnostics => "diagnostics",
        }
    }

    /// The kind that has this name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// What the server is asked, where one request answers the question.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Kind::Definition => "textDocument/definition",
            Kind::References => "textDocument/references",
            Kind::Hover => "textDocument/hover",
            Kind::Completion => "textDocument/completion",
            Kind::DocumentSymbols => "textDocument/documentSymbol",
            Kind::WorkspaceSymbols => "workspace/symbol",
            Kind::Diagnostics => "textDocument/diagnostic",
        }
    }

    /// By what a server says that it can answer.
    pub(crate) fn provider(self) -> &'static str {
        match self {
            Kind::Definition => "definitionProvider",
            Kind::References => "referencesProvider",
            Kind::Hover => "hoverProvider",
            Kind::Completion => "completionProvider",
            Kind::DocumentSymbols => "documentSymbolProvider",
            Kind::WorkspaceSymbols => "workspaceSymbolProvider",
            Kind::Diagnostics => "diagnosticProvider",
        }
    }
}

/// A place in a file, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// In Unicode scalar values.
    pub character: u32,
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// What stands at a place.
    At(Position),
    /// What is called so in the file; for symbols of the whole project, a part of the name.
    Named(String),
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// What is asked for.
    pub kind: Kind,
    /// The language as the protocol names it; where none, told from the file's name.
    pub language: Option<String>,
    /// As a tool names files of the Workspace.
    pub file: String,
    /// None for questions about the whole file.
    pub target: Option<Target>,
    /// None for as many as there may be of this kind.
    pub max_results: Option<u32>,
}

/// A range in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// Relative to the Workspace. A file elsewhere is its name alone, with the words `(outside the Workspace)`.
    pub path: String,
    /// Its first character.
    pub start: Position,
    /// Behind its last character.
    pub end: Position,
    /// The line, or what is there.
    pub text: Option<String>,
}

/// What the server said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Places, sorted.
    pub locations: Vec<Location>,
    /// Text, such as that of a hover. Beside places, what is to be known of them: that some were left out, that the server
    /// is not done.
    pub text: Option<String>,
}
