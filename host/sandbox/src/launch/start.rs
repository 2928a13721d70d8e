//! Starting a helper: it is given its plan and its descriptors, and its first word says whether the command runs.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::command::{Child, Streams};
use crate::control::{self, Control, Received, Report, Request};
use crate::diagnosis;
use crate::error::SandboxError;
use crate::helper;
use crate::layer::Layer;
use crate::plan::Plan;
use crate::reaper::Helper;

/// How long the helper may take until the command runs; far beyond what a slow disk needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A helper that has answered: what it said, what came with it, and the hold on it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) report: Report,
    pub(crate) descriptors: Vec<OwnedFd>,
    pub(crate) socket: OwnedFd,
    pub(crate) helper: Helper,
}

/// The helper as a program of its own, not within anything: what most tiers start.
pub(crate) fn program(helper: &Path) -> Command {
    let mut command = Command::new(helper);
    command.arg0("floe").arg(helper::WORD);
    command
}

/// Starts a helper with a plan that runs a command, and waits until the command runs. Its layers are those that this one
/// helper has built.
pub(crate) fn run(
    program: Command,
    plan: &Plan,
    descriptors: &[BorrowedFd<'_>],
    terminal: bool,
) -> Result<(Child, Vec<Layer>), SandboxError> {
    let pipes = if terminal { None } else { Some(Pipes::new()?) };
    let mut given = descriptors.to_vec();
    if let Some(pipes) = &pipes {
        given.extend([
            pipes.stdin.0.as_fd(),
            pipes.stdout.1.as_fd(),
            pipes.stderr.1.as_fd(),
        ]);
    }
    let mut answer = ask(program, plan, &given)?;
    let Report::Ready(layers) = answer.report else {
        return Err(unexpected());
    };
    let streams = match pipes {
        Some(Pipes {
            stdin,
            stdout,
            stderr,
        }) => Streams::Pipes {
            stdin: stdin.1,
            stdout: stdout.0,
            stderr: stderr.0,
        },
        None => Streams::Terminal(answer.descriptors.pop().ok_or_else(unexpected)?),
    };
    let pid = answer.helper.id();
    let control = Control::new(answer.socket, answer.helper).map_err(host("ioctl(FIONBIO)"))?;
    let child = Child {
        streams,
        control,
        pid,
    };
    Ok((child, layers))
}

/// Starts a helper, sends it its plan with the descriptors that belong to it, and waits for its first word.
///
/// The helper is executed without any step between fork and exec, because this process has many threads: its only
/// inherited descriptor is the control socket, as its stdin, and all others follow over that socket. `program` may hold
/// further arguments and streams, where something else is started that starts the helper.
pub(crate) fn ask(
    mut program: Command,
    plan: &Plan,
    descriptors: &[BorrowedFd<'_>],
) -> Result<Answer, SandboxError> {
    let plan = sealed("floe-plan", &serde_json::to_vec(plan).map_err(failed_plan)?)?;
    let (socket, theirs) = control::pair().map_err(host("socketpair"))?;
    let child = program
        .env_clear()
        .process_group(0)
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(host("posix_spawn(helper)"))?;
    // It holds the other end of the socket, which must close when the helper ends.
    drop(program);
    let helper = Helper::new(child);
    let mut all = vec![plan.as_fd()];
    all.extend_from_slice(descriptors);
    control::send(&socket, &Request::Plan, &all).map_err(host("sendmsg(plan)"))?;
    answer(socket, helper)
}

/// The helper's first word: what it made, or why it did not.
fn answer(socket: OwnedFd, helper: Helper) -> Result<Answer, SandboxError> {
    if !control::wait_readable(&socket, Some(PATIENCE)).map_err(host("poll"))? {
        return Err(SandboxError::Helper {
            detail: helper.post_mortem(),
        });
    }
    match control::receive(&socket).map_err(host("recvmsg"))? {
        Received::Message(Report::Failed(failure), _) => Err(diagnosis::explain(failure)),
        Received::Message(report, descriptors) => Ok(Answer {
            report,
            descriptors,
            socket,
            helper,
        }),
        Received::Nothing | Received::End => Err(SandboxError::Helper {
            detail: helper.post_mortem(),
        }),
    }
}

pub(crate) fn unexpected() -> SandboxError {
    SandboxError::Helper {
        detail: "it answered something else; is it the same version of Floe?".to_owned(),
    }
}

pub(crate) fn host(call: &'static str) -> impl Fn(io::Error) -> SandboxError {
    move |error| SandboxError::Host {
        call: call.to_owned(),
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    }
}

pub(crate) fn duplicate(descriptor: &OwnedFd) -> Result<OwnedFd, SandboxError> {
    descriptor
        .try_clone()
        .map_err(host("fcntl(F_DUPFD_CLOEXEC)"))
}

fn failed_plan(error: serde_json::Error) -> SandboxError {
    host("memfd_create(plan)")(error.into())
}

/// Bytes in memory that nobody can change any more.
pub(crate) fn sealed(name: &str, bytes: &[u8]) -> Result<OwnedFd, SandboxError> {
    let failure = host("memfd_create");
    let memory = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .map_err(|errno| failure(errno.into()))?;
    let mut memory = File::from(memory);
    memory.write_all(bytes).map_err(&failure)?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    rustix::fs::fcntl_add_seals(&memory, seals).map_err(|errno| failure(errno.into()))?;
    Ok(memory.into())
}

/// Three pipes, each as its reading and its writing end.
struct Pipes {
    stdin: (OwnedFd, OwnedFd),
    stdout: (OwnedFd, OwnedFd),
    stderr: (OwnedFd, OwnedFd),
}

impl Pipes {
    fn new() -> Result<Pipes, SandboxError> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|errno| host("pipe2")(errno.into()));
        Ok(Pipes {
            stdin: pipe()?,
            stdout: pipe()?,
            stderr: pipe()?,
        })
    }
}
