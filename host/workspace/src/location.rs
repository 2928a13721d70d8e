//! Which folders may be a Workspace at all.

use std::path::{Path, PathBuf};

use crate::OpenError;

/// Refuses folders that no Session should work in: `/`; the person's home folder, unless it was named on purpose; and
/// any folder that contains or lies in `home_root` (`FLOE_HOME`), always, since a tool could then rewrite its own settings and Traces.
///
/// Links in all three paths are followed as far as they exist; `home_root` need not exist yet.
pub fn check_location(
    path: &Path,
    home_root: &Path,
    person_home: Option<&Path>,
    named_explicitly: bool,
) -> Result<(), OpenError> {
    let path = canonical(path);
    let home = canonical(home_root);
    if path.parent().is_none() {
        return Err(OpenError::FileSystemRoot);
    }
    if path.starts_with(&home) || home.starts_with(&path) {
        return Err(OpenError::OverlapsHome { path, home });
    }
    if !named_explicitly && person_home.is_some_and(|home| canonical(home) == path) {
        return Err(OpenError::PersonHome { path });
    }
    Ok(())
}

/// The path without links and dots as far as it exists, and the rest as it was given.
fn canonical(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut existing = path.as_path();
    loop {
        if let Ok(canonical) = existing.canonicalize() {
            return match path.strip_prefix(existing) {
                Ok(rest) if !rest.as_os_str().is_empty() => canonical.join(rest),
                _ => canonical,
            };
        }
        match existing.parent() {
            Some(parent) => existing = parent,
            None => return path,
        }
    }
}
