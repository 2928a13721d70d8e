//! Layer 3: the new root. What the plan does not put there does not exist for the command.
//!
//! Everything is addressed by descriptor, folder by folder and never through a symbolic link, so that nothing that a
//! command left behind in a writable place can lead a mount astray.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, UnmountFlags};

use super::detached::{
    Depth, READ, READ_ONLY, WRITE, attach, clone_tree, is_folder, memory, new_mount, open_shown,
    set_attributes,
};
use super::limits::ProcessCap;
use super::{failed, identities, proc, protect, stands};
use crate::error::SandboxError;
use crate::layer::{Layer, LayerName};
use crate::plan::{Access, Bytes, Confined, Entry};

/// The root that the command sees, as this process now sees it too.
pub(super) struct View {
    /// The Workspace in it.
    pub(super) workspace: OwnedFd,
    /// How its processes are capped.
    pub(super) processes: ProcessCap,
    pub(super) layers: Vec<Layer>,
}

/// Where the new root is assembled: a folder that every system has. What lies below is out of reach by then.
const BASE: &CStr = c"/tmp";

/// What commands get of the machine's devices.
pub(super) const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// The unreadable file and the empty folder that masks are made of, while the root is assembled.
const MASK_FILE: &str = ".masked-file";
const MASK_FOLDER: &str = ".masked-folder";

/// Builds the view, enters it and lets go of the old root. The Workspace must be the working directory.
pub(super) fn build(plan: &Confined) -> Result<View, SandboxError> {
    let layer = LayerName::Mounts;
    rustix::mount::mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .map_err(failed(layer, "mount(/, MS_PRIVATE|MS_REC)"))?;

    // All that comes from the host is cloned before the new root covers a part of it.
    let mut clones = Vec::with_capacity(plan.view.len());
    for entry in &plan.view {
        clones.push(clone_source(entry)?);
    }
    let mut tree = Tree::new(plan)?;
    for (entry, clone) in plan.view.iter().zip(clones) {
        tree.put(entry, clone)?;
    }
    tree.enter()
}

/// A detached clone of what an entry takes from the host, already as restricted as the command will see it.
fn clone_source(entry: &Entry) -> Result<Option<OwnedFd>, SandboxError> {
    let (access, what) = match entry {
        Entry::Bind { source, access, .. } => (access, source.to_text()),
        Entry::Workspace { access } => (access, "the Workspace".to_owned()),
        _ => return Ok(None),
    };
    let failure = |call: &str| failed(LayerName::Mounts, format!("{call}({what})"));
    let clone = match entry {
        Entry::Bind { source, .. } => {
            let shown = open_shown(source.as_path()).map_err(failure("open"))?;
            clone_tree(&shown, "")
        }
        _ => clone_tree(CWD, "."),
    };
    let clone = clone.map_err(failure("open_tree"))?;
    let attributes = match access {
        Access::Read => READ,
        Access::Write => WRITE,
    };
    set_attributes(&clone, attributes, Depth::Recursive).map_err(failure("mount_setattr"))?;
    Ok(Some(clone))
}

/// The new root while it is assembled.
pub(super) struct Tree<'a> {
    plan: &'a Confined,
    root: OwnedFd,
    processes: ProcessCap,
    layers: Vec<Layer>,
}

impl<'a> Tree<'a> {
    fn new(plan: &'a Confined) -> Result<Tree<'a>, SandboxError> {
        let failure = |call: &'static str| failed(LayerName::Mounts, call);
        let root =
            memory(&[("mode", "0755")], WRITE).map_err(failure("fsmount(tmpfs, new root)"))?;
        attach(&root, CWD, BASE).map_err(failure("move_mount(new root)"))?;
        let file = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&root, MASK_FILE, file, Mode::empty()).map_err(failure("open(mask)"))?;
        rustix::fs::mkdirat(&root, MASK_FOLDER, Mode::from(0o555))
            .map_err(failure("mkdir(mask)"))?;
        Ok(Tree {
            plan,
            root,
            processes: ProcessCap::User,
            layers: Vec::new(),
        })
    }

