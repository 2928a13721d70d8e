//! The only way into a tree: `openat2` from its descriptor. Nothing else in this crate opens a path that a tool named.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::RelativePath;

/// The kernel takes paths of fewer than 4096 bytes; longer ones are opened in pieces.
const LONGEST_PIECE: usize = 4000;

/// How often a lookup is repeated that a rename or a mount elsewhere on the machine disturbed. The kernel answers EAGAIN rather than
/// guess whether a `..` in a link still stays inside.
const ATTEMPTS: usize = 256;

/// Opens `path` beneath `directory`. `EXDEV` says that it would have led out, by a link for example.
///
/// A path that is longer than the kernel takes is opened in pieces, each beneath the one before; then a link in a later piece
/// must stay beneath that piece, which is stricter and still inside.
pub(crate) fn open_beneath(
    directory: BorrowedFd<'_>,
    path: &RelativePath,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let mut rest = path.as_str();
    let mut held: Option<OwnedFd> = None;
    while rest.len() > LONGEST_PIECE {
        let end = rest.as_bytes()[..=LONGEST_PIECE]
            .iter()
            .rposition(|byte| *byte == b'/')
            .ok_or(Errno::NAMETOOLONG)?;
        let (piece, after) = rest.split_at(end);
        let base = held.as_ref().map_or(directory, AsFd::as_fd);
        held = Some(open_piece(base, piece, OFlags::PATH | OFlags::DIRECTORY)?);
        rest = &after[1..];
    }
    let base = held.as_ref().map_or(directory, AsFd::as_fd);
    open_piece(base, if rest.is_empty() { "." } else { rest }, flags)
}

fn open_piece(directory: BorrowedFd<'_>, piece: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut attempt = 0;
    loop {
        let opened = fs::openat2(
            directory,
            piece,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        );
        match opened {
            Err(Errno::AGAIN | Errno::INTR) if attempt < ATTEMPTS => attempt += 1,
            opened => return opened,
        }
    }
}

/// Opens for reading exactly the file that `file`, opened with `O_PATH`, stands for: no name is looked up again, so nothing can be put in its
/// place. The caller has seen that it is a regular file.
pub(crate) fn reopen(file: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    fs::open(
        proc_path(file),
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// The name under which the kernel shows an open descriptor of this process.
pub(crate) fn proc_path(file: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
