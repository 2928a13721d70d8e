//! How much folders hold: a walk in slices, by descriptor, that nothing in them can lead out of them or hold up.
//!
//! No link is followed, no file is opened (a FIFO would wait for a writer), and what is mounted below is not entered: the
//! Workspace may lie in `/tmp`. A file of several names counts by the share of each name. Not counted are files that have no
//! name any more, what lies in a folder that its owner has made unreadable, and what lies deeper than
//! [`DEEPEST`]; the disk's free space is watched as well.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

/// How deep is looked. Each level takes a descriptor.
const DEEPEST: usize = 128;

/// What an entry counts beside its blocks: an empty file takes its place on the disk too.
const ENTRY: u64 = 256;

/// A kernel's block, whatever the disk's is.
const BLOCK: u64 = 512;

/// How many entries are looked at between two looks at the clock.
const STRIDE: usize = 64;

/// A walk that is under way.
pub(super) struct Walk {
    /// The way from the folder that was begun with last to where the walk is.
    way: Vec<Dir>,
    /// What has not been begun with, opened anew: whoever reads through a descriptor moves its position.
    ahead: Vec<OwnedFd>,
    held: u64,
    cost: Duration,
}

impl Walk {
    /// A walk through `folders`.
    pub(super) fn of(folders: &[OwnedFd]) -> Walk {
        Walk {
            way: Vec::new(),
            ahead: folders.iter().filter_map(|f| enter(f, c".").ok()).collect(),
            held: 0,
            cost: Duration::ZERO,
        }
    }

    /// The bytes that were found so far.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// How long it took so far.
    pub(super) fn cost(&self) -> Duration {
        self.cost
    }

    /// Goes on for about as long as `slice`, and always for a stride; whether the walk is done.
    pub(super) fn go_on(&mut self, slice: Duration) -> bool {
        let started = Instant::now();
        loop {
            let done = (0..STRIDE).any(|_| self.step().is_none());
            if done || started.elapsed() >= slice {
                self.cost += started.elapsed();
                return done;
            }
        }
    }

    /// One entry; none when there is no further one.
    fn step(&mut self) -> Option<()> {
        let deep = self.way.len() >= DEEPEST;
        let Some(here) = self.way.last_mut() else {
            let folder = self.ahead.pop()?;
            self.begin(folder);
            return Some(());
        };
        let entry = match here.read() {
            Some(Ok(entry)) => entry,
            // The end of this folder, or of what can be read of it.
            Some(Err(_)) | None => {
                self.way.pop();
                return Some(());
            }
        };
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            return Some(());
        }
        let Ok(place) = here.fd() else {
            return Some(());
        };
        if matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
            match enter(place, name) {
                Ok(folder) if !deep => {
                    self.begin(folder);
                    return Some(());
                }
                // Another file system's.
                Err(Errno::XDEV) => return Some(()),
                _ => {}
            }
        }
        self.held += size(place, name);
        Some(())
    }

    fn begin(&mut self, folder: OwnedFd) {
        self.held += size(&folder, c"");
        self.way.extend(Dir::new(folder));
    }
}

/// Opens a folder of `place`, on the same mount: what is mounted there is another's. (Not by `openat2`: the filter of the
/// system calls, which holds for this process too, has none.)
fn enter(place: impl AsFd, name: &std::ffi::CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(&place, name, flags, Mode::empty())?;
    if mount(&folder)? == mount(&place)? {
        Ok(folder)
    } else {
        Err(Errno::XDEV)
    }
}

/// Which mount a folder lies on, as far as this kernel says it, and which device.
fn mount(folder: impl AsFd) -> rustix::io::Result<(u64, u32, u32)> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    let status = rustix::fs::statx(folder, c"", flags, StatxFlags::MNT_ID)?;
    Ok((
        status.stx_mnt_id,
        status.stx_dev_major,
        status.stx_dev_minor,
    ))
}

/// What one entry takes; nothing where it has gone meanwhile.
fn size(place: impl AsFd, name: &std::ffi::CStr) -> u64 {
    let mut flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    if name.is_empty() {
        flags |= AtFlags::EMPTY_PATH;
    }
    let wanted = StatxFlags::BLOCKS | StatxFlags::NLINK | StatxFlags::TYPE;
    let Ok(entry) = rustix::fs::statx(place, name, flags, wanted) else {
        return 0;
    };
    let names = match FileType::from_raw_mode(entry.stx_mode.into()) {
        FileType::Directory => 1,
        _ => u64::from(entry.stx_nlink.max(1)),
    };
    ENTRY + entry.stx_blocks.saturating_mul(BLOCK) / names
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn opened(folder: &Path) -> OwnedFd {
        File::open(folder).unwrap().into()
    }

    fn held(folder: &Path) -> u64 {
        let mut walk = Walk::of(&[opened(folder)]);
        while !walk.go_on(Duration::from_millis(1)) {}
        walk.held()
    }

    fn blocks(folder: &tempfile::TempDir, name: &str, kib: usize) {
        // Nothing that a file system could leave out.
        fs::write(folder.path().join(name), vec![b'x'; kib * 1024]).unwrap();
    }

    #[test]
    fn files_count_wherever_they_lie_and_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let before = held(folder.path());
        fs::create_dir_all(folder.path().join("a/b/c")).unwrap();
        blocks(&folder, "one", 1024);
        blocks(&folder, "a/b/c/two", 2048);
        fs::hard_link(folder.path().join("one"), folder.path().join("a/also")).unwrap();
        let found = held(folder.path()) - before;
        assert!((3 << 20..3 << 20 | 256 << 10).contains(&found), "{found}");
        // A second look at the same descriptor sees the same.
        let opened = opened(folder.path());
        for _ in 0..2 {
            let mut walk = Walk::of(std::slice::from_ref(&opened));
            while !walk.go_on(Duration::from_millis(1)) {}
            assert!(walk.held() > 3 << 20);
        }
    }

    #[test]
    fn links_lead_nowhere_and_a_fifo_holds_nothing_up() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        blocks(&outside, "large", 4096);
        let before = held(folder.path());
        symlink(outside.path(), folder.path().join("folder")).unwrap();
        symlink(outside.path().join("large"), folder.path().join("file")).unwrap();
        symlink("..", folder.path().join("up")).unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, 0o600.into(), 0).unwrap();
        let found = held(folder.path()) - before;
        assert!(found < 64 * 1024, "{found}");
    }

    #[test]
    fn a_folder_that_is_too_deep_ends_the_walk_there() {
        let folder = tempfile::tempdir().unwrap();
        let mut place = opened(folder.path());
        for _ in 0..DEEPEST * 4 {
            rustix::fs::mkdirat(&place, "d", 0o700.into()).unwrap();
            place = enter(&place, c"d").unwrap();
        }
        assert!(held(folder.path()) >= ENTRY * DEEPEST as u64);
    }

    #[test]
    fn many_entries_are_walked_in_slices() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..2000 {
            File::create(folder.path().join(number.to_string())).unwrap();
        }
        let mut walk = Walk::of(&[opened(folder.path())]);
        let mut slices = 1;
        while !walk.go_on(Duration::ZERO) {
            slices += 1;
        }
        assert!(slices > 2000 / STRIDE, "{slices}");
        assert!(walk.held() >= 2000 * ENTRY);
    }
}
