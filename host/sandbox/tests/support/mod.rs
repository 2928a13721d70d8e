//! A Session's sandbox over folders of its own, and what its commands did.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use floe_sandbox::{
    Child, ConfinedCommand, Control, Event, Program, Sandbox, SandboxError, SandboxOptions,
    Streams, Tier, Widening, WorkspaceMode,
};
use rustix::fs::{Mode, OFlags};

/// The helper program of this crate.
pub(crate) const HELPER: &str = env!("CARGO_BIN_EXE_floe-sandbox-helper");

/// No test waits longer for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A Session and its folders, which go with it.
pub(crate) struct Session {
    pub(crate) sandbox: Sandbox,
    /// The Workspace, by its canonical path.
    pub(crate) workspace: PathBuf,
    /// A folder beside it that no command may see.
    pub(crate) outside: PathBuf,
    folder: tempfile::TempDir,
}

impl Session {
    pub(crate) fn new() -> Session {
        Session::with(|_, _| {})
    }

    /// Prepares the Workspace and changes the options before the sandbox is made.
    pub(crate) fn with(prepare: impl FnOnce(&Path, &mut SandboxOptions)) -> Session {
        let folder = tempfile::Builder::new()
            .prefix("floe-test-")
            .tempdir()
            .unwrap();
        let root = folder.path().canonicalize().unwrap();
        let make = |name: &str| {
            let path = root.join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let (workspace, outside) = (make("workspace"), make("outside"));
        let mut options = SandboxOptions::new(
            open(&workspace),
            workspace.clone(),
            make("home"),
            make("tmp"),
            make("outputs"),
        );
        options.helper = HELPER.into();
        options.tier = asked_for_bwrap().then_some(Tier::Bwrap);
        prepare(&workspace, &mut options);
        let sandbox = Sandbox::new(options).unwrap();
        Session {
            sandbox,
            workspace,
            outside,
            folder,
        }
    }

    /// The folder that holds the Session's own.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The environment that these tests give to commands.
    pub(crate) fn environment(&self) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
        let mut environment = self.sandbox.environment();
        let path = std::env::var_os("PATH").unwrap_or_default();
        environment.extend([("PATH".into(), path), ("LANG".into(), "C.UTF-8".into())]);
        environment
    }

    pub(crate) fn command(&self, script: &str) -> ConfinedCommand {
        ConfinedCommand {
            program: Program::Shell {
                script: script.into(),
            },
            working_directory: PathBuf::new(),
            environment: self.environment(),
            terminal: None,
            workspace: WorkspaceMode::default(),
            widening: Widening::default(),
        }
    }

    pub(crate) fn try_spawn(&self, script: &str) -> Result<Child, SandboxError> {
        self.sandbox.spawn(&self.command(script))
    }

    pub(crate) fn spawn(&self, script: &str) -> Running {
        Running::new(
            self.try_spawn(script)
                .unwrap_or_else(|error| panic!("{error}")),
        )
    }

    /// Runs a script to its end.
    pub(crate) fn run(&self, script: &str) -> Outcome {
        self.spawn(script).finish()
    }

    /// Runs a script that must succeed, and returns what it printed.
    pub(crate) fn ok(&self, script: &str) -> String {
        let outcome = self.run(script);
        assert_eq!(
            outcome.event,
            Event::Exited(0),
            "{script}\n{}{}",
            outcome.stdout,
            outcome.stderr
        );
        outcome.stdout
    }

    /// Runs a script that must fail, and returns what it complained about.
    pub(crate) fn refused(&self, script: &str) -> String {
        let outcome = self.run(script);
        assert_ne!(
            outcome.event,
            Event::Exited(0),
            "{script} went through: {}",
            outcome.stdout
        );
        outcome.stderr
    }

    /// A file outside the Workspace that everybody may read and write, as far as its mode goes.
    pub(crate) fn canary(&self) -> Canary {
        let path = self.outside.join("canary");
        fs::write(&path, CANARY).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        Canary(path)
    }
}

const CANARY: &str = "the canary lives";

/// A file that no command may read or change.
pub(crate) struct Canary(pub(crate) PathBuf);

impl Canary {
    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub(crate) fn assert_untouched(&self) {
        assert_eq!(fs::read_to_string(&self.0).unwrap(), CANARY);
        let mode = fs::metadata(&self.0).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o666);
    }

    pub(crate) fn assert_unread(&self, output: &Outcome) {
        assert!(
            !output.stdout.contains(CANARY),
            "the canary was read: {}",
            output.stdout
        );
    }
}

/// A running command whose output is collected.
pub(crate) struct Running {
    pub(crate) control: Control,
    pub(crate) pid: u32,
    pub(crate) stdin: Option<OwnedFd>,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
}

