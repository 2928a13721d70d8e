//! A server as a process: started in a sandbox of its own, heard on its standard error, ended when it is let go.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use floe_protocol::{Keep, visible};
use floe_sandbox::{
    Child, ConfinedCommand, Control, Event, MinimumTier, Network, Policy, Program as Run, Sandbox,
    SandboxError, SandboxOptions, Streams, Widening, WorkspaceMode,
};
use floe_workspace::Workspace;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::program::Program;

/// Bytes of its standard error that are kept.
const TAIL: usize = 4096;
/// Lines of them that are shown.
const SHOWN_LINES: usize = 6;

/// Where servers run.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    pub(crate) workspace: Workspace,
    pub(crate) policy: Policy,
    pub(crate) helper: Option<PathBuf>,
    pub(crate) private: Vec<PathBuf>,
    pub(crate) person_home: Option<PathBuf>,
    pub(crate) search_path: OsString,
    /// Where each server gets a folder of its own.
    pub(crate) folder: PathBuf,
}

/// A server that runs.
pub(crate) struct Process {
    control: Control,
    tail: Arc<Mutex<Vec<u8>>>,
    hearing: AbortOnDropHandle<()>,
}

/// A server that has just been started.
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) stdin: Sender,
    pub(crate) stdout: Receiver,
    /// Where it sees the Workspace.
    pub(crate) root: PathBuf,
}

impl Ground {
    /// What a server may do: less than a command of the Session, whatever that may.
    fn policy(&self, program: &Program) -> Policy {
        let mut policy = self.policy.for_command(WorkspaceMode::ReadOnly);
        policy.network = Network::Off;
        // With Landlock alone what a project makes a server run would reach sockets of the machine, and nobody is asked about a tool
        // that only reads.
        policy.minimum_tier = MinimumTier::Native;
        policy.allow_hosts.clear();
        policy.extra_read.append(&mut policy.extra_write);
        policy.extra_read.extend(program.readable.iter().cloned());
        policy
    }

    /// Starts a server. Blocks.
    fn spawn(
        &self,
        name: &str,
        program: &Program,
        arguments: &[String],
    ) -> Result<(Child, PathBuf), SandboxError> {
        let host = |error: std::io::Error| SandboxError::Host {
            call: "mkdir(language server)".to_owned(),
            errno: error
                .raw_os_error()
                .unwrap_or(rustix::io::Errno::IO.raw_os_error()),
        };
        let own = self.folder.join(name);
        let folder = |name: &str| {
            let path = own.join(name);
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
            made.map(|()| path).map_err(host)
        };
        let workspace = self.workspace.fd().try_clone_to_owned().map_err(host)?;
        let mut options = SandboxOptions::new(
            workspace,
            self.workspace.canonical_path().to_owned(),
            folder("home")?,
            folder("tmp")?,
            folder("outputs")?,
        );
        options.policy = self.policy(program);
        options.private.clone_from(&self.private);
        options.person_home.clone_from(&self.person_home);
        options.search_path.clone_from(&self.search_path);
        if let Some(helper) = &self.helper {
            options.helper.clone_from(helper);
        }
        let sandbox = Sandbox::new(options)?;
        let command = ConfinedCommand {
            program: Run::Exec {
                program: program.path.clone().into(),
                args: arguments.iter().map(Into::into).collect(),
            },
            working_directory: PathBuf::new(),
            environment: self.environment(sandbox.environment()),
            terminal: None,
            workspace: WorkspaceMode::ReadOnly,
            widening: Widening::default(),
        };
        let child = sandbox.spawn_with_files(&command, &program.files)?;
        Ok((child, sandbox.workspace_path()))
    }

