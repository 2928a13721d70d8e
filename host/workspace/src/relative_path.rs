//! A path that stays inside by construction. Pure text: nothing here looks at the disk.

use std::path::Path;

/// The longest path that the kernel takes, in bytes.
pub(crate) const LONGEST_PATH: usize = 4095;

/// A normalised path below a root: parts joined by `/`, without `.`, `..`, NUL, empty parts or a leading `/`. The root itself is the
/// empty path, shown as `.`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePath(String);

impl RelativePath {
    /// The root itself.
    pub fn root() -> RelativePath {
        RelativePath::default()
    }

    /// Normalises the text after the root. `a/../b` becomes `b`, as a person reads it, even where `a` is a link; a `..` that would
    /// climb above the root, and NUL, give `None`. Slashes at the start count as one separator, so the caller has to have dealt with absolute
    /// paths before.
    pub(crate) fn normalised(text: &str) -> Option<RelativePath> {
        if text.contains('\0') {
            return None;
        }
        let mut path = String::with_capacity(text.len());
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    if path.is_empty() {
                        return None;
                    }
                    path.truncate(path.rfind('/').unwrap_or(0));
                }
                name => {
                    if !path.is_empty() {
                        path.push('/');
                    }
                    path.push_str(name);
                }
            }
        }
        Some(RelativePath(path))
    }

    /// The path as text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path as a path; empty for the root.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// True for the root itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The last part; `None` for the root.
    pub fn name(&self) -> Option<&str> {
        self.0.rsplit('/').next().filter(|name| !name.is_empty())
    }

    /// The directory that holds it; `None` for the root.
    pub fn parent(&self) -> Option<RelativePath> {
        if self.is_root() {
            return None;
        }
        let end = self.0.rfind('/').unwrap_or(0);
        Some(RelativePath(self.0[..end].to_owned()))
    }

    /// The parts, outermost first.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|part| !part.is_empty())
    }

    /// The path of the entry `name` of this directory. `name` comes from a directory, so it is one part.
    pub(crate) fn entry(&self, name: &str) -> RelativePath {
        debug_assert!(!name.is_empty() && !name.contains(['/', '\0']) && name != "..");
        if self.is_root() {
            RelativePath(name.to_owned())
        } else {
            RelativePath(format!("{}/{name}", self.0))
        }
    }
}

impl std::fmt::Display for RelativePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_root() { "." } else { &self.0 })
    }
}

/// What of the absolute `path` follows `prefix`, part by part: slashes in a row count as one, and nothing else is tidied.
pub(crate) fn strip_parts<'p>(path: &'p str, prefix: &str) -> Option<&'p str> {
    let mut rest = path;
    for part in prefix.split('/').filter(|part| !part.is_empty()) {
        rest = rest.trim_start_matches('/').strip_prefix(part)?;
        if !(rest.is_empty() || rest.starts_with('/')) {
            return None;
        }
    }
    Some(rest)
}
