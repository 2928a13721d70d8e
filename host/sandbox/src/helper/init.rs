//! The leader's life: starts the command, collects orphans, passes signals on, tells how the command ended, and is the
//! first to go when nobody holds the control socket any more.
//!
//! Within walls the leader is pid 1 of its namespace, so that its end is the end of all that the command started: the
//! kernel sees to it. Without walls it is a subreaper, hunts its descendants down itself, and may lose the race.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, kill_process,
    kill_process_group,
};

use super::exec::{self, Running, Start};
use super::watch::{Processes, Watch};
use super::{last_errno, limits};
use crate::control::{self, Received, Report, Request};
use crate::error::SandboxError;
use crate::layer::Layer;
use crate::plan::Execution;

/// Leads a command within walls, all of which stand by now.
pub(super) fn lead_confined(
    control: &OwnedFd,
    execution: &Execution,
    start: Start,
    lifeline: OwnedFd,
    layers: Vec<Layer>,
) -> Result<(), SandboxError> {
    // The first process waits outside; its end is noticed by the lifeline, and by this where that comes first.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    // What this process knows and holds is none of the command's business.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(host("prctl(PR_SET_DUMPABLE)"))?;
    let children = watch_children()?;
    let mut watch = Watch::over(execution, Processes::OfNamespace)?;
    let running = start.run()?;
    announce(control, &running, layers)?;
    follow(control, &running, &children, Some(&lifeline), &mut watch);
    Ok(())
}

/// Leads a command within walls that leave it among the machine's own processes. All of them stand by now.
pub(super) fn lead_landlocked(
    control: &OwnedFd,
    execution: &Execution,
    start: Start,
    layers: Vec<Layer>,
) -> Result<(), SandboxError> {
    // What this process knows and holds is none of the command's business.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(host("prctl(PR_SET_DUMPABLE)"))?;
    lead_among_others(control, execution, start, layers)
}

/// Leads a command without walls.
pub(super) fn lead_unconfined(
    control: &OwnedFd,
    execution: &Execution,
    workspace: OwnedFd,
    streams: Vec<OwnedFd>,
) -> Result<(), SandboxError> {
    limits::volunteer_for_the_out_of_memory_killer()?;
    let script = exec::write_script(execution)?;
    let start = exec::prepare(execution, &workspace, streams)?;
    lead_among_others(control, execution, start, Vec::new())?;
    drop(script);
    Ok(())
}

/// Leads a command whose processes are none of a namespace of their own.
fn lead_among_others(
    control: &OwnedFd,
    execution: &Execution,
    start: Start,
    layers: Vec<Layer>,
) -> Result<(), SandboxError> {
    rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))
        .map_err(host("prctl(PR_SET_CHILD_SUBREAPER)"))?;
    let children = watch_children()?;
    let mut watch = Watch::over(execution, Processes::Descendants)?;
    let ended = start.run().and_then(|running| {
        announce(control, &running, layers)?;
        follow(control, &running, &children, None, &mut watch);
        let _ = kill_process_group(running.pid, Signal::KILL);
        Ok(())
    });
    kill_descendants();
    ended
}

fn host(call: &'static str) -> impl FnOnce(Errno) -> SandboxError {
    move |errno| SandboxError::Host {
        call: call.to_owned(),
        errno: errno.raw_os_error(),
    }
}

fn announce(control: &OwnedFd, running: &Running, layers: Vec<Layer>) -> Result<(), SandboxError> {
    let master: Vec<_> = running.master.iter().map(AsFd::as_fd).collect();
    control::send(control, &Report::Ready(layers), &master).map_err(|error| SandboxError::Helper {
        detail: error.to_string(),
    })
}

/// A descriptor that polls readable when a child has changed its state.
fn watch_children() -> Result<OwnedFd, SandboxError> {
    // SAFETY: all bytes zero is a valid signal set, which the calls below fill and read; nothing is written back.
    let watch = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if watch == -1 {
        return Err(host("signalfd")(last_errno()));
    }
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(watch) })
}

/// How long what a command has started may go on after its end, to write what it still has, unless the host ends it first.
const LEFTOVERS: Duration = Duration::from_secs(2);

