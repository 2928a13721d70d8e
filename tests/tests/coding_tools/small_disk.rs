//! A small disk under a Workspace, which can be full or read-only. A test that asks for one runs again as a process of its own, in a mount
//! namespace that ends with it. Where this machine lets nobody mount, it says so and proves nothing; the project's own checks insist on it.

use std::path::{Path, PathBuf};
use std::process::Command;

use floe_workspace::Workspace;

use crate::rig::Rig;

/// Set where this program is the process of a test, to the folder that the disk is mounted on.
const DISK: &str = "FLOE_TEST_DISK";
/// Set to a file that says that the test has begun there.
const BEGUN: &str = "FLOE_TEST_BEGUN";
/// How a process ends that could not mount.
const NO_MOUNT: i32 = 77;

/// A mounted disk of 1 MiB.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// The disk, in the process that has one. None in the process that started it, once the test has passed there.
    pub(crate) fn for_test(name: &str) -> Option<SmallDisk> {
        if let Some(disk) = std::env::var_os(DISK) {
            std::fs::write(std::env::var_os(BEGUN).unwrap(), "").unwrap();
            return Some(SmallDisk(disk.into()));
        }
        let folder = tempfile::tempdir().unwrap();
        let (disk, begun) = (folder.path().join("disk"), folder.path().join("begun"));
        std::fs::create_dir(&disk).unwrap();
        let mount = format!(
            "mount -t tmpfs -o size=1m,mode=755 tmpfs \"${DISK}\" || exit {NO_MOUNT}; exec \"$@\""
        );
        let ran = Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", &mount, "sh"])
            .arg(std::env::current_exe().unwrap())
            .args([name, "--exact", "--test-threads=1", "--nocapture"])
            .env(DISK, &disk)
            .env(BEGUN, &begun)
            .output();
        match ran {
            Ok(ran) if begun.exists() => {
                let told = String::from_utf8_lossy(&ran.stderr);
                assert!(ran.status.success(), "{told}");
            }
            // Without a failure to start there it is the name that is wrong.
            Ok(ran) if ran.status.success() => panic!("there is no test {name}"),
            other => {
                let is_owed = std::env::var("CI").as_deref() == Ok("true");
                assert!(!is_owed, "nobody can mount here: {other:?}");
                eprintln!("{name}: nobody can mount here");
            }
        }
        None
    }

    /// A Session over the disk.
    pub(crate) fn rig(&self) -> Rig {
        let workspace = Workspace::open(&self.0).unwrap();
        Rig::with(|options| options.workspace = workspace)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What is on it: names and contents.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut files: Vec<(String, Vec<u8>)> = entries
            .map(|entry| entry.unwrap())
            .map(|entry| {
                let contents = std::fs::read(entry.path()).unwrap();
                (entry.file_name().into_string().unwrap(), contents)
            })
            .collect();
        files.sort();
        files
    }

    /// From now on nothing can be written on it.
    pub(crate) fn make_read_only(&self) {
        let done = Command::new("mount")
            .args(["-o", "remount,ro"])
            .arg::<&Path>(&self.0)
            .status()
            .unwrap();
        assert!(done.success());
    }
}
