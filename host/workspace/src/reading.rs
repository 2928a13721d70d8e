//! Reading regular files, and refusing what is none before it is opened.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{FileType, OFlags, Stat, fstat};
use rustix::io::Errno;

use crate::open::reopen;
use crate::{Workspace, WorkspaceError};

/// The most bytes that one read returns, whatever was asked for.
pub const MAX_READ: u32 = 16 * 1024 * 1024;

/// A regular file, open for reading.
#[derive(Debug)]
pub struct OpenedFile {
    /// The file.
    pub file: File,
    /// Its size in bytes when it was opened.
    pub size: u64,
    pub(crate) shown: String,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BytesRange {
    /// The bytes; fewer than asked for at the end of the file and above [`MAX_READ`].
    pub data: Vec<u8>,
    /// Where in the file they start.
    pub offset: u64,
    /// The size of the file as it was after reading.
    pub total_size: u64,
}

/// Many files in one answer: their bytes one after the other, and where each lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileBatch {
    /// All bytes.
    pub data: Vec<u8>,
    /// The files, in the order in which they were asked for; perhaps not all of them.
    pub files: Vec<FileSlice>,
}

/// One file inside the data of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSlice {
    /// As it was asked for.
    pub path: String,
    /// Where its bytes start in the data.
    pub start: usize,
    /// How many there are.
    pub length: usize,
    /// The size of the file; larger than `length` where it was cut.
    pub total_size: u64,
    /// Why it could not be read; the slice is then empty.
    pub failure: Option<WorkspaceError>,
}

impl Workspace {
    /// Opens the regular file at `path` for reading. A directory, FIFO, socket or device is refused without being opened: a first
    /// descriptor (`O_PATH`) only names it, and the second is made from the first, not from the name.
    ///
    /// # Errors
    ///
    /// It is outside, hidden, not there, no regular file, or may not be read.
    pub fn open_file(&self, path: &str) -> Result<OpenedFile, WorkspaceError> {
        let place = self.place(path)?;
        let shown = place.shown();
        let failed = |errno| WorkspaceError::from_errno(errno, path, &shown);
        let named = place.open(OFlags::PATH).map_err(failed)?;
        require_regular(&fstat(&named).map_err(failed)?, &shown)?;
        self.require_shown(&place, named.as_fd())?;
        let file = reopen(named.as_fd()).map_err(failed)?;
        let stat = fstat(&file).map_err(failed)?;
        require_regular(&stat, &shown)?;
        if let Some(seen) = &self.seen
            && place.is_in_workspace()
            && let Some(path) = place.path_of(file.as_fd())
        {
            seen.note(&path, &stat);
        }
        Ok(OpenedFile {
            file: File::from(file),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            shown,
        })
    }

    /// Reads at most `length` bytes from `offset` of the file at `path`. Beyond the end the data is empty.
    ///
    /// # Errors
    ///
    /// As [`Workspace::open_file`], or reading failed.
    pub fn read_range(
        &self,
        path: &str,
        offset: u64,
        length: u32,
    ) -> Result<BytesRange, WorkspaceError> {
        let opened = self.open_file(path)?;
        let mut data = Vec::new();
        opened.append_range(&mut data, offset, length.min(MAX_READ) as usize)?;
        let end = match data.len() {
            0 => 0,
            length => offset + length as u64,
        };
        let total_size = opened.size_after(end);
        Ok(BytesRange {
            data,
            offset,
            total_size,
        })
    }

    /// Reads the files at `paths` in order until `max_bytes` (at most [`MAX_READ`]) are full. The first that does not fit any more and all
    /// after it are left for the next batch; the first of a batch is cut instead, so that every batch makes progress. What cannot be
    /// read is a slice with its failure.
    pub fn read_batch(&self, paths: &[impl AsRef<str>], max_bytes: u32) -> FileBatch {
        let capacity = max_bytes.min(MAX_READ) as usize;
        let mut batch = FileBatch::default();
        for path in paths {
            let path = path.as_ref();
            let start = batch.data.len();
            let slice = match self.append_file(path, &mut batch.data, capacity) {
                Ok(Some((length, total_size))) => FileSlice {
                    path: path.to_owned(),
                    start,
                    length,
                    total_size,
                    failure: None,
                },
                Ok(None) => break,
                Err(failure) => FileSlice {
                    path: path.to_owned(),
                    start,
                    length: 0,
                    total_size: 0,
                    failure: Some(failure),
                },
            };
            batch.files.push(slice);
        }
        batch
    }

