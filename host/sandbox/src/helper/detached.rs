//! Mounts that are made, cloned and restricted before they are attached anywhere: whoever sees one sees it whole.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags};

/// What commands may only read.
pub(super) const READ: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY
    .union(MountAttrFlags::MOUNT_ATTR_NOSUID)
    .union(MountAttrFlags::MOUNT_ATTR_NODEV);
/// What commands may change.
pub(super) const WRITE: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
/// The restriction alone that takes writing away.
pub(super) const READ_ONLY: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY;

/// How far [`set_attributes`] goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Top,
    Recursive,
}

/// Opens what a view shows, by its path without links.
///
/// The path had none when the view was composed. One that is there now was put there since, perhaps by a command in a folder
/// that a person allowed it to write to, and could lead anywhere.
pub(super) fn open_shown(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::io::retry_on_intr(|| openat2(CWD, path, flags, Mode::empty(), resolve))
}

/// A detached clone of `path` with all that is mounted below it.
pub(super) fn clone_tree(at: impl AsFd, path: impl AsRef<Path>) -> rustix::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW
        | OpenTreeFlags::AT_NO_AUTOMOUNT
        | OpenTreeFlags::AT_EMPTY_PATH;
    rustix::mount::open_tree(at, path.as_ref().as_os_str().as_bytes(), flags)
}

/// Attaches a detached mount at `path` below `at`, or at `at` itself where that is empty.
pub(super) fn attach(mount: impl AsFd, at: impl AsFd, path: &CStr) -> rustix::io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(mount, c"", at, path, flags)
}

/// A detached file system in memory.
pub(super) fn memory(
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> rustix::io::Result<OwnedFd> {
    new_mount("tmpfs", options, &[], attributes)
}

/// A detached mount of a new file system.
pub(super) fn new_mount(
    kind: &str,
    options: &[(&str, &str)],
    flags: &[&str],
    attributes: MountAttrFlags,
) -> rustix::io::Result<OwnedFd> {
    let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        rustix::mount::fsconfig_set_string(&context, *name, *value)?;
    }
    for flag in flags {
        rustix::mount::fsconfig_set_flag(&context, *flag)?;
    }
    rustix::mount::fsconfig_create(&context)?;
    rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Adds restrictions to a mount; never takes one away.
pub(super) fn set_attributes(
    mount: impl AsFd,
    attributes: MountAttrFlags,
    depth: Depth,
) -> rustix::io::Result<()> {
    let mut change = libc::mount_attr {
        attr_set: attributes.bits().into(),
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = match depth {
        Depth::Top => libc::AT_EMPTY_PATH,
        Depth::Recursive => libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
    };
    let mount: BorrowedFd<'_> = mount.as_fd();
    // SAFETY: the descriptor is open, the path is a terminated string, and `change` is a whole `mount_attr` of the size
    // given, which the call only reads.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw mut change,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(super::last_errno())
    }
}

/// Whether an opened file or mount is a folder.
pub(super) fn is_folder(file: impl AsFd) -> rustix::io::Result<bool> {
    let status = rustix::fs::fstat(file)?;
    Ok(FileType::from_raw_mode(status.st_mode) == FileType::Directory)
}
