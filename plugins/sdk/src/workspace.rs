//! Reads the Workspace: the one directory tree that the Session may touch. Paths are relative to its root, with `/`.
//!
//! Every function fails with code `outside-workspace` for a path that leaves it, `not-found` for one that is not there (the hint
//! then names what is near), and `denied` where the tool was not granted reading.

use std::borrow::Cow;

use crate::Failure;
use crate::bindings::floe::tool::workspace as host;
use crate::output::from_one_line;
pub use host::{BytesRange, Entry, EntryKind, FileBatch, FileSlice, WalkOptions};

/// How much one read asks for.
const READ_BYTES: u32 = 1024 * 1024;

/// What is at a path. A link that stays inside the Workspace is followed.
///
/// # Errors
/// As the module says.
pub fn stat(path: &str) -> Result<Entry, Failure> {
    host::stat(path)
}

/// What a model means by `path`: the path itself or, where nothing has this name, the one that a tool has shown as it with
/// [`push_on_one_line`](crate::output::push_on_one_line). So whatever is listed can be opened by the text that stands in the list.
pub fn meant(path: &str) -> Cow<'_, str> {
    let Some(written_out) = from_one_line(path) else {
        return Cow::Borrowed(path);
    };
    match (stat(path), stat(&written_out)) {
        (Err(failure), Ok(_)) if failure.code == "not-found" => Cow::Owned(written_out),
        _ => Cow::Borrowed(path),
    }
}

/// The entries of one directory, by name; links are not followed.
///
/// # Errors
/// As the module says; `not-directory` for a file.
pub fn list_directory(path: &str) -> Result<Vec<Entry>, Failure> {
    host::list_directory(path)
}

/// Up to `length` bytes of a regular file from `offset` on; fewer at its end.
///
/// # Errors
/// As the module says; `is-directory` and `not-a-file` for what is not a regular file.
pub fn read_range(path: &str, offset: u64, length: u32) -> Result<BytesRange, Failure> {
    host::read_range(path, offset, length)
}

/// Many whole files in one host call, up to `max_bytes` in all; the answer may hold fewer files than were asked for.
///
/// # Errors
/// As the module says; a file that cannot be read has its failure in its own slice.
pub fn read_batch(paths: &[String], max_bytes: u32) -> Result<FileBatch, Failure> {
    host::read_batch(paths, max_bytes)
}

/// A regular file that is read from its beginning, piece by piece, holding no more than one piece.
#[derive(Debug)]
pub struct Pieces<'a> {
    path: &'a str,
    offset: u64,
    ended: bool,
}

/// Reads a regular file of any size piece by piece.
pub fn pieces(path: &str) -> Pieces<'_> {
    Pieces {
        path,
        offset: 0,
        ended: false,
    }
}

impl Iterator for Pieces<'_> {
    type Item = Result<Vec<u8>, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        match read_range(self.path, self.offset, READ_BYTES) {
            Ok(range) if range.data.is_empty() => {
                self.ended = true;
                None
            }
            Ok(range) => {
                self.offset += range.data.len() as u64;
                Some(Ok(range.data))
            }
            Err(failure) => {
                self.ended = true;
                Some(Err(failure))
            }
        }
    }
}

/// A whole regular file of at most `max_bytes`.
///
/// # Errors
/// As the module says; `too-large` for a longer file.
pub fn read(path: &str, max_bytes: u64) -> Result<Vec<u8>, Failure> {
    let mut contents = Vec::new();
    for piece in pieces(path) {
        contents.extend_from_slice(&piece?);
        if contents.len() as u64 > max_bytes {
            return Err(Failure::new(
                "too-large",
                format!("\"{path}\" is longer than {max_bytes} bytes."),
            ));
        }
    }
    Ok(contents)
}

/// A walk under way through the Workspace, in a stable order.
#[derive(Debug)]
pub struct Walk(host::Walk);

impl Walk {
    /// Starts a walk.
    ///
    /// # Errors
    /// As the module says; `invalid` for a glob that does not parse.
    pub fn open(options: &WalkOptions) -> Result<Walk, Failure> {
        host::Walk::open(options).map(Walk)
    }

    /// The next entries, at most `max`; none at the end.
    ///
    /// # Errors
    /// As the module says.
    pub fn next_entries(&self, max: u32) -> Result<Vec<Entry>, Failure> {
        self.0.next_entries(max)
    }

    /// The next files with their contents, about `max_bytes` at a time; no files at the end.
    ///
    /// # Errors
    /// As the module says.
    pub fn next_files(&self, max_bytes: u32) -> Result<FileBatch, Failure> {
        self.0.next_files(max_bytes)
    }
}