    /// The whole environment of a server: where programs are, and that tool chains neither fetch anything nor write beside the sources.
    fn environment(&self, sandbox: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
        let find = |name: &str| sandbox.iter().find(|(known, _)| known == name);
        let home = find("HOME").map(|(_, home)| PathBuf::from(home));
        let home = home.unwrap_or_default();
        let mut all: Vec<(OsString, OsString)> = [
            ("LANG", "C.UTF-8"),
            ("TERM", "dumb"),
            ("NO_COLOR", "1"),
            ("CARGO_NET_OFFLINE", "true"),
            ("GOPROXY", "off"),
            ("GOTOOLCHAIN", "local"),
            ("GOFLAGS", "-mod=readonly"),
            ("GIT_TERMINAL_PROMPT", "0"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .to_vec();
        all.push(("PATH".into(), self.search_path.clone()));
        all.push(("XDG_CACHE_HOME".into(), home.join(".cache").into()));
        all.push(("CARGO_TARGET_DIR".into(), home.join("target").into()));
        all.extend(sandbox);
        all
    }
}

/// Starts a server in a sandbox of its own.
///
/// # Errors
///
/// The sandbox could not be built or the program not be run.
pub(crate) async fn start(
    ground: Arc<Ground>,
    name: String,
    program: Program,
    arguments: Vec<String>,
) -> Result<Started, SandboxError> {
    let spawned =
        tokio::task::spawn_blocking(move || ground.spawn(&name, &program, &arguments)).await;
    let broke_off = |detail: &str| SandboxError::Helper {
        detail: detail.to_owned(),
    };
    let (child, root) = spawned.map_err(|_| broke_off("the host broke off"))??;
    let Streams::Pipes {
        stdin,
        stdout,
        stderr,
    } = child.streams
    else {
        return Err(broke_off("it was given a terminal"));
    };
    let unwatched = |_| broke_off("its pipes cannot be watched");
    let receiver = |pipe| Receiver::from_owned_fd_unchecked(not_blocking(pipe)?);
    let stdin = not_blocking(stdin).and_then(Sender::from_owned_fd_unchecked);
    let tail = Arc::new(Mutex::default());
    let hearing = tokio::spawn(hear(
        receiver(stderr).map_err(unwatched)?,
        Arc::clone(&tail),
    ));
    Ok(Started {
        process: Process {
            control: child.control,
            tail,
            hearing: AbortOnDropHandle::new(hearing),
        },
        stdin: stdin.map_err(unwatched)?,
        stdout: receiver(stdout).map_err(unwatched)?,
        root,
    })
}

fn not_blocking(pipe: OwnedFd) -> std::io::Result<OwnedFd> {
    rustix::io::ioctl_fionbio(&pipe, true)?;
    Ok(pipe)
}

/// Reads all that a server writes on its standard error, so that it never waits, and keeps the end.
async fn hear(mut stderr: Receiver, tail: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; TAIL];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&buffer[..read]);
        let excess = tail.len().saturating_sub(TAIL);
        tail.drain(..excess);
    }
}

impl Process {
    /// How it ended, once it has and all that it wrote is read; waits as long as this for it.
    pub(crate) async fn ended(&self, patience: Duration) -> Option<Event> {
        let pause = Duration::from_millis(10);
        let limit = Instant::now() + patience;
        loop {
            let event = self.control.try_event();
            let is_late = Instant::now() >= limit;
            if is_late || (event.is_some() && self.hearing.is_finished()) {
                return event;
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Ends it with all that it started, at once.
    pub(crate) fn kill(&self) {
        self.control.kill();
    }

    /// The last lines of its standard error; empty where there are none.
    pub(crate) fn last_words(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&tail).into_owned();
        drop(tail);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let from = lines.len().saturating_sub(SHOWN_LINES);
        let lines = lines[from..].iter();
        let shown: Vec<String> = lines.map(|line| visible(line, Keep::Nothing)).collect();
        shown.join("\n")
    }
}

/// The end of a process in words.
pub(crate) fn told(event: Option<&Event>) -> String {
    match event {
        Some(Event::Exited(code)) => format!("it exited with code {code}"),
        Some(Event::Signaled(signal)) => format!("it was ended by {}", signal.name()),
        Some(Event::Stopped(excess)) => format!("it was stopped: {excess}"),
        Some(Event::SandboxEnded) => "it was ended".to_owned(),
        None => "it closed its output".to_owned(),
    }
}
