//! The entries of one directory, in bounded memory however many there are.

use std::collections::BinaryHeap;
use std::ffi::{CStr, CString};

use rustix::fs::{AtFlags, Dir, FileType, OFlags, statat};
use rustix::io::Errno;

use crate::edits::is_temporary;
use crate::place::Place;
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
    /// directory. Hidden entries are included, `.` and `..` are not; one that vanishes meanwhile is left out, and one that cannot be looked at, such
    /// as a mount whose server is gone, is listed by what the directory says.
    ///
    /// # Errors
    ///
    /// It is outside, not there, no directory, or may not be read.
    pub fn list_directory(&self, path: &str, limit: usize) -> Result<Listing, WorkspaceError> {
        let place = self.place(path)?;
        list(&place, limit.min(MAX_LISTED))
            .map_err(|errno| WorkspaceError::from_errno(errno, path, &place.shown()))
    }
}

fn list(place: &Place<'_>, limit: usize) -> Result<Listing, Errno> {
    let mut directory = open_directory(place)?;
    let mut first: BinaryHeap<Named> = BinaryHeap::new();
    let mut total = 0;
    each_name(&mut directory, |name, kind| {
        total += 1;
        let named = || Named {
            name: name.to_owned(),
            kind,
        };
        if first.len() < limit {
            first.push(named());
        } else if let Some(mut last) = first.peek_mut()
            && name < last.name.as_c_str()
        {
            *last = named();
        }
        true
    })?;
    let mut entries = Vec::with_capacity(first.len());
    for Named { name, kind } in first.into_sorted_vec() {
        let text = name.to_string_lossy();
        let path = || place.at(place.path.entry(&text)).shown();
        let mut entry = match statat(directory.fd()?, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Entry::new(path(), &stat),
            Err(Errno::NOENT) => {
                total -= 1;
                continue;
            }
            Err(_) => Entry::unseen(path(), kind),
        };
        entry.lossy = matches!(text, std::borrow::Cow::Owned(_));
        entries.push(entry);
    }
    Ok(Listing { entries, total })
}

/// A name with the kind that its directory tells; ordered by the name.
struct Named {
    name: CString,
    kind: FileType,
}

impl Ord for Named {
    fn cmp(&self, other: &Named) -> std::cmp::Ordering {
        self.name.cmp(&other.name)
    }
}

impl PartialOrd for Named {
    fn partial_cmp(&self, other: &Named) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Named) -> bool {
        self.name == other.name
    }
}

impl Eq for Named {}

/// Opens a directory for its names. The descriptor itself is read: names may be allowed where nothing below them is.
pub(crate) fn open_directory(place: &Place<'_>) -> Result<Dir, Errno> {
    Dir::new(place.open(OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK)?)
}

