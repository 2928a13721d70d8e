//! The `/proc` of the command's own process namespace, with nothing in it that reaches beyond.

use std::path::Path;

use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

use super::detached::{Depth, READ, attach, clone_tree, new_mount, set_attributes};
use super::limits::{self, ProcessCap};
use super::mounts::Tree;
use super::{failed, stands};
use crate::error::SandboxError;
use crate::layer::{Layer, LayerName};
use crate::policy::Limits;

/// What of `/proc` speaks of the machine and can be written by its root: read-only.
pub(crate) const READ_ONLY: [&str; 5] = ["sys", "sysrq-trigger", "irq", "bus", "fs"];

/// What of `/proc` shows the kernel's or the machine's insides: hidden.
pub(crate) const HIDDEN: [&str; 16] = [
    "acpi",
    "asound",
    "cmdline",
    "kcore",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "pagetypeinfo",
    "sched_debug",
    "scsi",
    "slabinfo",
    "timer_list",
    "vmallocinfo",
];

/// Mounts `/proc`, caps the namespace's processes through it, and seals what must not change any more.
pub(super) fn mount(tree: &Tree<'_>, limits: &Limits) -> Result<(ProcessCap, Layer), SandboxError> {
    let layer = LayerName::Proc;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let proc = new_mount("proc", &[], &[], attributes).map_err(failed(layer, "fsmount(proc)"))?;
    tree.place(&proc, Path::new("/proc"))
        .map_err(failed(layer, "move_mount(/proc)"))?;
    let cap = limits::cap_processes(&proc, limits)?;
    for name in READ_ONLY {
        let sealed = open(tree, name).and_then(|found| match found {
            None => Ok(()),
            Some(found) => {
                let clone = clone_tree(&found, "")?;
                set_attributes(
                    &clone,
                    READ | MountAttrFlags::MOUNT_ATTR_NOEXEC,
                    Depth::Recursive,
                )?;
                attach(&clone, &found, c"")
            }
        });
        sealed.map_err(failed(
            layer,
            format!("mount_setattr(/proc/{name}, MOUNT_ATTR_RDONLY)"),
        ))?;
    }
    for name in HIDDEN {
        let hidden = open(tree, name).and_then(|found| match found {
            None => Ok(()),
            Some(found) => tree.cover(&found),
        });
        hidden.map_err(failed(layer, format!("mount on /proc/{name}")))?;
    }
    Ok((
        cap,
        stands(
            layer,
            "of the command's own processes; what speaks of the machine is read-only or hidden",
        ),
    ))
}

fn open(tree: &Tree<'_>, name: &str) -> rustix::io::Result<Option<std::os::fd::OwnedFd>> {
    match tree.open(&Path::new("/proc").join(name)) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}
