//! What one command may reach beyond the Session's policy, because the person said so.
//!
//! A widening is made by the host from what a tool's call asks for, checked before the person is asked and bound to what the
//! person saw: a path is granted as the file or folder that it led to at that moment, not as a name.

pub(crate) mod apply;
mod fault;
mod judge;
mod placement;

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use serde::{Deserialize, Serialize};

pub use fault::WideningFault;
pub(crate) use judge::{Grounds, judge};

/// What one command may reach beyond the Session's policy. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Widening {
    /// Files and folders, with all below them, that it may read.
    pub read: Vec<GrantedPath>,
    /// Files and folders, with all below them, that it may read and change.
    pub write: Vec<GrantedPath>,
    /// Hosts, as `name:port`, that it may reach.
    pub hosts: Vec<String>,
}

impl Widening {
    /// Whether it grants nothing.
    pub fn is_empty(&self) -> bool {
        let Widening { read, write, hosts } = self;
        read.is_empty() && write.is_empty() && hosts.is_empty()
    }

    /// The paths of it.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.read.iter().chain(&self.write).map(GrantedPath::path)
    }

    /// What of it `granted` does not hold already: a folder holds all below it, writing holds reading, and a host is held by
    /// its own name with the same port. What no longer is what the person saw holds nothing.
    #[must_use]
    pub fn beyond(&self, granted: &Widening) -> Widening {
        let Widening { read, write, hosts } = self;
        let beyond = |asked: &[GrantedPath], held: &[&[GrantedPath]]| {
            let is_held = |path: &&GrantedPath| held.iter().any(|held| holds(held, path));
            asked
                .iter()
                .filter(|path| !is_held(path))
                .cloned()
                .collect()
        };
        Widening {
            read: beyond(read, &[&granted.read, &granted.write]),
            write: beyond(write, &[&granted.write]),
            hosts: hosts
                .iter()
                .filter(|host| !granted.hosts.iter().any(|held| holds_host(held, host)))
                .cloned()
                .collect(),
        }
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: Widening) {
        let Widening { read, write, hosts } = other;
        self.read.extend(read);
        self.write.extend(write);
        self.hosts.extend(hosts);
    }
}

fn holds(granted: &[GrantedPath], path: &GrantedPath) -> bool {
    granted
        .iter()
        .any(|above| path.path.starts_with(&above.path) && above.is_current())
}

/// A file or folder outside the Workspace that the person granted: a canonical path and what it led to.
///
/// A command only gets it while the path still leads to that very file or folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantedPath {
    /// Absolute, without links, `.` and `..`.
    path: PathBuf,
    /// The device that it was on.
    device: u64,
    /// Its number there.
    inode: u64,
}

impl GrantedPath {
    /// What `path` leads to now. It must be canonical: no link is followed.
    pub(crate) fn see(path: &Path) -> io::Result<(GrantedPath, FileType)> {
        let status = rustix::fs::fstat(open(path)?)?;
        let granted = GrantedPath {
            path: path.to_owned(),
            device: status.st_dev,
            inode: status.st_ino,
        };
        Ok((granted, FileType::from_raw_mode(status.st_mode)))
    }

    /// Whether the path still leads to what it led to.
    pub fn is_current(&self) -> bool {
        GrantedPath::see(&self.path).is_ok_and(|(now, _)| now == *self)
    }

    /// The canonical path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The device and the inode that the path led to when it was granted.
    pub fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

/// Whether a granted host, `NAME:PORT` or `*.NAME:PORT`, holds another that is written so.
fn holds_host(granted: &str, host: &str) -> bool {
    let (Some((upper, port)), Some((name, same))) =
        (granted.rsplit_once(':'), host.rsplit_once(':'))
    else {
        return false;
    };
    let below = upper.strip_prefix('*').is_some_and(|upper| {
        let inner = name.strip_prefix('*').unwrap_or(name);
        inner.ends_with(upper) && (name.starts_with('*') || inner.len() > upper.len())
    });
    port == same && (upper == name || below)
}

fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::io::retry_on_intr(|| {
        rustix::fs::openat2(
            rustix::fs::CWD,
            path,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn seen(path: &Path) -> GrantedPath {
        GrantedPath::see(path).unwrap().0
    }

    #[test]
    fn a_granted_folder_holds_what_is_below_it_and_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["data", "data/deep", "data2"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let asked = |name: &str| Widening {
            read: vec![seen(&root.join(name))],
            ..Widening::default()
        };
        let granted = asked("data");
        assert!(asked("data").beyond(&granted).is_empty());
        assert!(asked("data/deep").beyond(&granted).is_empty());
        assert_eq!(asked("data2").beyond(&granted), asked("data2"));
        let write = Widening {
            write: asked("data/deep").read,
            ..Widening::default()
        };
        assert_eq!(write.beyond(&granted), write, "reading holds no writing");
        let writable = Widening {
            write: granted.read,
            ..Widening::default()
        };
        assert!(asked("data/deep").beyond(&writable).is_empty());
    }

    #[test]
    fn what_was_swapped_since_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("data")).unwrap();
        let granted = Widening {
            read: vec![seen(&root.join("data"))],
            ..Widening::default()
        };
        fs::rename(root.join("data"), root.join("old")).unwrap();
        fs::create_dir_all(root.join("data/inside")).unwrap();
        let asked = Widening {
            read: vec![seen(&root.join("data/inside"))],
            ..Widening::default()
        };
        assert_eq!(asked.beyond(&granted), asked);
        fs::remove_dir_all(root.join("data")).unwrap();
        std::os::unix::fs::symlink("old", root.join("data")).unwrap();
        assert!(
            !granted.read[0].is_current(),
            "a link to the same is another thing"
        );
    }

    #[test]
    fn a_host_is_held_with_its_port_only() {
        let hosts = |names: &[&str]| Widening {
            hosts: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Widening::default()
        };
        let granted = hosts(&["example.com:443"]);
        assert!(hosts(&["example.com:443"]).beyond(&granted).is_empty());
        let other = hosts(&["example.com:8443", "www.example.com:443"]);
        assert_eq!(other.beyond(&granted), other);
        let below = hosts(&["*.example.com:443"]);
        let held = [
            "www.example.com:443",
            "a.b.example.com:443",
            "*.b.example.com:443",
        ];
        assert!(hosts(&held).beyond(&below).is_empty());
        let other = hosts(&[
            "example.com:443",
            "notexample.com:443",
            "www.example.com:80",
            "*.com:443",
        ]);
        assert_eq!(other.beyond(&below), other);
    }
}
