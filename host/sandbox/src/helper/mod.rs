//! The helper: this binary, re-executed, turning a plan into walls and leading the command within them.
//!
//! It starts single-threaded with an empty environment and three descriptors, of which the first is the control socket;
//! everything else comes over that socket. It decides nothing: it builds what the plan says, in the order of the modules
//! here, and any wall that does not stand ends it with a report. It must never run the command after a failure.

mod capabilities;
mod detached;
mod exec;
mod identities;
mod init;
mod inside;
pub(crate) mod landlock;
mod landlocked;
mod limits;
mod mounts;
mod namespaces;
mod network;
pub(crate) mod proc;
mod protect;
mod seccomp;
mod watch;
mod wrapping;

use std::convert::Infallible;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process::exit;

use rustix::io::Errno;

use crate::control::{self, Received, Report, Request};
use crate::error::{LayerFailure, SandboxError};
use crate::layer::{Layer, LayerName};
use crate::plan::wrapped::Inside;
use crate::plan::{Confined, Plan};

/// The hidden first argument that makes a process the helper.
pub(crate) const WORD: &str = "floe-sandbox-helper";

/// Must be called first in `main`, before any thread is started. In a process that [`crate::Sandbox`] started as its
/// helper it never returns; in any other it does nothing.
pub fn helper_main() -> Option<Infallible> {
    if std::env::args_os().nth(1).is_none_or(|word| word != WORD) {
        return None;
    }
    match take_control_socket() {
        Ok(control) => run(&control),
        // Nobody can be told.
        Err(_) => exit(2),
    }
}

/// Moves the control socket off descriptor 0, which the command's stdin will take, and closes whatever else a careless
/// host let through.
fn take_control_socket() -> rustix::io::Result<OwnedFd> {
    // SAFETY: `helper_main` runs first, so nothing in this process owns a descriptor above stderr yet.
    if unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0) } == -1 {
        return Err(last_errno());
    }
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = rustix::fs::open(
        "/dev/null",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok(control)
}

fn run(control: &OwnedFd) -> ! {
    report_panics(control);
    // A Ctrl-C in the person's terminal is the host's to handle.
    let _ = rustix::process::setsid();
    let failure = match receive_plan(control) {
        Ok((Plan::Anchor { network }, _)) => anchor(control, network),
        Ok((Plan::Listener, descriptors)) => listen(control, &descriptors[0], &descriptors[1]),
        Ok((Plan::Confined(plan), descriptors)) => confine(control, &plan, descriptors),
        Ok((Plan::Landlocked(plan), descriptors)) => landlocked::lead(control, &plan, descriptors),
        Ok((Plan::Wrapped(plan), descriptors)) => wrapping::wrap(control, &plan, descriptors),
        Ok((Plan::Inside(plan), _)) => inside::take_over(control, &plan),
        Ok((Plan::Unconfined(execution), mut descriptors)) => {
            let workspace = descriptors.remove(0);
            init::lead_unconfined(control, &execution, workspace, descriptors)
        }
        Err(failure) => Err(failure),
    };
    if let Err(failure) = failure {
        let _ = control::send(control, &Report::Failed(failure), &[]);
        exit(1);
    }
    exit(0);
}

/// A panic is reported like any other failure, since nobody reads the helper's stderr.
fn report_panics(control: &OwnedFd) {
    let Ok(control) = control.try_clone() else {
        return;
    };
    std::panic::set_hook(Box::new(move |panic| {
        let failure = SandboxError::Helper {
            detail: panic.to_string(),
        };
        let _ = control::send(&control, &Report::Failed(failure), &[]);
        exit(1);
    }));
}

fn receive_plan(control: &OwnedFd) -> Result<(Plan, Vec<OwnedFd>), SandboxError> {
    let unreadable = |detail: String| SandboxError::Helper { detail };
    let mut descriptors = match control::receive::<Request>(control) {
        Ok(Received::Message(Request::Plan, descriptors)) if !descriptors.is_empty() => descriptors,
        Ok(_) => return Err(unreadable("no plan came".to_owned())),
        Err(error) => return Err(unreadable(format!("no plan came: {error}"))),
    };
    let plan = File::from(descriptors.remove(0));
    let length = plan.metadata().map(|metadata| metadata.len() as usize);
    let mut bytes = vec![0; length.unwrap_or(0)];
    plan.read_exact_at(&mut bytes, 0)
        .map_err(|error| unreadable(format!("the plan cannot be read: {error}")))?;
    let plan: Plan = serde_json::from_slice(&bytes)
        .map_err(|error| unreadable(format!("the plan cannot be read: {error}")))?;
    let expected = match &plan {
        Plan::Anchor { .. } => 0,
        Plan::Listener => 2,
        Plan::Confined(confined) => 3 + streams(confined.execution.terminal),
        Plan::Landlocked(plan) => 1 + streams(plan.execution.terminal),
        Plan::Wrapped(plan) => {
            plan.with.count()
                + match &plan.inside {
                    Inside::Anchor { .. } => 0,
                    Inside::Command(enclosed) => streams(enclosed.execution.terminal),
                }
        }
        Plan::Inside(_) => 0,
        Plan::Unconfined(execution) => 1 + streams(execution.terminal),
    };
    if descriptors.len() != expected {
        return Err(unreadable(format!(
            "{} descriptors came instead of {expected}",
            descriptors.len()
        )));
    }
    Ok((plan, descriptors))
}

