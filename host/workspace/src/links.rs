//! Absolute links that lead back into the Workspace, such as `ln -s "$PWD/a" b` makes: commands follow them, so reading does too.
//!
//! The kernel refuses every absolute link beneath a descriptor. Only then is the path rewritten here, link by link, and the
//! result handed to the kernel again, which has the last word: what is worked out here is a wish, never a permission.

use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{FileType, OFlags, fstat, readlinkat};
use rustix::io::Errno;

use crate::RelativePath;
use crate::open::open_beneath;
use crate::relative_path::strip_parts;

/// As many links as the kernel follows in one path.
const MOST_LINKS: usize = 40;

/// The path without links that `path` leads to, where the tree at `directory` is `root` on the host. `EXDEV` where it leads out.
pub(crate) fn follow(
    directory: BorrowedFd<'_>,
    root: &Path,
    path: &RelativePath,
) -> Result<RelativePath, Errno> {
    let root = root.to_str().ok_or(Errno::XDEV)?;
    let mut path = path.clone();
    for _ in 0..=MOST_LINKS {
        match first_link(directory, &path)? {
            Some(link) => path = link.followed(root).ok_or(Errno::XDEV)?,
            None => return Ok(path),
        }
    }
    Err(Errno::LOOP)
}

struct Link {
    /// Where it stands; there is no link above it.
    parent: RelativePath,
    target: String,
    /// What follows it in the path.
    rest: String,
}

impl Link {
    /// The path with the link's target in its place. No link stands before it, so taking `..` out as text is exact.
    fn followed(&self, root: &str) -> Option<RelativePath> {
        let target = if self.target.starts_with('/') {
            strip_parts(&self.target, root)?.to_owned()
        } else {
            format!("{}/{}", self.parent.as_str(), self.target)
        };
        RelativePath::normalised(&format!("{target}/{}", self.rest))
    }
}

fn first_link(directory: BorrowedFd<'_>, path: &RelativePath) -> Result<Option<Link>, Errno> {
    let mut parent = RelativePath::root();
    let mut parts = path.parts();
    while let Some(part) = parts.next() {
        let here = parent.entry(part);
        let opened = open_beneath(directory, &here, OFlags::PATH | OFlags::NOFOLLOW)?;
        if FileType::from_raw_mode(fstat(&opened)?.st_mode) == FileType::Symlink {
            let target = readlinkat(&opened, "", Vec::new())?;
            return Ok(Some(Link {
                parent,
                target: target.into_string().map_err(|_| Errno::XDEV)?,
                rest: parts.collect::<Vec<_>>().join("/"),
            }));
        }
        parent = here;
    }
    Ok(None)
}
