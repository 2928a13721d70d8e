//! The entries of one directory, in bounded memory however many there are.

use std::collections::BinaryHeap;
use std::ffi::{CStr, CString};
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Dir, OFlags, statat};
use rustix::io::Errno;

use crate::root::Place;
use crate::{Entry, Workspace, WorkspaceError};

/// The most entries that one listing returns.
pub const MAX_LISTED: usize = 65_536;

/// The first entries of a directory by name, and how many there are in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Sorted by the bytes of the name. Links are shown as links.
    pub entries: Vec<Entry>,
    /// How many the directory holds; more than `entries` where the listing was cut.
    pub total: u64,
}

impl Workspace {
    /// The first `limit` entries of the directory at `path` by name, at most [`MAX_LISTED`]. Memory is bounded by `limit`, not by the size of the
    /// directory. Hidden entries are included, `.` and `..` are not; one that vanishes meanwhile is left out.
    pub fn list_directory(&self, path: &str, limit: usize) -> Result<Listing, WorkspaceError> {
        let place = self.place(path)?;
        list(&place, limit.min(MAX_LISTED))
            .map_err(|errno| WorkspaceError::from_errno(errno, path, &place.shown()))
    }
}

fn list(place: &Place<'_>, limit: usize) -> Result<Listing, Errno> {
    let directory = place.open(OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK)?;
    let mut first: BinaryHeap<CString> = BinaryHeap::new();
    let mut total = 0;
    each_name(Dir::read_from(&directory)?, |name| {
        total += 1;
        if first.len() < limit {
            first.push(name.to_owned());
        } else if let Some(mut last) = first.peek_mut()
            && name < last.as_c_str()
        {
            *last = name.to_owned();
        }
        true
    })?;
    let mut entries = Vec::with_capacity(first.len());
    for name in first.into_sorted_vec() {
        match statat(directory.as_fd(), &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                let text = name.to_string_lossy();
                let mut entry = Entry::new(place.at(place.path.entry(&text)).shown(), &stat);
                entry.lossy = matches!(text, std::borrow::Cow::Owned(_));
                entries.push(entry);
            }
            Err(Errno::NOENT) => total -= 1,
            Err(errno) => return Err(errno),
        }
    }
    Ok(Listing { entries, total })
}

/// Calls `visit` with every name but `.` and `..`, until it answers false.
pub(crate) fn each_name(directory: Dir, mut visit: impl FnMut(&CStr) -> bool) -> Result<(), Errno> {
    for entry in directory {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." && !visit(name) {
            break;
        }
    }
    Ok(())
}