    fn put(&mut self, entry: &Entry, clone: Option<OwnedFd>) -> Result<(), SandboxError> {
        let failure =
            |target: &Bytes| failed(LayerName::Mounts, format!("mount on {}", target.to_text()));
        match entry {
            Entry::Folder { target } => self
                .folder(target.as_path())
                .map(drop)
                .map_err(failure(target)),
            Entry::Link { target, to } => self
                .link(target.as_path(), to.as_path())
                .map_err(failure(target)),
            Entry::Bind { target, .. } => {
                let clone = clone.ok_or(Errno::BADF).map_err(failure(target))?;
                self.place(&clone, target.as_path())
                    .map_err(failure(target))
            }
            Entry::Mask { target } => self.mask(target.as_path()).map_err(failure(target)),
            Entry::Memory { target, size } => {
                let options = [("mode", "0755"), ("size", &size.to_string())];
                memory(&options, WRITE)
                    .and_then(|memory| self.place(&memory, target.as_path()))
                    .map_err(failure(target))
            }
            Entry::Devices { shared_memory } => self
                .devices(*shared_memory)
                .map_err(failed(LayerName::Mounts, "mount on /dev")),
            Entry::Proc => {
                let (cap, layer) = proc::mount(self, &self.plan.execution.limits)?;
                self.processes = cap;
                self.layers.push(layer);
                Ok(())
            }
            Entry::Workspace { .. } => {
                let target = &self.plan.workspace;
                let clone = clone.ok_or(Errno::BADF).map_err(failure(target))?;
                self.place(&clone, target.as_path())
                    .map_err(failure(target))?;
                let layer = protect::protect(self, self.plan)?;
                self.layers.push(layer);
                Ok(())
            }
            Entry::WorkspaceAlias { target } => self
                .open(self.plan.workspace.as_path())
                .and_then(|workspace| clone_tree(&workspace, ""))
                .and_then(|clone| self.place(&clone, target.as_path()))
                .map_err(failure(target)),
        }
    }

    /// Opens what is at `path` in the new root, whatever is mounted there.
    pub(super) fn open(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        rustix::io::retry_on_intr(|| {
            rustix::fs::openat2(
                &self.root,
                path,
                OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
                ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS,
            )
        })
    }

    /// Opens the folder `path` of the new root, making what is missing of it.
    fn folder(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = rustix::fs::openat(&self.root, ".", flags, Mode::empty())?;
        for component in path.components() {
            let Component::Normal(name) = component else {
                continue;
            };
            folder = match rustix::fs::openat(&folder, name, flags, Mode::empty()) {
                Err(Errno::NOENT) => {
                    rustix::fs::mkdirat(&folder, name, Mode::from(0o755))?;
                    rustix::fs::openat(&folder, name, flags, Mode::empty())?
                }
                other => other?,
            };
        }
        Ok(folder)
    }

    fn link(&self, path: &Path, to: &Path) -> rustix::io::Result<()> {
        let (folder, name) = self.parent(path)?;
        rustix::fs::symlinkat(to, folder, name)
    }

