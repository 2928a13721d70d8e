//! Opens what should be a regular file, and refuses what is none before waiting for it.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Opens a regular file for reading. A FIFO would be waited for and a device may never end, so both are refused by their kind.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    require(path)?;
    File::open(path)
}

/// Whoever puts something else in the file's place after this owns `FLOE_HOME`, and makes nobody wait but themselves.
pub(crate) fn require(path: &Path) -> io::Result<()> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let what = if kind.is_dir() {
        "it is a folder"
    } else {
        "it is not a regular file"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}
