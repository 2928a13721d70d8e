//! The host's side: makes a plan, starts the helper with it, and hands back the command's streams and its control.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::control::Control;
use crate::error::SandboxError;
use crate::layer::{Confinement, Tier};
use crate::policy::Policy;

/// What a Session's sandbox is made from.
#[derive(Debug)]
pub struct SandboxOptions {
    /// The opened Workspace: its descriptor, not its path, decides what is mounted.
    pub workspace: OwnedFd,
    /// The Workspace's canonical path on the host, under which commands see it too (beside `/workspace`).
    pub workspace_path: PathBuf,
    /// The folder of the Session that commands see as `$HOME` ([`Sandbox::HOME`]).
    pub home_dir: PathBuf,
    /// The folder of the Session that commands see as `/tmp`.
    pub tmp_dir: PathBuf,
    /// The folder of the Session that commands see read-only as [`Sandbox::OUTPUTS`].
    pub outputs_dir: PathBuf,
    /// What the operator allows.
    pub policy: Policy,
    /// The binary whose `main` calls [`crate::helper_main`] first.
    pub helper: PathBuf,
    /// The person's home, which commands do not see, except the tool chains in it.
    pub person_home: Option<PathBuf>,
    /// The PATH on which tool chains are looked for.
    pub search_path: OsString,
    /// Run without walls. Only on the operator's explicit word.
    pub unconfined: bool,
}

impl SandboxOptions {
    /// The defaults: this very binary as the helper, the default policy, the host's own home and PATH, walls up.
    pub fn new(
        workspace: OwnedFd,
        workspace_path: PathBuf,
        home_dir: PathBuf,
        tmp_dir: PathBuf,
        outputs_dir: PathBuf,
    ) -> Self {
        SandboxOptions {
            workspace,
            workspace_path,
            home_dir,
            tmp_dir,
            outputs_dir,
            policy: Policy::default(),
            helper: PathBuf::from("/proc/self/exe"),
            person_home: std::env::home_dir(),
            search_path: std::env::var_os("PATH").unwrap_or_default(),
            unconfined: false,
        }
    }
}

/// A Session's sandbox: its commands share one user and one network namespace, `/tmp`, `$HOME` and the Workspace.
#[derive(Debug)]
pub struct Sandbox {
    options: SandboxOptions,
}

impl Sandbox {
    /// Where commands see the Session's home folder.
    pub const HOME: &'static str = "/floe/home";
    /// Where commands see the Session's outputs.
    pub const OUTPUTS: &'static str = "/floe/outputs";
    /// Where commands see the Workspace, beside its canonical host path.
    pub const WORKSPACE: &'static str = "/workspace";

    /// Makes a Session's sandbox. Nothing is spawned and no wall is tried before the first command.
    pub fn new(options: SandboxOptions) -> Result<Sandbox, SandboxError> {
        Ok(Sandbox { options })
    }

    /// Starts a command. Blocks for the few milliseconds until it runs, so call it from a thread that may block.
    pub fn spawn(&self, command: &ConfinedCommand) -> Result<Child, SandboxError> {
        let _ = (command, &self.options);
        Err(SandboxError::Helper {
            detail: "the native tier is being written".into(),
        })
    }

    /// How this Session's commands are confined.
    pub fn confinement(&self) -> Confinement {
        let tier = if self.options.unconfined {
            Tier::Unconfined
        } else {
            Tier::Native
        };
        Confinement {
            tier,
            layers: Vec::new(),
        }
    }

    /// The variables that make the sandbox usable: HOME and TMPDIR as the sandbox sets them, and where tool chains lie
    /// that would otherwise be looked for in HOME (`RUSTUP_HOME` and the like). A command's environment should end with them.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        Vec::new()
    }
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfinedCommand {
    /// What to run.
    pub program: Program,
    /// Where: relative to the Workspace; empty or `.` is its root.
    pub working_directory: PathBuf,
    /// The whole environment; nothing is added and nothing inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// Columns and rows of a terminal to run in; pipes without.
    pub terminal: Option<(u16, u16)>,
}

/// What a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// `bash -c SCRIPT`, byte for byte, of any length.
    Shell {
        /// The script.
        script: OsString,
    },
    /// A program, looked up on the command's own PATH unless it holds a slash.
    Exec {
        /// Its name or path.
        program: OsString,
        /// Its arguments, without its name.
        args: Vec<OsString>,
    },
}

/// A running command. The descriptors block; a reader may set `O_NONBLOCK` on them.
#[derive(Debug)]
pub struct Child {
    /// What it reads and writes.
    pub streams: Streams,
    /// The hold on it.
    pub control: Control,
    /// The helper's process id on the host.
    pub pid: u32,
}

/// What a command reads and writes.
#[derive(Debug)]
pub enum Streams {
    /// Three pipes.
    Pipes {
        /// Written by the host; closing it is the end of input.
        stdin: OwnedFd,
        /// Read by the host.
        stdout: OwnedFd,
        /// Read by the host.
        stderr: OwnedFd,
    },
    /// The master of a terminal that only the command has. A read fails with EIO once the command has ended.
    Terminal(OwnedFd),
}

/// The started helper.
#[derive(Debug)]
pub(crate) struct Helper;

/// Must be called first in `main`: a process that was started as the sandbox's helper never returns from it.
pub fn helper_main() -> Option<Infallible> {
    None
}
