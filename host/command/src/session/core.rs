//! What a session and the task that waits for its end share: the way from the process's end to the moment when all its
//! output is collected and the end shows.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use floe_sandbox::{Event, Signal};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::aftermath::Aftermath;
use crate::input::Input;
use crate::launch::Held;
use crate::output::{Output, Source};
use crate::processes;
use crate::recording::Recording;
use crate::reports::ReportsChanged;
use crate::sessions::CommandLimits;
use crate::spec::{EndedCommand, Observe};
use crate::waiting::{InputKind, waits_for_input};
use crate::{CommandError, Status};

use super::announcement::Announcement;

/// After the end, output is collected until nothing came for this long (spec/environment.md 1.5).
const DRAIN_QUIET: Duration = Duration::from_millis(50);
/// For this long where what the command has left is not waiting for anything but its turn.
const DRAIN_BUSY: Duration = Duration::from_millis(500);
/// How soon it is looked at again then.
const DRAIN_LOOK: Duration = Duration::from_millis(10);
/// And never for longer than this, whatever still writes.
const DRAIN_LONGEST: Duration = Duration::from_secs(2);
/// What is read at the very end without waiting: more than a pipe holds.
const LAST_SWEEP: usize = 4 * 1024 * 1024;
/// How much of its unread output the report of an end carries, in characters.
const REPORTED_OUTPUT: usize = 4000;

/// What is known of a session before it starts.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) process_id: String,
    pub(crate) label: String,
    pub(crate) confinement: String,
    pub(crate) raw_output: bool,
}

/// What a session does its work with.
#[derive(Clone)]
pub(crate) struct Surroundings<'registry> {
    pub(crate) limits: &'registry CommandLimits,
    pub(crate) observer: Arc<dyn Observe>,
    /// Looks at what the command leaves behind, if somebody is to.
    pub(crate) aftermath: Option<Aftermath>,
    /// Told when a report falls due or is no longer to come.
    pub(crate) reports_changed: ReportsChanged,
    /// Does the I/O.
    pub(crate) runtime: &'registry Handle,
}

/// What a started command consists of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) hold: Held,
    pub(crate) input: Input,
    pub(crate) input_kind: Option<InputKind>,
    pub(crate) terminal: Option<Arc<Source>>,
    pub(crate) leader: u32,
    pub(crate) recording: Option<Arc<dyn Recording>>,
}