impl Running {
    pub(crate) fn new(child: Child) -> Running {
        let Streams::Pipes {
            stdin,
            stdout,
            stderr,
        } = child.streams
        else {
            panic!("a terminal")
        };
        let collect = |stream: OwnedFd| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = File::from(stream).read_to_end(&mut bytes);
                bytes
            })
        };
        Running {
            control: child.control,
            pid: child.pid,
            stdin: Some(stdin),
            stdout: collect(stdout),
            stderr: collect(stderr),
        }
    }

    pub(crate) fn write(&self, text: &str) {
        let stdin = self.stdin.as_ref().unwrap().try_clone().unwrap();
        File::from(stdin).write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn finish(mut self) -> Outcome {
        self.stdin = None;
        let event = wait(&self.control);
        let text = |stream: JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&stream.join().unwrap()).into_owned()
        };
        Outcome {
            event,
            stdout: text(self.stdout),
            stderr: text(self.stderr),
        }
    }
}

/// How a command ended and what it wrote.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) event: Event,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Waits for a command's end, but not forever.
pub(crate) fn wait(control: &Control) -> Event {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(event) = control.try_event() {
            return event;
        }
        assert!(Instant::now() < deadline, "the command did not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until `condition` holds.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn open(folder: &Path) -> OwnedFd {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(folder, flags, Mode::empty()).unwrap()
}

/// The host's processes whose environment or arguments hold `mark`.
pub(crate) fn processes_with(mark: &str) -> Vec<u32> {
    let holds = |pid: u32, file: &str| {
        fs::read(format!("/proc/{pid}/{file}"))
            .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(mark))
    };
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| {
            pid != std::process::id() && (holds(pid, "environ") || holds(pid, "cmdline"))
        })
        .collect()
}

/// Set in a run of these tests by an ordinary user.
const UNPRIVILEGED: &str = "FLOE_TEST_UNPRIVILEGED";

/// The user that has nothing.
const NOBODY: u32 = 65534;

/// Runs all tests of this program once more as a user without privileges, if this one is root.
pub(crate) fn again_without_privileges() {
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root()
        || std::env::var_os(UNPRIVILEGED).is_some()
        || asked_for_bwrap()
    {
        return;
    }
    let program = std::env::current_exe().unwrap();
    let output = std::process::Command::new(&program)
        .uid(NOBODY)
        .gid(NOBODY)
        .env(UNPRIVILEGED, "1")
        .env("HOME", "/nonexistent")
        .current_dir("/")
        .output();
    let output = match output {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            eprintln!(
                "not run: an ordinary user may not execute {}",
                program.display()
            );
            return;
        }
        other => other.unwrap(),
    };
    assert_all_held(&output);
}

fn assert_all_held(output: &std::process::Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!text.contains("running 0 tests"), "{text}");
}

/// Where no process namespace ends what a command has started, the leader does: when the command ends and when it is killed.
pub(crate) fn hunts_descendants_down(session: &Session) {
    let mark = format!("floe-test-hunted-{}", session.folder().display());
    let daemon = format!("(setsid bash -c 'exec -a {mark} sleep 600' &)");
    let outcome = session.run(&format!("{daemon}; exit 3"));
    assert_eq!(outcome.event, Event::Exited(3));
    eventually("the daemon is gone", || processes_with(&mark).is_empty());

    let running = session.spawn(&format!("trap '' TERM; {daemon}; touch ready; sleep 600"));
    eventually("it runs", || {
        session.workspace.join("ready").exists() && !processes_with(&mark).is_empty()
    });
    running.control.kill();
    assert_eq!(running.finish().event, Event::SandboxEnded);
    eventually("all of it is gone", || processes_with(&mark).is_empty());
}

/// Set in a run of these tests within walls that bubblewrap builds.
const WITHIN_BWRAP: &str = "FLOE_TEST_WITHIN_BWRAP";

/// Whether this run is one within walls that bubblewrap builds.
pub(crate) fn asked_for_bwrap() -> bool {
    std::env::var_os(WITHIN_BWRAP).is_some()
}

/// Whether bubblewrap is installed, as it must be where the project's checks run for all.
pub(crate) fn has_bwrap() -> bool {
    let installed = Path::new("/usr/bin/bwrap").exists();
    let required = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(installed || !required, "bubblewrap is not installed");
    if !installed {
        eprintln!("not run: bubblewrap is not installed");
    }
    installed
}

/// Runs all tests of this program once more, by the same user, within walls that bubblewrap builds.
pub(crate) fn again_within_bwrap() {
    if asked_for_bwrap() || !has_bwrap() {
        return;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .env(WITHIN_BWRAP, "1")
        .output();
    assert_all_held(&output.unwrap());
}

/// This test program once more, as a host of its own that runs only the (ignored) test `name`.
pub(crate) fn host(name: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--include-ignored", "--nocapture"]);
    command
}
