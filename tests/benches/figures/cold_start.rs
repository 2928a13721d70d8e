//! `floe call list` as a whole process with a warm page cache, from its start to its end. Needs the optimised binary beside this
//! program, which `make bench` builds.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::figures::{Effort, Figures, Goal};

pub(crate) fn measure(figures: &mut Figures<'_>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let workspace = folder.path().join("workspace");
    std::fs::create_dir(&workspace).expect("a folder in it");
    std::fs::write(workspace.join("a.txt"), "a").expect("a file in that");
    let mut list = Command::new(binary());
    list.args(["call", "list", "{}", "--workspace"])
        .arg(&workspace)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder.path())
        .env("FLOE_HOME", folder.path().join("state"))
        .current_dir(&workspace)
        .stdin(Stdio::null());
    let mut once = || {
        let start = Instant::now();
        let ended = list.output();
        let took = start.elapsed();
        let ended = ended.expect("`floe` is beside this program; run: make bench");
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(ended.stdout, b"file\ta.txt\n");
        took
    };
    let goal = Goal::Median(Duration::from_millis(15));
    figures.measure(
        "`floe call list`, whole process",
        goal,
        Effort::LONG,
        |count| (0..count).map(|_| once()).collect(),
    );
}

/// `target/release/floe`, from `target/release/deps/figures-*`.
pub(crate) fn binary() -> PathBuf {
    let this = std::env::current_exe().expect("a path of this program");
    let built = this.parent().and_then(|deps| deps.parent());
    built.expect("two folders above it").join("floe")
}
