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
    shown: String,
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
    pub fn open_file(&self, path: &str) -> Result<OpenedFile, WorkspaceError> {
        let place = self.place(path)?;
        let shown = place.shown();
        let failed = |errno| WorkspaceError::from_errno(errno, path, &shown);
        let named = place.open(OFlags::PATH).map_err(failed)?;
        require_regular(&fstat(&named).map_err(failed)?, &shown)?;
        let file = reopen(named.as_fd()).map_err(failed)?;
        let stat = fstat(&file).map_err(failed)?;
        require_regular(&stat, &shown)?;
        Ok(OpenedFile {
            file: File::from(file),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            shown,
        })
    }

    /// Reads at most `length` bytes from `offset` of the file at `path`. Beyond the end the data is empty.
    pub fn read_range(
        &self,
        path: &str,
        offset: u64,
        length: u32,
    ) -> Result<BytesRange, WorkspaceError> {
        let opened = self.open_file(path)?;
        let mut data = Vec::new();
        opened.append_range(&mut data, offset, length.min(MAX_READ) as usize)?;
        let total_size = opened.size_after(offset + data.len() as u64);
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
    fn append_range(
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
    fn size_after(&self, end: u64) -> u64 {
        let now =
            fstat(&self.file).map_or(self.size, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        now.max(end)
    }
}

fn require_regular(stat: &Stat, shown: &str) -> Result<(), WorkspaceError> {
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