/// Returns when the command has ended, that has been told and nothing of it is left, when it is to be ended and that has
/// been told, or when nobody wants it any more.
fn follow(
    control: &OwnedFd,
    running: &Running,
    children: &OwnedFd,
    lifeline: Option<&OwnedFd>,
    watch: &mut Watch<'_>,
) {
    let mut grace = Grace::default();
    let mut leftovers_until: Option<Instant> = None;
    loop {
        if let Some(end) = grace.take_end(running.pid) {
            let _ = control::send(control, &end, &[]);
            leftovers_until = Some(Instant::now() + LEFTOVERS);
        }
        if leftovers_until.is_some_and(|until| Instant::now() >= until || is_alone()) {
            return;
        }
        if let Some(excess) = watch.look() {
            if leftovers_until.is_none() {
                let _ = control::send(control, &Report::Stopped(excess), &[]);
            }
            return;
        }
        let mut polled = vec![
            PollFd::new(control, PollFlags::IN),
            PollFd::new(children, PollFlags::IN),
        ];
        polled.extend(lifeline.map(|lifeline| PollFd::new(lifeline, PollFlags::IN)));
        let leftovers = leftovers_until.map_or(Duration::MAX, |until| {
            until.saturating_duration_since(Instant::now())
        });
        let patience = watch.patience().min(grace.patience()).min(leftovers);
        let patience = Timespec::try_from(patience).ok();
        match poll(&mut polled, patience.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        let spoke = |index: usize| polled.get(index).is_some_and(|fd| !fd.revents().is_empty());
        if spoke(2) {
            return;
        }
        if spoke(1) {
            drain(children);
            if let Some(end) = collect(running.pid) {
                grace.ended(end);
                continue;
            }
        }
        if spoke(0) {
            match control::receive::<Request>(control) {
                Ok(Received::Message(Request::Signal(libc::SIGTERM), _)) => {
                    ask_to_end(running.pid);
                    grace.begin();
                }
                Ok(Received::Message(Request::Signal(number), _)) => signal(running.pid, number),
                Ok(Received::Message(Request::Plan, _) | Received::Nothing) => {}
                Ok(Received::End) | Err(_) => return,
            }
        }
    }
}

fn drain(children: &OwnedFd) {
    let mut record = [0_u8; size_of::<libc::signalfd_siginfo>()];
    while rustix::io::read(children, &mut record).is_ok() {}
}

/// Whether nothing is left of all that came from this process.
fn is_alone() -> bool {
    let seen = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(
        rustix::process::waitid(WaitId::All, seen),
        Err(Errno::CHILD)
    )
}

/// Collects every child that has ended, orphans included; the command's end if it is among them.
fn collect(command: Pid) -> Option<Report> {
    let mut end = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == command {
            end = Some(describe(status));
        }
    }
    end
}

fn describe(status: WaitStatus) -> Report {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Report::Exited(code),
        (None, Some(number)) => Report::Signaled(number),
        (None, None) => Report::Signaled(libc::SIGKILL),
    }
}

/// The time that a command's group has to end once it was asked to: where its first process goes at once, as a shell
/// does, the programs that it started still have the rest of it.
#[derive(Default)]
struct Grace {
    until: Option<Instant>,
    /// How the command ended, while others of its group go on.
    end: Option<Report>,
}

impl Grace {
    const LENGTH: Duration = Duration::from_secs(1);

    fn begin(&mut self) {
        self.until
            .get_or_insert_with(|| Instant::now() + Grace::LENGTH);
    }

    fn ended(&mut self, end: Report) {
        self.end = Some(end);
    }

    /// The end, when it is to be told: at once, but for a group that was asked to end and has time left.
    fn take_end(&mut self, group: Pid) -> Option<Report> {
        if self.end.is_some() && self.left() > Duration::ZERO && lives(group) {
            return None;
        }
        self.end.take()
    }

    /// How long at most to wait for news.
    fn patience(&self) -> Duration {
        match self.end {
            Some(_) => self.left(),
            None => Duration::MAX,
        }
    }

    fn left(&self) -> Duration {
        self.until.map_or(Duration::ZERO, |until| {
            until.saturating_duration_since(Instant::now())
        })
    }
}

/// Whether a process is left in the group.
fn lives(group: Pid) -> bool {
    rustix::process::test_kill_process_group(group).is_ok()
}

/// Asks the command's group to end, and the group that its terminal is given to. What is stopped goes on, to hear of it.
fn ask_to_end(command: Pid) {
    for group in [Some(command), foreground_of(command)]
        .into_iter()
        .flatten()
    {
        signal(group, libc::SIGTERM);
        signal(group, libc::SIGCONT);
    }
}

/// The group in the foreground of the command's terminal, where it has one that is given to others.
fn foreground_of(command: Pid) -> Option<Pid> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", command.as_raw_pid())).ok()?;
    // The fields behind the name, which may hold anything: state, parent, group, session, terminal, its foreground.
    let (_, fields) = stat.rsplit_once(')')?;
    let group: i32 = fields.split_ascii_whitespace().nth(5)?.parse().ok()?;
    // 1 and below is no group of the command's; -1 says that there is no terminal.
    let group = Some(group).filter(|group| *group > 1)?;
    Pid::from_raw(group).filter(|group| *group != command)
}

fn signal(group: Pid, number: i32) {
    // SAFETY: sends a signal to the command's group and touches no memory; a wrong number is refused.
    unsafe { libc::kill(-group.as_raw_pid(), number) };
}

/// How long descendants without walls are hunted.
const HUNT: Duration = Duration::from_secs(2);

/// Kills all that comes from this process, and what has become its own by that, until nothing is left.
///
/// A process that has been killed starts no other, so each round ends what the round before missed. What forks faster than
/// it is found may escape: only a process namespace is without that race.
fn kill_descendants() {
    let deadline = Instant::now() + HUNT;
    while Instant::now() < deadline {
        for pid in Processes::Descendants.list() {
            if let Some(pid) = Pid::from_raw(pid as i32) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Err(Errno::CHILD) => return,
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) | Err(_) => break,
            }
        }
        std::thread::yield_now();
    }
}
