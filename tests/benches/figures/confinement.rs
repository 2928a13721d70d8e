//! What confinement costs: `true` to its reported end within walls, without them, and, to compare, under bubblewrap where that is
//! installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use floe_sandbox::{ConfinedCommand, Event, Program, Sandbox, SandboxOptions, Widening, WorkspaceMode};
use floe_workspace::Workspace;

use crate::figures::{Effort, Figures, Goal};

pub(crate) fn measure(figures: &mut Figures<'_>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut spawn = |what: &str, unconfined: bool| {
        let sandbox = sandbox(folder.path(), unconfined);
        figures.measure(what, Goal::None, Effort::LONG, |count| {
            (0..count).map(|_| run(&sandbox)).collect()
        })
    };
    let confined = spawn("a confined `true`", false);
    let unconfined = spawn("an unconfined `true`", true);
    let goal = Goal::Median(Duration::from_millis(6));
    figures.add_difference("what confinement adds", goal, confined, unconfined);
    bubblewrap(figures);
}

fn sandbox(folder: &Path, unconfined: bool) -> Sandbox {
    let make = |name: &str| {
        let path = folder.join(name);
        fs::create_dir_all(&path).expect("a folder");
        path.canonicalize().expect("its path")
    };
    let path = make("workspace");
    let workspace = Workspace::open(&path).expect("a Workspace");
    let opened = workspace.fd().try_clone_to_owned().expect("a descriptor");
    let mut options = SandboxOptions::new(opened, path, make("home"), make("tmp"), make("outputs"));
    options.helper = env!("CARGO_BIN_EXE_sandbox-helper").into();
    options.unconfined = unconfined;
    Sandbox::new(options).expect("a sandbox")
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

fn bubblewrap(figures: &mut Figures<'_>) {
    let mut bubblewrap = Command::new("bwrap");
    bubblewrap
        .args(["--unshare-all", "--unshare-user", "--die-with-parent"])
        .args(["--cap-drop", "ALL"])
        .args(["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"])
        .args(["--symlink", "usr/bin", "/bin"])
        .args(["--symlink", "usr/lib", "/lib"])
        .args(["--symlink", "usr/lib64", "/lib64"])
        .args([
            "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "true",
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    if !bubblewrap.status().is_ok_and(|status| status.success()) {
        return;
    }
    let once = || {
        let start = Instant::now();
        let status = bubblewrap.status().expect("it ran before");
        let took = start.elapsed();
        assert!(status.success());
        took
    };
    let mut samples = std::iter::repeat_with(once);
    figures.measure(
        "`true` under bubblewrap",
        Goal::None,
        Effort::LONG,
        |count| samples.by_ref().take(count as usize).collect(),
    );
}
