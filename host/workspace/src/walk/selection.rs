//! What a walk's options select, compiled once.

use std::path::Path;

use aho_corasick::{AhoCorasick, MatchKind};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::WalkOptions;
use crate::WorkspaceError;

/// Bytes of all globs, and of all literals: compiling takes a multiple in time and memory, and a walk's options may be anyone's.
const MOST_GLOBS: usize = 64 * 1024;
const MOST_LITERALS: usize = 16 * 1024;

/// The compiled globs and literals of a walk.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    include: Option<GlobSet>,
    exclude: GlobSet,
    containing: Option<AhoCorasick>,
}

impl Selection {
    pub(super) fn new(options: &WalkOptions) -> Result<Selection, WorkspaceError> {
        let globs = options
            .include
            .iter()
            .chain(&options.exclude)
            .map(String::len);
        bounded("globs", globs.sum(), MOST_GLOBS)?;
        let literals = options.containing.iter().map(Vec::len);
        bounded("containing", literals.sum(), MOST_LITERALS)?;
        let include = match options.include.as_slice() {
            [] => None,
            globs => Some(compile(globs)?),
        };
        let containing = match options.containing.as_slice() {
            [] => None,
            literals => Some(automaton(literals)?),
        };
        Ok(Selection {
            include,
            exclude: compile(&options.exclude)?,
            containing,
        })
    }

    /// Whether a file or link at this path below the start is wanted.
    pub(super) fn includes(&self, below: &Path) -> bool {
        self.include
            .as_ref()
            .is_none_or(|globs| globs.is_match(below))
    }

    pub(super) fn excludes(&self, below: &Path) -> bool {
        self.exclude.is_match(below)
    }

    /// Whether a file with these contents is wanted.
    pub(super) fn wants(&self, contents: &[u8]) -> bool {
        self.containing
            .as_ref()
            .is_none_or(|literals| literals.is_match(contents))
    }
}

fn bounded(what: &str, bytes: usize, most: usize) -> Result<(), WorkspaceError> {
    if bytes <= most {
        return Ok(());
    }
    Err(WorkspaceError::Glob {
        glob: what.to_owned(),
        reason: format!("{bytes} bytes, and at most {most} are taken"),
    })
}

fn compile(globs: &[String]) -> Result<GlobSet, WorkspaceError> {
    let invalid = |glob: &str, error: &globset::Error| WorkspaceError::Glob {
        glob: beginning(glob),
        reason: error.kind().to_string(),
    };
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let compiled = GlobBuilder::new(glob)
            .literal_separator(true)
            .build()
            .map_err(|error| invalid(glob, &error))?;
        set.add(compiled);
    }
    set.build()
        .map_err(|error| invalid(error.glob().unwrap_or_default(), &error))
}

/// So much of a glob as tells which one it is.
fn beginning(glob: &str) -> String {
    const SHOWN: usize = 200;
    match glob.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &glob[..end]),
        None => glob.to_owned(),
    }
}

/// `LeftmostFirst` is the kind that has vectorised searches.
fn automaton(literals: &[Vec<u8>]) -> Result<AhoCorasick, WorkspaceError> {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .build(literals)
        .map_err(|error| WorkspaceError::Glob {
            glob: "containing".to_owned(),
            reason: error.to_string(),
        })
}