/// Calls `visit` with every name but `.`, `..` and those of edits under way, and the kind that the directory tells, until it answers false.
pub(crate) fn each_name(
    directory: &mut Dir,
    mut visit: impl FnMut(&CStr, FileType) -> bool,
) -> Result<(), Errno> {
    while let Some(entry) = directory.read() {
        let entry = entry?;
        let name = entry.file_name();
        let is_entry = name != c"." && name != c".." && !is_temporary(name.to_bytes());
        if is_entry && !visit(name, entry.file_type()) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{FileType, Mode, mknodat};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use crate::fixture::Fixture;
    use crate::{Kind, Listing};

    fn names(listing: &Listing) -> Vec<&str> {
        listing.entries.iter().map(|entry| entry.name()).collect()
    }

    #[test]
    fn entries_come_by_name_with_their_kind_and_links_as_links() {
        let fixture = Fixture::new();
        fixture.write("d/b.txt", "12345");
        fixture.write("d/.hidden", "");
        fixture.write("d/a/x", "");
        symlink("/etc/passwd", fixture.path().join("d/link")).unwrap();
        mknodat(
            rustix::fs::CWD,
            fixture.path().join("d/fifo"),
            FileType::Fifo,
            Mode::RUSR,
            0,
        )
        .unwrap();
        let listing = fixture.workspace.list_directory("d", 100).unwrap();
        assert_eq!(listing.total, 5);
        let seen: Vec<_> = listing
            .entries
            .iter()
            .map(|entry| (entry.path.as_str(), entry.kind))
            .collect();
        assert_eq!(
            seen,
            [
                ("d/.hidden", Kind::File),
                ("d/a", Kind::Directory),
                ("d/b.txt", Kind::File),
                ("d/fifo", Kind::Other),
                ("d/link", Kind::Symlink),
            ]
        );
        assert_eq!(listing.entries[2].size, 5);
        assert!(listing.entries[2].modified_ms > 1_500_000_000_000);
    }

    #[test]
    fn a_long_directory_gives_the_first_by_name_and_the_whole_count() {
        let fixture = Fixture::new();
        for number in 0..300 {
            fixture.write(&format!("{:03}", (number * 7) % 300), "");
        }
        let listing = fixture.workspace.list_directory(".", 3).unwrap();
        assert_eq!(names(&listing), ["000", "001", "002"]);
        assert_eq!(listing.total, 300);
        let none = fixture.workspace.list_directory(".", 0).unwrap();
        assert_eq!((none.entries.len(), none.total), (0, 300));
    }

    #[test]
    fn names_of_any_bytes_are_listed_and_those_that_are_not_text_are_flagged() {
        let fixture = Fixture::new();
        let long = "n".repeat(255);
        for name in [
            "-dash",
            "a\nb",
            "a\tb",
            "\u{1b}[31mred",
            "é",
            "e\u{301}",
            &long,
        ] {
            fixture.write(name, "x");
            assert_eq!(fixture.workspace.stat(name).unwrap().name(), name);
        }
        fs::write(fixture.path().join(OsStr::from_bytes(b"bad\xff")), "x").unwrap();
        let listing = fixture.workspace.list_directory(".", 100).unwrap();
        assert_eq!(listing.entries.len(), 8);
        let flagged: Vec<_> = listing.entries.iter().filter(|entry| entry.lossy).collect();
        assert_eq!(flagged.len(), 1);
        assert_eq!(flagged[0].path, "bad\u{fffd}");
        let opened = fixture.workspace.open_file(&flagged[0].path);
        assert_eq!(opened.unwrap_err().code(), "not-found");
    }

    #[test]
    fn what_cannot_be_looked_at_is_listed_by_what_its_directory_says() {
        let fixture = Fixture::new();
        fixture.write("d/file", "12345");
        fs::create_dir(fixture.path().join("d/sub")).unwrap();
        // Reading the names is allowed, looking at what they stand for is not.
        let mode = |mode| {
            let permissions = fs::Permissions::from_mode(mode);
            fs::set_permissions(fixture.path().join("d"), permissions).unwrap();
        };
        mode(0o444);
        let workspace = fixture.workspace.clone();
        let listing = std::thread::spawn(move || {
            let mut sets = capabilities(None).unwrap();
            sets.effective = CapabilitySet::empty();
            set_capabilities(None, sets).unwrap();
            workspace.list_directory("d", 9).unwrap()
        })
        .join()
        .unwrap();
        mode(0o755);
        let seen: Vec<_> = listing
            .entries
            .iter()
            .map(|entry| (entry.name(), entry.kind, entry.size))
            .collect();
        assert_eq!(seen, [("file", Kind::File, 0), ("sub", Kind::Directory, 0)]);
        assert_eq!(listing.total, 2);
    }

    #[test]
    fn a_file_a_missing_directory_and_a_link_that_leads_out_are_told_apart() {
        let fixture = Fixture::new();
        fixture.write("file", "");
        symlink(fixture.outside(), fixture.path().join("out")).unwrap();
        symlink("inside", fixture.path().join("in")).unwrap();
        fixture.write("inside/x", "");
        let code = |path| {
            fixture
                .workspace
                .list_directory(path, 9)
                .map_err(|error| error.code())
        };
        assert_eq!(code("file").unwrap_err(), "not-directory");
        assert_eq!(code("missing").unwrap_err(), "not-found");
        assert_eq!(code("out").unwrap_err(), "outside-workspace");
        assert_eq!(code("in").unwrap().entries[0].path, "in/x");
    }

    #[test]
    fn a_hundred_directories_deep_and_beyond_the_longest_path_of_the_kernel_can_be_reached() {
        let fixture = Fixture::new();
        let part = "d".repeat(200);
        let mut directory = fixture.path().to_owned();
        // The test itself cannot name such a path in one call either.
        let mut relative = String::new();
        let mut at = std::fs::File::open(&directory).unwrap();
        for _ in 0..100 {
            rustix::fs::mkdirat(&at, part.as_str(), Mode::RWXU).unwrap();
            at = std::fs::File::from(
                rustix::fs::openat(
                    &at,
                    part.as_str(),
                    rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC,
                    Mode::empty(),
                )
                .unwrap(),
            );
            relative.push_str(&part);
            relative.push('/');
            directory.push(&part);
        }
        let leaf = rustix::fs::openat(
            &at,
            "leaf",
            rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC,
            Mode::RUSR,
        )
        .unwrap();
        rustix::io::write(&leaf, b"deep").unwrap();
        let path = format!("{relative}leaf");
        assert_eq!(path.len(), 20_104);
        assert_eq!(
            fixture.workspace.read_range(&path, 0, 9).unwrap().data,
            b"deep"
        );
        let listing = fixture.workspace.list_directory(&relative, 9).unwrap();
        assert_eq!(names(&listing), ["leaf"]);
    }
}
