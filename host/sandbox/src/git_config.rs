//! What a git configuration file of the Workspace names that git executes or obeys, as far as it lies in the Workspace
//! too: the folder of the hooks, and further configuration files.
//!
//! Read here and never asked of `git`, which would obey the file while it answers.

use std::path::PathBuf;

/// What a configuration file names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// `core.hooksPath`, relative to the work tree unless absolute.
    pub(crate) hooks: Vec<PathBuf>,
    /// `include.path` and `includeIf.*.path`, relative to the file unless absolute.
    pub(crate) included: Vec<PathBuf>,
}

/// Reads a configuration file. What it says by a line continued over several is not seen.
pub(crate) fn read(text: &str) -> Named {
    let mut named = Named::default();
    let mut section = String::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some((header, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            let name = header.split([' ', '\t', '.', '"']).next();
            section = name.unwrap_or_default().to_ascii_lowercase();
            line = rest.trim();
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let list = match (section.as_str(), key.trim().to_ascii_lowercase().as_str()) {
            ("core", "hookspath") => &mut named.hooks,
            ("include" | "includeif", "path") => &mut named.included,
            _ => continue,
        };
        list.push(unquoted(value).into());
    }
    named
}

/// A value without its quotes and its comment. A path needs no other escapes than these two.
fn unquoted(value: &str) -> String {
    let mut text = String::new();
    let mut quoted = false;
    let mut characters = value.trim().chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted = !quoted,
            '\\' => text.extend(characters.next()),
            '#' | ';' if !quoted => break,
            other => text.push(other),
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_and_further_files_are_named_by_their_sections_alone() {
        let text = "[core]\n\thooksPath = .husky ; ours\n[Include]\npath = \"../a b\"\n\
                    [includeIf \"gitdir:x]\"]\npath=c\n[other]\npath = no\nhooksPath = no\n[core] HOOKSPATH=d#e\n";
        let named = read(text);
        assert_eq!(named.hooks, [PathBuf::from(".husky"), "d".into()]);
        assert_eq!(named.included, [PathBuf::from("../a b"), "c".into()]);
    }
}