    /// Appends a file to `data`, which holds at most `capacity` bytes; `None` where it does not fit beside what is there.
    fn append_file(
        &self,
        path: &str,
        data: &mut Vec<u8>,
        capacity: usize,
    ) -> Result<Option<(usize, u64)>, WorkspaceError> {
        let opened = self.open_file(path)?;
        let start = data.len();
        let room = capacity.saturating_sub(start);
        if start > 0 && opened.size > room as u64 {
            return Ok(None);
        }
        if let Err(error) = opened.append_range(data, 0, room) {
            data.truncate(start);
            return Err(error);
        }
        let length = data.len() - start;
        Ok(Some((length, opened.size_after(length as u64))))
    }
}

impl OpenedFile {
    /// Appends up to `length` bytes from `offset`. A file that grows meanwhile is read up to `length` and no further; the buffer
    /// follows what was really read, so that a file that lies about its size costs nothing.
    pub(crate) fn append_range(
        &self,
        data: &mut Vec<u8>,
        offset: u64,
        length: usize,
    ) -> Result<(), WorkspaceError> {
        const PIECE: usize = 256 * 1024;
        if offset > i64::MAX as u64 {
            return Ok(());
        }
        let start = data.len();
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        data.reserve(left.min(length).min(PIECE));
        loop {
            let done = data.len() - start;
            let piece = (length - done)
                .min(PIECE)
                .min(left.saturating_sub(done).max(512));
            if piece == 0 {
                return Ok(());
            }
            let end = data.len();
            data.resize(end + piece, 0);
            let read = self.file.read_at(&mut data[end..], offset + done as u64);
            data.truncate(end + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(WorkspaceError::Io {
                        path: self.shown.clone(),
                        errno: Errno::from_io_error(&error).unwrap_or(Errno::IO),
                    });
                }
            }
        }
    }

    /// The size now, and never less than what was read.
    pub(crate) fn size_after(&self, end: u64) -> u64 {
        let now =
            fstat(&self.file).map_or(self.size, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        now.max(end)
    }
}

