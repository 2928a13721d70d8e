//! Removes a folder that commands have filled, whatever they left in it.
//!
//! Everything is done by descriptor and nothing through a link, since a process of a command may still be about while the
//! folder goes. However deep folders lie in each other, only so many are open at once: what lies deeper is moved up first.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

/// How deep is gone down. Each level takes two descriptors.
const DEEPEST: usize = 32;

/// Under this name and a number, folders that lie too deep are moved to the uppermost.
const MOVED_UP: &str = ".floe-removed-";

/// Removes a folder with everything in it, also where its owner may not change or look into parts of it. That there is none
/// is no error.
///
/// # Errors
///
/// Something in it cannot be removed; the rest may be gone.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    let opened = match open(CWD, folder) {
        Ok(opened) => opened,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    };
    let mut removal = Removal {
        uppermost: &opened,
        moved_up: 0,
    };
    loop {
        let before = removal.moved_up;
        removal.empty(&opened, 0)?;
        if removal.moved_up == before {
            break;
        }
    }
    match unlinkat(CWD, folder, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

struct Removal<'a> {
    uppermost: &'a OwnedFd,
    moved_up: u64,
}

impl Removal<'_> {
    fn empty(&mut self, folder: &OwnedFd, depth: usize) -> rustix::io::Result<()> {
        let mut entries = Dir::read_from(folder)?;
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            match unlinkat(folder, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(errno) => return Err(errno),
            }
            let inner = match open(folder, name) {
                Ok(inner) => inner,
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno),
            };
            if depth < DEEPEST {
                self.empty(&inner, depth + 1)?;
            } else if Dir::read_from(&inner)?.nth(2).is_some() {
                self.move_up(folder, name)?;
                continue;
            }
            match unlinkat(folder, name, AtFlags::REMOVEDIR) {
                // Filled again by a process that still is about, or by what was moved here.
                Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    fn move_up(&mut self, folder: &OwnedFd, name: &std::ffi::CStr) -> rustix::io::Result<()> {
        loop {
            self.moved_up += 1;
            let place = format!("{MOVED_UP}{}", self.moved_up);
            match renameat(folder, name, self.uppermost, place) {
                // A name that a command has given to something of its own.
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                other => return other,
            }
        }
    }
}

/// Opens a folder, after its owner was given every right to it. A link is none.
fn open(at: impl AsFd, path: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let kind = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat(at, path, kind | OFlags::PATH, Mode::empty())?;
    // By its descriptor, because the name may be another's by now. Where it is not allowed, opening says so.
    let own = format!("/proc/self/fd/{}", found.as_raw_fd());
    let _ = rustix::fs::chmod(own, Mode::RWXU);
    openat(&found, ".", kind | OFlags::RDONLY, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn all_goes_that_commands_may_leave_and_nothing_that_links_lead_to() {
        let root = tempfile::tempdir().unwrap();
        let (folder, outside) = (root.path().join("tmp"), root.path().join("outside"));
        fs::create_dir_all(folder.join("closed/inner")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("mine"), "x").unwrap();
        fs::set_permissions(&outside, Permissions::from_mode(0o755)).unwrap();
        symlink(&outside, folder.join("link")).unwrap();
        fs::write(folder.join("closed/inner/file"), "x").unwrap();
        for closed in ["closed/inner", "closed"] {
            fs::set_permissions(folder.join(closed), Permissions::from_mode(0o000)).unwrap();
        }
        remove_folder(&folder).unwrap();
        assert!(!folder.exists());
        assert!(outside.join("mine").exists());
        assert_eq!(
            outside.metadata().unwrap().permissions().mode() & 0o777,
            0o755
        );
        remove_folder(&folder).unwrap();
        let link = root.path().join("link");
        symlink(&outside, &link).unwrap();
        remove_folder(&link).unwrap_err();
        assert!(outside.join("mine").exists());
    }

    #[test]
    fn folders_that_lie_deeper_in_each_other_than_a_path_is_long_go_too() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("tmp");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(format!("{MOVED_UP}1")), "in the way").unwrap();
        let name = "d".repeat(200);
        let mut here = open(CWD, &folder).unwrap();
        for _ in 0..200 {
            rustix::fs::mkdirat(&here, name.as_str(), Mode::RWXU).unwrap();
            here = open(&here, name.as_str()).unwrap();
        }
        drop(here);
        remove_folder(&folder).unwrap();
        assert!(!folder.exists());
    }
}