    fn parent<'p>(&self, path: &'p Path) -> rustix::io::Result<(OwnedFd, &'p std::ffi::OsStr)> {
        let folder = self.folder(path.parent().ok_or(Errno::INVAL)?)?;
        Ok((folder, path.file_name().ok_or(Errno::INVAL)?))
    }

    /// Attaches a detached mount at `path`, making an empty file or folder to hold it where nothing is.
    pub(super) fn place(&self, mount: &OwnedFd, path: &Path) -> rustix::io::Result<()> {
        let holder = if is_folder(mount)? {
            self.folder(path)?
        } else {
            match self.open(path) {
                Err(Errno::NOENT) => {
                    let (folder, name) = self.parent(path)?;
                    let file = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                    rustix::fs::openat(&folder, name, file, Mode::from(0o444))?;
                    self.open(path)?
                }
                other => other?,
            }
        };
        attach(mount, &holder, c"")
    }

    /// Hides what is at `path`, if anything is.
    fn mask(&self, path: &Path) -> rustix::io::Result<()> {
        match self.open(path) {
            Ok(hidden) => self.cover(&hidden),
            // What is not there, or only a link to what has a path of its own, needs no mask.
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Covers an opened file or folder with an unreadable one.
    pub(super) fn cover(&self, hidden: &OwnedFd) -> rustix::io::Result<()> {
        let name = if is_folder(hidden)? {
            MASK_FOLDER
        } else {
            MASK_FILE
        };
        let mask = clone_tree(&self.root, name)?;
        set_attributes(&mask, READ | MountAttrFlags::MOUNT_ATTR_NOEXEC, Depth::Top)?;
        attach(&mask, hidden, c"")
    }

    fn devices(&self, shared_memory: u64) -> rustix::io::Result<()> {
        const LINKS: [(&str, &str); 5] = [
            ("ptmx", "pts/ptmx"),
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
        ];
        let plain = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let dev = memory(&[("mode", "0755"), ("size", "64k")], plain)?;
        self.place(&dev, Path::new("/dev"))?;
        for name in DEVICES {
            let device = clone_tree(CWD, Path::new("/dev").join(name))?;
            // These are the machine's own, whose mode and owner its root may change. They are written to all the same.
            set_attributes(&device, plain | READ_ONLY, Depth::Top)?;
            self.place(&device, &Path::new("/dev").join(name))?;
        }
        let terminals = new_mount(
            "devpts",
            &[("mode", "0620"), ("ptmxmode", "0666")],
            &["newinstance"],
            plain,
        )?;
        self.place(&terminals, Path::new("/dev/pts"))?;
        let size = shared_memory.to_string();
        let shared = memory(&[("mode", "1777"), ("size", &size)], WRITE)?;
        self.place(&shared, Path::new("/dev/shm"))?;
        for (name, to) in LINKS {
            self.link(&Path::new("/dev").join(name), Path::new(to))?;
        }
        set_attributes(&dev, READ_ONLY, Depth::Top)
    }

    /// Makes the assembled root the root, and lets go of the old one.
    fn enter(mut self) -> Result<View, SandboxError> {
        let failure = |call: &'static str| failed(LayerName::Mounts, call);
        self.write_script()?;
        identities::verify(&self.root, &self.plan.identities)?;
        rustix::fs::unlinkat(&self.root, MASK_FILE, AtFlags::empty())
            .map_err(failure("unlink(mask)"))?;
        rustix::fs::unlinkat(&self.root, MASK_FOLDER, AtFlags::REMOVEDIR)
            .map_err(failure("rmdir(mask)"))?;
        set_attributes(&self.root, READ_ONLY, Depth::Top)
            .map_err(failure("mount_setattr(new root, MOUNT_ATTR_RDONLY)"))?;
        rustix::process::fchdir(&self.root).map_err(failure("fchdir(new root)"))?;
        rustix::process::pivot_root(".", ".").map_err(failure("pivot_root"))?;
        rustix::mount::unmount(".", UnmountFlags::DETACH)
            .map_err(failure("umount2(old root, MNT_DETACH)"))?;
        rustix::process::chdir("/").map_err(failure("chdir(/)"))?;
        let workspace = self
            .open(self.plan.workspace.as_path())
            .map_err(failure("open(the Workspace in the new root)"))?;
        let detail = format!(
            "{} entries, nothing else of the host exists",
            self.plan.view.len()
        );
        self.layers.insert(0, stands(LayerName::Mounts, detail));
        Ok(View {
            workspace,
            processes: self.processes,
            layers: self.layers,
        })
    }

    /// Puts a script that is too long for an argument where only this command finds it.
    fn write_script(&self) -> Result<(), SandboxError> {
        let Some(script) = self.plan.execution.long_script() else {
            return Ok(());
        };
        let failure = |errno| failed(LayerName::Mounts, "write(script)")(errno);
        let (folder, name) = self
            .parent(self.plan.execution.script_file.as_path())
            .map_err(failure)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, name, flags, Mode::from(0o444)).map_err(failure)?;
        let mut rest = script;
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&file, rest).map_err(failure)?..];
        }
        Ok(())
    }
}