/// Refuses what is no regular file.
pub(crate) fn require_regular(stat: &Stat, shown: &str) -> Result<(), WorkspaceError> {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => {
            return Err(WorkspaceError::IsDirectory {
                path: shown.to_owned(),
            });
        }
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        FileType::CharacterDevice | FileType::BlockDevice => "device",
        _ => "special file",
    };
    Err(WorkspaceError::SpecialFile {
        path: shown.to_owned(),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{FileType, Mode, mknodat};

    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn a_range_holds_the_bytes_at_its_place_and_the_size_of_the_whole() {
        let fixture = Fixture::new();
        fixture.write("f", "0123456789");
        let read = |offset, length| fixture.workspace.read_range("f", offset, length).unwrap();
        for (offset, length, data) in [
            (0, 100, "0123456789"),
            (3, 4, "3456"),
            (8, 4, "89"),
            (10, 4, ""),
            (u64::MAX, 4, ""),
            (0, 0, ""),
        ] {
            let range = read(offset, length);
            assert_eq!(range.data, data.as_bytes());
            assert_eq!(
                range.total_size,
                10.max(if data.is_empty() { 0 } else { 10 })
            );
        }
        fixture.write("empty", "");
        let empty = fixture.workspace.read_range("empty", 0, 100).unwrap();
        assert_eq!((empty.data.len(), empty.total_size), (0, 0));
    }

    #[test]
    fn a_sparse_file_of_ten_gigabytes_is_read_in_ranges() {
        let fixture = Fixture::new();
        let size = 10 << 30;
        fixture.write("sparse", "");
        let file = fs::OpenOptions::new()
            .write(true)
            .open(fixture.path().join("sparse"))
            .unwrap();
        file.set_len(size).unwrap();
        file.write_all_at(b"end", size - 3).unwrap();
        let range = fixture
            .workspace
            .read_range("sparse", size - 5, 100)
            .unwrap();
        assert_eq!(range.data, b"\0\0end");
        assert_eq!(range.total_size, size);
        let range = fixture.workspace.read_range("sparse", 0, u32::MAX).unwrap();
        assert_eq!(range.data.len(), MAX_READ as usize);
    }

    #[test]
    fn a_file_that_grows_while_it_is_read_gives_what_was_asked_for_and_no_more() {
        let fixture = Fixture::new();
        fixture.write("log", "start ");
        let mut opened = fixture.workspace.open_file("log").unwrap();
        fixture.write("log", "start and then some more");
        let mut data = Vec::new();
        opened.append_range(&mut data, 0, 11).unwrap();
        assert_eq!(data, b"start and t");
        assert_eq!(opened.size_after(11), 24);
        // And one that shrinks gives what is left.
        fixture.write("log", "st");
        opened.size = 1 << 40;
        let mut data = Vec::new();
        opened.append_range(&mut data, 0, 1 << 30).unwrap();
        assert_eq!(data, b"st");
        assert!(data.capacity() <= 1 << 20);
    }

    #[test]
    fn special_files_are_refused_by_their_kind_without_waiting() {
        let fixture = Fixture::new();
        let make = |name: &str, kind| {
            let path = fixture.path().join(name);
            mknodat(rustix::fs::CWD, path, kind, Mode::RUSR | Mode::WUSR, 0)
        };
        make("fifo", FileType::Fifo).unwrap();
        let _listener = UnixListener::bind(fixture.path().join("socket")).unwrap();
        let mut kinds = vec![("fifo", "FIFO"), ("socket", "socket")];
        // Making a device takes a privilege that not every machine gives to tests.
        if make("device", FileType::CharacterDevice).is_ok() {
            kinds.push(("device", "device"));
        }
        for (path, kind) in kinds {
            let error = fixture.workspace.read_range(path, 0, 10).unwrap_err();
            assert_eq!(error.code(), "not-a-file");
            assert_eq!(
                error.to_string(),
                format!("\"{path}\" is a {kind}; only regular files can be read.")
            );
        }
        fs::create_dir(fixture.path().join("folder")).unwrap();
        let error = fixture.workspace.read_range("folder", 0, 10).unwrap_err();
        assert_eq!(error.code(), "is-directory");
    }

    #[test]
    fn a_fifo_that_waits_for_a_reader_does_not_get_one() {
        let fixture = Fixture::new();
        let path = fixture.path().join("fifo");
        mknodat(
            rustix::fs::CWD,
            &path,
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        assert!(fixture.workspace.read_range("fifo", 0, 1).is_err());
        // Opening for writing without waiting fails as long as nobody has it open for reading.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&path, flags, Mode::empty());
        assert_eq!(opened.unwrap_err(), Errno::NXIO);
    }

    #[test]
    fn links_are_followed_inside_and_refused_where_they_lead_out() {
        let fixture = Fixture::new();
        fixture.write("a/target", "inside");
        fixture.write("b/x", "");
        let link = |target: &str, name: &str| symlink(target, fixture.path().join(name)).unwrap();
        link("a/target", "direct");
        link("../a/target", "b/up");
        link("missing", "dangling");
        link("circle", "circle");
        link("../secret", "above");
        link("/etc/passwd", "absolute");
        link("/proc/self/root/etc/passwd", "magic");
        let host = fixture.path().to_str().unwrap();
        link(&format!("{host}/a/target"), "own");
        link(host, "b/self");
        link("b/self/b/up", "mixed");
        link(&format!("{host}/../secret"), "round");
        link(&format!("{host}-beside/x"), "beside");
        link(&format!("{host}/turn"), "turn");
        for name in ["direct", "b/up", "own", "mixed", "b/self/a/target"] {
            let read = fixture.workspace.read_range(name, 0, 100).unwrap();
            assert_eq!(read.data, b"inside");
        }
        for (name, code) in [
            ("dangling", "not-found"),
            ("circle", "io"),
            ("above", "outside-workspace"),
            ("absolute", "outside-workspace"),
            ("magic", "outside-workspace"),
            ("round", "outside-workspace"),
            ("beside", "outside-workspace"),
            ("turn", "io"),
        ] {
            let error = fixture.workspace.read_range(name, 0, 100).unwrap_err();
            assert_eq!(error.code(), code, "{name}");
            assert!(!error.to_string().contains("secret") && !error.to_string().contains("etc"));
        }
    }

    #[test]
    fn a_batch_holds_whole_files_in_order_until_it_is_full() {
        let fixture = Fixture::new();
        fixture.write("a", "aaaa");
        fixture.write("b", "bbbb");
        fixture.write("c", "cccc");
        let paths = ["a", "missing", "b", "c"];
        let batch = fixture.workspace.read_batch(&paths, 10);
        assert_eq!(batch.data, b"aaaabbbb");
        let seen: Vec<_> = batch
            .files
            .iter()
            .map(|file| (file.path.as_str(), file.start, file.length, file.total_size))
            .collect();
        assert_eq!(seen, [("a", 0, 4, 4), ("missing", 4, 0, 0), ("b", 4, 4, 4)]);
        let failure = batch.files[1].failure.as_ref().unwrap();
        assert_eq!(failure.code(), "not-found");
    }

    #[test]
    fn the_first_file_of_a_batch_is_cut_rather_than_left_out() {
        let fixture = Fixture::new();
        fixture.write("big", "0123456789");
        for (max, data) in [(4, "0123"), (0, "")] {
            let batch = fixture.workspace.read_batch(&["big", "big"], max);
            assert_eq!(batch.data, data.as_bytes());
            assert_eq!(batch.files[0].length, data.len());
            assert_eq!(batch.files[0].total_size, 10);
        }
    }
}