fn streams(terminal: Option<(u16, u16)>) -> usize {
    if terminal.is_some() { 0 } else { 3 }
}

/// Makes the Session's namespaces and hands them to the host, whose descriptors keep them alive.
fn anchor(control: &OwnedFd, network: bool) -> Result<(), SandboxError> {
    hand_over(control, namespaces::anchor(network)?)
}

fn hand_over(control: &OwnedFd, made: namespaces::Anchored) -> Result<(), SandboxError> {
    let descriptors = [made.user.as_fd(), made.network.as_fd()];
    control::send(control, &Report::Anchored(made.layers), &descriptors).map_err(|error| {
        SandboxError::Helper {
            detail: error.to_string(),
        }
    })
}

/// Makes the socket on which the host serves the Session's network. A socket belongs to the namespace in which it was made,
/// whoever holds it.
fn listen(control: &OwnedFd, user: &OwnedFd, network: &OwnedFd) -> Result<(), SandboxError> {
    namespaces::join(user, network)?;
    let socket = network::listen()?;
    control::send(control, &Report::Listening, &[socket.as_fd()]).map_err(|error| {
        SandboxError::Helper {
            detail: error.to_string(),
        }
    })
}

/// Stage 0: joins the Session's namespaces and forks the leader of the command's own.
fn confine(
    control: &OwnedFd,
    plan: &Confined,
    mut descriptors: Vec<OwnedFd>,
) -> Result<(), SandboxError> {
    let streams = descriptors.split_off(3);
    namespaces::join(&descriptors[1], &descriptors[2])?;
    let workspace = descriptors.remove(0);
    drop(descriptors);
    let lifeline = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(failed(LayerName::Namespaces, "pipe2"))?;
    namespaces::separate_processes()?;
    // SAFETY: this process has one thread, so the child may do anything that this one may.
    match unsafe { libc::fork() } {
        -1 => Err(failed(LayerName::Namespaces, "fork")(last_errno())),
        0 => {
            drop(lifeline.1);
            lead(control, plan, &workspace, streams, lifeline.0)
        }
        _ => {
            // What is left of this process waits for the leader, which dies with it.
            drop((workspace, streams, lifeline.0));
            close_control(control);
            let _ = capabilities::drop_all();
            let wait = || rustix::process::wait(rustix::process::WaitOptions::empty());
            while matches!(wait(), Err(Errno::INTR)) {}
            exit(0);
        }
    }
}

/// The host learns of the leader's end by the end of its socket, so no other copy may stay open.
fn close_control(control: &OwnedFd) {
    // The panic hook holds a copy of its own.
    let _ = std::panic::take_hook();
    // SAFETY: the descriptor is not used again: this process only waits and exits, without running destructors.
    unsafe { libc::close(std::os::fd::AsRawFd::as_raw_fd(control)) };
}

/// The leader: pid 1 of the command's process namespace. Builds the walls around itself, then runs the command.
fn lead(
    control: &OwnedFd,
    plan: &Confined,
    workspace: &OwnedFd,
    streams: Vec<OwnedFd>,
    lifeline: OwnedFd,
) -> Result<(), SandboxError> {
    let mut layers = vec![namespaces::separate_rest(workspace)?];
    let view = mounts::build(plan)?;
    layers.extend(view.layers);
    layers.push(limits::apply(&plan.execution.limits, view.processes)?);
    let start = exec::prepare(&plan.execution, &view.workspace, streams)?;
    let writable = landlock::open_writable(&plan.writable)?;
    layers.push(capabilities::drop_all()?);
    layers.push(landlock::restrict(writable)?);
    layers.push(seccomp::filter(seccomp::Sockets::OfNetwork)?);
    init::lead_confined(control, &plan.execution, start, lifeline, layers)
}

/// Turns an errno into the failure of a wall. The host adds the cause and the remedy, which it can see better.
fn failed(layer: LayerName, call: impl Into<String>) -> impl FnOnce(Errno) -> SandboxError {
    move |errno| {
        SandboxError::Layer(Box::new(LayerFailure {
            layer,
            call: call.into(),
            errno: errno.raw_os_error(),
            cause: String::new(),
            remedy: String::new(),
            others: Vec::new(),
        }))
    }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// A wall that stands.
fn stands(name: LayerName, detail: impl Into<String>) -> Layer {
    Layer::active(name, detail)
}
