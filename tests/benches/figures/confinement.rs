//! What confinement costs: `true` to its reported end within walls, without them, and, to compare, under bubblewrap where that is
//! installed: as the second kind of our walls, and alone with the same policy written by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use floe_sandbox::{
    ConfinedCommand, Event, Program, Sandbox, SandboxOptions, Tier, Widening, WorkspaceMode,
};
use floe_workspace::Workspace;

use crate::figures::{Effort, Figures, Goal};

pub(crate) fn measure(figures: &mut Figures<'_>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folders = Folders::new(folder.path());
    let mut spawn = |what: &str, goal: Goal, tier: Tier| {
        let sandbox = folders.sandbox(tier);
        figures.measure(what, goal, Effort::LONG, |count| {
            (0..count).map(|_| run(&sandbox)).collect()
        })
    };
    let confined = spawn("a confined `true`", Goal::None, Tier::Native);
    let unconfined = spawn("an unconfined `true`", Goal::None, Tier::Unconfined);
    let alone = bubblewrap(figures, &folders);
    let goal = Goal::Median(Duration::from_millis(6));
    figures.add_difference("what confinement adds", goal, confined, unconfined);
    if alone.is_some() {
        let sandbox = folders.sandbox(Tier::Bwrap);
        let what = "a `true` confined by way of bubblewrap";
        figures.measure(what, Goal::None, Effort::LONG, |count| {
            (0..count).map(|_| run(&sandbox)).collect()
        });
    }
}

/// The Workspace and the folders of the Session.
struct Folders {
    workspace: PathBuf,
    home: PathBuf,
    tmp: PathBuf,
    outputs: PathBuf,
}

impl Folders {
    fn new(folder: &Path) -> Folders {
        let make = |name: &str| {
            let path = folder.join(name);
            fs::create_dir_all(&path).expect("a folder");
            path.canonicalize().expect("its path")
        };
        Folders {
            workspace: make("workspace"),
            home: make("home"),
            tmp: make("tmp"),
            outputs: make("outputs"),
        }
    }

    fn sandbox(&self, tier: Tier) -> Sandbox {
        let workspace = Workspace::open(&self.workspace).expect("a Workspace");
        let opened = workspace.fd().try_clone_to_owned().expect("a descriptor");
        let mut options = SandboxOptions::new(
            opened,
            self.workspace.clone(),
            self.home.clone(),
            self.tmp.clone(),
            self.outputs.clone(),
        );
        options.helper = env!("CARGO_BIN_EXE_sandbox-helper").into();
        options.unconfined = tier == Tier::Unconfined;
        options.tier = Some(tier);
        Sandbox::new(options).expect("a sandbox")
    }
}

fn run(sandbox: &Sandbox) -> Duration {
    let command = ConfinedCommand {
        program: Program::Exec {
            program: "true".into(),
            args: Vec::new(),
        },
        working_directory: PathBuf::new(),
        environment: Vec::new(),
        terminal: None,
        workspace: WorkspaceMode::default(),
        widening: Widening::default(),
    };
    let start = Instant::now();
    let child = sandbox.spawn(&command).expect("it runs");
    let event = child.control.wait();
    let took = start.elapsed();
    assert_eq!(event, Event::Exited(0));
    took
}

/// `true` under bubblewrap alone, with the same view and the same rights as in our walls, as far as bubblewrap has them: without
/// limits, Landlock and seccomp. None where it is not installed.
fn bubblewrap(figures: &mut Figures<'_>, folders: &Folders) -> Option<Duration> {
    let mut bubblewrap = Command::new("bwrap");
    bubblewrap
        .args(["--unshare-all", "--unshare-user", "--die-with-parent"])
        .args(["--cap-drop", "ALL", "--hostname", "floe"])
        .args(["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"])
        .args(["--ro-bind-try", "/opt", "/opt"])
        .args([
            "--symlink",
            "usr/bin",
            "/bin",
            "--symlink",
            "usr/sbin",
            "/sbin",
        ])
        .args(["--symlink", "usr/lib", "/lib"])
        .args(["--symlink", "usr/lib64", "/lib64"])
        .args(["--dev", "/dev", "--proc", "/proc"])
        .args(["--ro-bind", "/proc/sys", "/proc/sys"]);
    for (option, source, target) in [
        ("--bind", &folders.tmp, "/tmp"),
        ("--bind", &folders.home, Sandbox::HOME),
        ("--ro-bind", &folders.outputs, Sandbox::OUTPUTS),
        ("--bind", &folders.workspace, Sandbox::WORKSPACE),
    ] {
        bubblewrap.arg(option).arg(source).arg(target);
    }
    bubblewrap
        .args(["--chdir", Sandbox::WORKSPACE, "--clearenv", "true"])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    if !bubblewrap.status().is_ok_and(|status| status.success()) {
        return None;
    }
    let once = || {
        let start = Instant::now();
        let status = bubblewrap.status().expect("it ran before");
        let took = start.elapsed();
        assert!(status.success());
        took
    };
    let mut samples = std::iter::repeat_with(once);
    let what = "`true` under bubblewrap alone, with the same view";
    let median = figures.measure(what, Goal::None, Effort::LONG, |count| {
        samples.by_ref().take(count as usize).collect()
    });
    Some(median)
}
