//! The patterns of `deny_read`: `NAME` and `**/NAME` at any depth, `FOLDER/NAME` from the Workspace's root, `*` for
//! anything but a slash. Nothing more, so that a pattern means what it seems to mean.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use crate::error::SandboxError;

/// A parsed pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    anywhere: bool,
    files_only: bool,
    parts: Vec<Vec<u8>>,
}

impl Pattern {
    /// What is hidden where nobody says otherwise. Folders of these names are often no secrets but a language's own.
    pub(crate) const FILES_ONLY: [&str; 2] = ["**/.env", "**/.env.*"];

    pub(crate) fn parse(text: &str) -> Result<Pattern, SandboxError> {
        let (anywhere, rest) = match text.strip_prefix("**/") {
            Some(rest) => (true, rest),
            None => (!text.contains('/'), text),
        };
        let parts: Vec<Vec<u8>> = rest
            .split('/')
            .map(|part| part.as_bytes().to_vec())
            .collect();
        let odd = |part: &Vec<u8>| {
            matches!(part.as_slice(), b"" | b"." | b"..")
                || part.windows(2).any(|pair| pair == b"**")
        };
        if parts.iter().any(odd) {
            return Err(SandboxError::Setting {
                what: format!("`deny_read` pattern \"{text}\""),
                reason:
                    "a pattern is NAME, **/NAME or FOLDER/NAME, with * for anything but a slash."
                        .to_owned(),
            });
        }
        Ok(Pattern {
            anywhere,
            files_only: Pattern::FILES_ONLY.contains(&text),
            parts,
        })
    }

    /// Whether it means the folder at `path`, with all that it holds.
    pub(crate) fn matches_folder(&self, path: &Path) -> bool {
        !self.files_only && self.matches(path)
    }

    /// Whether it means `path`, which is relative to the Workspace.
    pub(crate) fn matches(&self, path: &Path) -> bool {
        let names: Vec<&[u8]> = path
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name.as_bytes()),
                _ => None,
            })
            .collect();
        let Some(above) = names.len().checked_sub(self.parts.len()) else {
            return false;
        };
        (above == 0 || self.anywhere)
            && names[above..]
                .iter()
                .zip(&self.parts)
                .all(|(name, part)| wildcard(part, name))
    }
}

/// Whether `name` is what `pattern` says, in time linear in both for each `*`.
fn wildcard(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut retry = None;
    while seen < name.len() {
        if pattern.get(at) == Some(&b'*') {
            retry = Some((at, seen));
            at += 1;
        } else if pattern.get(at) == Some(&name[seen]) {
            at += 1;
            seen += 1;
        } else if let Some((star, from)) = retry {
            retry = Some((star, from + 1));
            at = star + 1;
            seen = from + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(Path::new(path))
    }

    #[test]
    fn a_name_alone_is_meant_at_any_depth() {
        for pattern in [".env", "**/.env"] {
            assert!(matches(pattern, ".env"));
            assert!(matches(pattern, "a/b/.env"));
            assert!(!matches(pattern, "a/.environment"));
        }
    }

    #[test]
    fn a_path_is_meant_from_the_root() {
        assert!(matches("secrets/*.pem", "secrets/key.pem"));
        assert!(!matches("secrets/*.pem", "a/secrets/key.pem"));
        assert!(!matches("secrets/*.pem", "secrets/deep/key.pem"));
        assert!(matches("**/secrets/*.pem", "a/secrets/key.pem"));
    }

    #[test]
    fn a_folder_is_meant_as_a_file_is_but_for_what_is_hidden_by_default() {
        let folder = |pattern: &str| {
            Pattern::parse(pattern)
                .unwrap()
                .matches_folder(Path::new("a/.env"))
        };
        assert!(folder(".env") && folder("a/.env") && folder("**/.e*"));
        assert!(!folder("**/.env") && !folder("b"));
    }

    #[test]
    fn a_star_stands_for_anything_but_a_slash() {
        assert!(matches(".env.*", "a/.env.local"));
        assert!(matches("*", "x"));
        assert!(matches("a*b*c", "a-b-b-c"));
        assert!(!matches("a*b*c", "a-b-b-d"));
    }

    #[test]
    fn what_could_mean_several_things_is_refused() {
        for odd in ["", "/abs", "a/../b", "a/**/b", "a//b", "**"] {
            assert!(Pattern::parse(odd).is_err(), "{odd}");
        }
    }
}
