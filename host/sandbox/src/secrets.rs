//! What of the system's folders is hidden from commands: what its owner keeps from others. A command may run as that
//! owner, and still is one of the others.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::SandboxError;

/// What is hidden whatever its mode says.
const ALWAYS: [&str; 9] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/ssl/private",
];

/// How many entries of `/etc` are looked at before commands are refused.
const ETC_ENTRIES: usize = 100_000;

/// Where programs that no distribution brought keep their settings beside them. These folders can be huge, so they are
/// searched from the top down, and only so far.
const LOCAL: [&str; 2] = ["/opt", "/usr/local"];

/// How many entries of each of those are looked at.
const LOCAL_ENTRIES: usize = 20_000;

/// Finds what is hidden.
pub(crate) fn find() -> Result<Vec<PathBuf>, SandboxError> {
    let mut hidden: Vec<PathBuf> = ALWAYS
        .iter()
        .map(PathBuf::from)
        .filter(|path| path.symlink_metadata().is_ok())
        .collect();
    if !search(Path::new("/etc"), ETC_ENTRIES, &mut hidden) {
        return Err(SandboxError::Setting {
            what: "folder /etc".to_owned(),
            reason: format!(
                "it holds more than {ETC_ENTRIES} entries, too many to tell secrets apart."
            ),
        });
    }
    for folder in LOCAL {
        search(Path::new(folder), LOCAL_ENTRIES, &mut hidden);
    }
    hidden.sort();
    Ok(hidden)
}

/// Adds what others may not read below `folder`, uppermost first; whether all of it was looked at.
fn search(folder: &Path, most: usize, hidden: &mut Vec<PathBuf>) -> bool {
    let mut waiting = VecDeque::from([folder.to_owned()]);
    let mut entries = 0;
    while let Some(folder) = waiting.pop_front() {
        // Where the host may not look, a command may not either.
        let Ok(listing) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in listing.flatten() {
            entries += 1;
            if entries > most {
                return false;
            }
            let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else {
                continue;
            };
            let mode = metadata.permissions().mode();
            let readable = if metadata.is_dir() { 0o005 } else { 0o004 };
            if metadata.is_symlink() || hidden.contains(&path) {
                continue;
            }
            if mode & readable != readable {
                hidden.push(path);
            } else if metadata.is_dir() {
                waiting.push_back(path);
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_may_not_read_is_found_from_the_top_down() {
        let root = tempfile::tempdir().unwrap();
        let make = |path: &str, mode| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        make("app/public", 0o644);
        let key = make("app/conf/key", 0o640);
        make("closed/key", 0o644);
        let closed = root.path().join("closed");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o751)).unwrap();
        let mut hidden = Vec::new();
        assert!(search(root.path(), 100, &mut hidden));
        assert_eq!(hidden, [closed.clone(), key]);
        let mut hidden = Vec::new();
        assert!(!search(root.path(), 2, &mut hidden));
        assert_eq!(hidden, [closed]);
    }
}
