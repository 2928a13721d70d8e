//! What stands outside the Workspace, down to the last time stamp.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Folders as they were at one moment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Oracle(BTreeMap<PathBuf, String>);

impl Oracle {
    /// Looks at everything below `roots`, and at them.
    pub(crate) fn look(roots: &[PathBuf]) -> Oracle {
        let mut seen = BTreeMap::new();
        let mut waiting = roots.to_vec();
        while let Some(path) = waiting.pop() {
            let metadata = fs::symlink_metadata(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            if metadata.is_dir() {
                let entries = fs::read_dir(&path).unwrap();
                waiting.extend(entries.map(|entry| entry.unwrap().path()));
            }
            let state = state(&path, &metadata);
            seen.insert(path, state);
        }
        Oracle(seen)
    }

    /// What is different in `later`, one line each.
    pub(crate) fn differences(&self, later: &Oracle) -> Vec<String> {
        let mut all: Vec<_> = self.0.keys().chain(later.0.keys()).collect();
        all.sort();
        all.dedup();
        let unchanged = |path: &&&PathBuf| self.0.get(**path) != later.0.get(**path);
        let told = |state: Option<&String>| state.map_or("nothing", |state| state).to_owned();
        all.iter()
            .filter(unchanged)
            .map(|path| {
                let (before, after) = (told(self.0.get(*path)), told(later.0.get(*path)));
                format!("{}: was {before}, is {after}", path.display())
            })
            .collect()
    }
}

/// Everything about a path but when it was last read.
fn state(path: &Path, metadata: &fs::Metadata) -> String {
    let content = if metadata.is_file() {
        hex(&Sha256::digest(fs::read(path).unwrap()))
    } else if metadata.is_symlink() {
        fs::read_link(path).unwrap().display().to_string()
    } else {
        String::new()
    };
    format!(
        "mode {:o}, owner {}:{}, links {}, inode {}, device {}, size {}, modified {}.{:09}, changed {}.{:09}, attributes {:?}, content {content}",
        metadata.mode(),
        metadata.uid(),
        metadata.gid(),
        metadata.nlink(),
        metadata.ino(),
        metadata.rdev(),
        metadata.size(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
        attributes(path),
    )
}

fn attributes(path: &Path) -> Vec<(String, String)> {
    let mut names = vec![0; 64 * 1024];
    let Ok(length) = rustix::fs::llistxattr(path, &mut names[..]) else {
        return Vec::new();
    };
    let names = names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let value = |name: &[u8]| {
        let mut value = vec![0; 64 * 1024];
        let name = CString::new(name).unwrap();
        match rustix::fs::lgetxattr(path, &name, &mut value[..]) {
            Ok(length) => hex(&value[..length]),
            Err(error) => error.to_string(),
        }
    };
    names
        .map(|name| (String::from_utf8_lossy(name).into_owned(), value(name)))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sets an extended attribute, where the file system has them.
pub(crate) fn set_attribute(path: &Path, name: &str, value: &str) {
    set_raw_attribute(path, name, value.as_bytes());
}

/// As [`set_attribute`], with any bytes.
pub(crate) fn set_raw_attribute(path: &Path, name: &str, value: &[u8]) {
    let flags = rustix::fs::XattrFlags::empty();
    if let Err(error) = rustix::fs::setxattr(path.as_os_str().as_bytes(), name, value, flags) {
        assert_eq!(error, rustix::io::Errno::OPNOTSUPP, "{}", path.display());
    }
}
