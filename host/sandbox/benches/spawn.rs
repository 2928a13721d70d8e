//! What confinement costs: `true` to its reported end, within walls, without them, and under bubblewrap where that is
//! installed, in one run.
//!
//! `cargo bench -p floe-sandbox`

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use criterion::{Criterion, criterion_group, criterion_main};
use floe_sandbox::{ConfinedCommand, Event, Program, Sandbox, SandboxOptions};
use rustix::fs::{Mode, OFlags};

fn sandbox(folder: &Path, unconfined: bool) -> Sandbox {
    let make = |name: &str| {
        let path = folder.join(name);
        fs::create_dir_all(&path).unwrap();
        path.canonicalize().unwrap()
    };
    let workspace = make("workspace");
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&workspace, flags, Mode::empty()).unwrap();
    let mut options = SandboxOptions::new(
        opened,
        workspace,
        make("home"),
        make("tmp"),
        make("outputs"),
    );
    options.helper = env!("CARGO_BIN_EXE_floe-sandbox-helper").into();
    options.unconfined = unconfined;
    Sandbox::new(options).unwrap()
}

fn run(sandbox: &Sandbox, command: &ConfinedCommand) {
    let child = sandbox.spawn(command).unwrap();
    assert_eq!(child.control.wait(), Event::Exited(0));
}

fn spawn(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let command = ConfinedCommand {
        program: Program::Exec {
            program: "true".into(),
            args: Vec::new(),
        },
        working_directory: PathBuf::new(),
        environment: Vec::new(),
        terminal: None,
    };
    let mut group = criterion.benchmark_group("true");
    for (name, unconfined) in [("native", false), ("unconfined", true)] {
        let sandbox = sandbox(folder.path(), unconfined);
        group.bench_function(name, |bencher| bencher.iter(|| run(&sandbox, &command)));
    }
    group.bench_function("fork and exec alone", |bencher| {
        bencher.iter(|| assert!(Command::new("true").status().unwrap().success()));
    });
    let mut bubblewrap = Command::new("bwrap");
    bubblewrap.args([
        "--unshare-all",
        "--unshare-user",
        "--die-with-parent",
        "--cap-drop",
        "ALL",
    ]);
    bubblewrap.args([
        "--ro-bind",
        "/usr",
        "/usr",
        "--ro-bind",
        "/etc",
        "/etc",
        "--symlink",
        "usr/bin",
        "/bin",
    ]);
    bubblewrap.args([
        "--symlink",
        "usr/lib",
        "/lib",
        "--symlink",
        "usr/lib64",
        "/lib64",
    ]);
    bubblewrap
        .args([
            "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "true",
        ])
        .stdin(Stdio::null());
    if bubblewrap.status().is_ok_and(|status| status.success()) {
        group.bench_function("bubblewrap", |bencher| {
            bencher.iter(|| assert!(bubblewrap.status().unwrap().success()));
        });
    }
    group.finish();
}

criterion_group!(benches, spawn);
criterion_main!(benches);