/// What the session shares with the task that waits for its end.
pub(crate) struct Core {
    pub(crate) identity: Identity,
    pub(crate) output: Arc<Output>,
    pub(crate) input: Arc<Input>,
    pub(crate) input_kind: Option<InputKind>,
    /// A process above all of the command's.
    pub(crate) leader: u32,
    pub(crate) input_wait: Duration,
    pub(crate) terminal: Option<Arc<Source>>,
    pub(crate) recording: Option<Arc<dyn Recording>>,
    pub(crate) runtime: Handle,
    /// `None` once the command has ended and its output is collected.
    pub(crate) hold: Mutex<Option<Arc<Held>>>,
    pub(crate) end: OnceLock<Status>,
    pub(crate) ended: Notify,
    /// When it ended.
    pub(crate) ended_at: OnceLock<Instant>,
    /// It was killed from here.
    pub(crate) killed: AtomicBool,
    /// It was asked to end, and what does not follow is killed soon.
    pub(crate) ending: AtomicBool,
    pub(crate) kept: AtomicBool,
    announcement: Mutex<Announcement>,
    /// A reader was told that all was read.
    pub(crate) end_told: AtomicBool,
    pub(crate) handles: AtomicUsize,
    pub(crate) last_named: Mutex<Instant>,
    observer: Arc<dyn Observe>,
    aftermath: Option<Aftermath>,
    /// What appeared in the Workspace until it ended.
    pub(crate) left_behind: OnceLock<String>,
    reports_changed: ReportsChanged,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("identity", &self.identity)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl Core {
    /// A command that was just started.
    pub(crate) fn new(identity: Identity, parts: Parts, surroundings: Surroundings<'_>) -> Core {
        let limits = surroundings.limits;
        Core {
            output: Arc::new(Output::new(
                limits.unread_output,
                identity.raw_output,
                parts.recording.clone(),
            )),
            input: Arc::new(parts.input),
            input_kind: parts.input_kind,
            leader: parts.leader,
            input_wait: limits.input_wait,
            terminal: parts.terminal,
            recording: parts.recording,
            runtime: surroundings.runtime.clone(),
            hold: Mutex::new(Some(Arc::new(parts.hold))),
            end: OnceLock::new(),
            ended: Notify::new(),
            ended_at: OnceLock::new(),
            killed: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            kept: AtomicBool::new(false),
            announcement: Mutex::default(),
            end_told: AtomicBool::new(false),
            handles: AtomicUsize::new(0),
            last_named: Mutex::new(Instant::now()),
            observer: surroundings.observer,
            aftermath: surroundings.aftermath,
            left_behind: OnceLock::new(),
            reports_changed: surroundings.reports_changed,
            identity,
        }
    }

    pub(crate) fn name(&self) {
        *self
            .last_named
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(crate) fn hold(&self) -> Option<Arc<Held>> {
        self.hold
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn status(&self) -> Status {
        self.end.get().cloned().unwrap_or(Status::Running)
    }

    pub(crate) fn kill(&self) {
        if let Some(hold) = self.hold() {
            self.killed.store(true, Ordering::SeqCst);
            self.want_announcement(false);
            hold.kill();
        }
    }

    /// Whether it was asked to end and has not.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst) && self.end.get().is_none()
    }

    /// Asks the command's group to end, once; whether it runs and was not asked before.
    pub(crate) fn ask_to_end(&self) -> bool {
        self.want_announcement(false);
        let Some(hold) = self.hold() else {
            return false;
        };
        let first = !self.ending.swap(true, Ordering::SeqCst);
        if first && hold.signal(Signal::TERMINATE).is_err() {
            self.kill();
        }
        first
    }

    /// Whether the command is known to wait for input right now. Looks at its processes, so not for every read.
    pub(crate) fn waits_for_input(&self) -> bool {
        self.hold().is_some()
            && self
                .input_kind
                .is_some_and(|kind| waits_for_input(self.leader, kind))
    }

    /// Waits for the command's end and collects what it printed.
    pub(crate) async fn supervise(self: Arc<Self>, sources: Vec<Arc<Source>>) {
        let mut readers = JoinSet::new();
        for source in &sources {
            let before = sources.first().filter(|first| !Arc::ptr_eq(first, source));
            readers.spawn(Arc::clone(&self.output).collect(Arc::clone(source), before.cloned()));
        }
        let Some(hold) = self.hold() else { return };
        let event = hold.event().await;
        // What it started may still hand on what it printed. It has until the pipes are quiet, and then ends as well.
        self.drain(&mut readers, &sources).await;
        hold.kill();
        readers.shutdown().await;
        drop(hold);
        if let Some(aftermath) = &self.aftermath
            && let Some(left) = aftermath.look(&self.runtime).await
        {
            let _ = self.left_behind.set(left);
        }
        self.finish(event);
    }

    async fn drain(&self, readers: &mut JoinSet<()>, sources: &[Arc<Source>]) {
        let started = Instant::now();
        let longest = started + DRAIN_LONGEST;
        let all_at_end = async { while readers.join_next().await.is_some() {} };
        tokio::pin!(all_at_end);
        let mut look_at = started + DRAIN_QUIET;
        while Instant::now() < longest {
            if tokio::time::timeout_at(look_at.min(longest), &mut all_at_end)
                .await
                .is_ok()
            {
                return;
            }
            let now = Instant::now();
            let quiet_since = self.output.last_arrival().max(started);
            look_at = quiet_since + DRAIN_QUIET;
            if look_at > now {
                continue;
            }
            // Quiet may also mean that this machine is too busy to read, or to run what is about to write.
            let swept: usize = sources
                .iter()
                .map(|source| self.output.sweep(source, LAST_SWEEP))
                .sum();
            let patient = quiet_since + DRAIN_BUSY > now;
            if swept == 0 && !(patient && processes::is_busy(self.leader)) {
                return;
            }
            look_at = now + DRAIN_LOOK;
        }
    }

    fn finish(&self, event: Event) {
        let status = match event {
            Event::Exited(code) => Status::Exited(code),
            Event::Signaled(signal) => Status::Signaled(signal.name()),
            Event::Stopped(excess) => Status::Stopped(excess),
            Event::SandboxEnded if self.killed.load(Ordering::SeqCst) => {
                Status::Signaled(Signal::KILL.name())
            }
            Event::SandboxEnded => Status::Lost(CommandError::SandboxEnded),
        };
        *self.hold.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.input.shut();
        let _ = self.ended_at.set(Instant::now());
        let _ = self.end.set(status);
        self.output.close();
        self.ended.notify_waiters();
        self.announce_if_due();
    }

    /// Asks for the end to be announced, or no longer does.
    pub(crate) fn want_announcement(&self, wanted: bool) {
        self.announcement().want(wanted);
        self.reports_changed.tell();
    }

    /// A read has told the end.
    pub(crate) fn tell_end(&self) {
        self.end_told.store(true, Ordering::Release);
        self.announcement().read();
        self.reports_changed.tell();
    }

    /// Tells the observer of the end where that is wanted, it has come, and nobody holds the command: who does may be
    /// about to read of it.
    pub(crate) fn announce_if_due(&self) {
        let Some(status) = self.end.get() else { return };
        let held = self.handles.load(Ordering::SeqCst) > 0;
        if !held && self.announcement().fall_due() {
            self.observer.ended(self.report(status));
            self.reports_changed.tell();
        }
    }

    /// Whether the end is to be announced and has not come, or may yet be read.
    pub(crate) fn report_to_come(&self) -> bool {
        *self.announcement() == Announcement::Armed
    }

    /// Whether a report waits to be taken.
    pub(crate) fn report_due(&self) -> bool {
        *self.announcement() == Announcement::Due
    }

    /// The report of the end where it is due; it is given once.
    pub(crate) fn take_report(&self) -> Option<EndedCommand> {
        let status = self.end.get()?;
        self.announcement().take().then(|| self.report(status))
    }

    fn report(&self, status: &Status) -> EndedCommand {
        let (output, output_cut) = self.output.latest(REPORTED_OUTPUT);
        EndedCommand {
            process_id: self.identity.process_id.clone(),
            label: self.identity.label.clone(),
            status: status.clone(),
            output,
            output_cut,
        }
    }

    fn announcement(&self) -> MutexGuard<'_, Announcement> {
        self.announcement
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
