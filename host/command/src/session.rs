//! One command that runs or has run: its streams, its end, and who holds it. A session ends with everything in it when it is
//! killed, when its last handle goes and it was not kept, or when it is dropped.

use std::io;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use floe_sandbox::{Event, Signal, Streams};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::error::io_error;
use crate::input::Input;
use crate::launch::{Held, Launched};
use crate::output::{Output, Source};
use crate::sessions::CommandLimits;
use crate::spec::{CommandSummary, EndedCommand, Observe};
use crate::{Channel, CommandError, CommandSessions, OutputBatch, Status};

/// After the end, output is collected until nothing came for this long (spec/environment.md 1.5).
const DRAIN_QUIET: Duration = Duration::from_millis(50);
/// And never for longer than this, whatever still writes.
const DRAIN_LONGEST: Duration = Duration::from_secs(2);
/// What is read at the very end without waiting: more than a pipe holds.
const LAST_SWEEP: usize = 4 * 1024 * 1024;
/// How much of its unread output the report of an end carries, in characters.
const REPORTED_OUTPUT: usize = 4000;
/// What Ctrl-C sends to a terminal.
const END_OF_TEXT: u8 = 0x03;

/// What is known of a session before it starts.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) process_id: String,
    pub(crate) label: String,
    pub(crate) confinement: String,
    pub(crate) raw_output: bool,
}

/// A command that runs or has run.
#[derive(Debug)]
pub struct CommandSession {
    core: Arc<Core>,
}

/// What the session shares with the task that waits for its end.
struct Core {
    identity: Identity,
    output: Arc<Output>,
    input: Arc<Input>,
    input_wait: Duration,
    terminal: Option<Arc<Source>>,
    /// `None` once the command has ended and its output is collected.
    hold: Mutex<Option<Arc<Held>>>,
    end: OnceLock<Status>,
    ended: Notify,
    /// It was killed from here.
    killed: AtomicBool,
    kept: AtomicBool,
    announce: AtomicBool,
    announced: AtomicBool,
    /// A reader was told that all was read.
    end_told: AtomicBool,
    handles: AtomicUsize,
    last_named: Mutex<Instant>,
    observer: Arc<dyn Observe>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("identity", &self.identity)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl CommandSession {
    /// Takes over a process that was started. `runtime` does the I/O.
    pub(crate) fn start(
        launched: Launched,
        identity: Identity,
        limits: &CommandLimits,
        observer: Arc<dyn Observe>,
        runtime: &Handle,
    ) -> Result<CommandSession, CommandError> {
        let _entered = runtime.enter();
        let streams = Descriptors::of(launched.streams)
            .map_err(io_error("watching the command's streams"))?;
        let hold = Held::new(launched.hold).map_err(io_error("watching the command"))?;
        let input = Input::new(
            streams.stdin,
            streams.terminal.is_some(),
            limits.input_queue,
            runtime.clone(),
        );
        let core = Arc::new(Core {
            output: Arc::new(Output::new(limits.unread_output, identity.raw_output)),
            input: Arc::new(input),
            input_wait: limits.input_wait,
            terminal: streams.terminal,
            hold: Mutex::new(Some(Arc::new(hold))),
            end: OnceLock::new(),
            ended: Notify::new(),
            killed: AtomicBool::new(false),
            kept: AtomicBool::new(false),
            announce: AtomicBool::new(false),
            announced: AtomicBool::new(false),
            end_told: AtomicBool::new(false),
            handles: AtomicUsize::new(0),
            last_named: Mutex::new(Instant::now()),
            observer,
            identity,
        });
        runtime.spawn(Arc::clone(&core).supervise(streams.sources));
        Ok(CommandSession { core })
    }

    /// `proc-` and eight hexadecimal digits.
    pub fn process_id(&self) -> &str {
        &self.core.identity.process_id
    }

    /// The first line of the command.
    pub fn label(&self) -> &str {
        &self.core.identity.label
    }

    /// How the command is confined: `native` or `UNCONFINED`.
    pub fn confinement(&self) -> &str {
        &self.core.identity.confinement
    }

    /// Takes unread output of up to `max_bytes` (at least one character), waiting up to `wait` until there is some or the command has ended, whichever is
    /// first. Output that came while nobody read is there at once.
    ///
    /// A complete line is given as it comes. An unfinished one, which a carriage return might still start over, is given when `wait` is over,
    /// when nothing came for 100 ms and no carriage return has touched it (a prompt), or at the end. So read once for
    /// as long as is to be waited, not often and shortly; dropping the future loses nothing.
    ///
    /// # Errors
    /// [`CommandError::SandboxEnded`] after all output was read, where the command's end is not known.
    pub async fn read_output(
        &self,
        max_bytes: usize,
        wait: Duration,
    ) -> Result<OutputBatch, CommandError> {
        let core = &self.core;
        core.name();
        let read = core.output.read(max_bytes, wait).await;
        let mut batch = OutputBatch {
            chunks: read.taken.chunks,
            dropped: read.taken.dropped,
            ended: read.exhausted,
            waiting_for_input: false,
        };
        if !read.exhausted {
            return Ok(batch);
        }
        if let Some(Status::Lost(error)) = core.end.get() {
            if batch.chunks.is_empty() && batch.dropped == 0 {
                core.end_told.store(true, Ordering::Release);
                return Err(error.clone());
            }
            batch.ended = false;
        } else {
            core.end_told.store(true, Ordering::Release);
        }
        Ok(batch)
    }

    /// Sends `data` to the command's standard input, in order with other writers. Returns when all is written or queued; to an
    /// input that is closed, at once.
    ///
    /// # Errors
    /// [`CommandError::InputBlocked`] where the program does not read and the queue stayed full.
    pub async fn write_stdin(&self, data: &[u8]) -> Result<(), CommandError> {
        self.core.name();
        self.core.input.write(data, self.core.input_wait).await
    }

    /// Ends the command's standard input behind what is queued. A terminal gets Ctrl-D, which ends it at the start of a line only.
    pub fn close_stdin(&self) {
        self.core.name();
        self.core.input.close();
    }

    /// Sends SIGINT, SIGTERM or SIGKILL to the command's process group; SIGINT to a terminal is a typed Ctrl-C. SIGKILL ends
    /// everything in the sandbox. To a command that has ended nothing happens.
    ///
    /// # Errors
    /// [`CommandError::UnknownSignal`].
    pub fn send_signal(&self, name: &str) -> Result<(), CommandError> {
        self.core.name();
        let signal = Signal::from_name(name)
            .filter(|signal| [Signal::INTERRUPT, Signal::TERMINATE, Signal::KILL].contains(signal))
            .ok_or_else(|| CommandError::UnknownSignal {
                name: name.chars().take(32).collect(),
            })?;
        if signal == Signal::KILL {
            self.kill();
            return Ok(());
        }
        if signal == Signal::INTERRUPT && self.core.terminal.is_some() {
            self.core.input.interrupt(END_OF_TEXT);
            return Ok(());
        }
        match self.core.hold() {
            Some(hold) => hold.signal(signal).map_err(io_error("sending the signal")),
            None => Ok(()),
        }
    }

    /// Gives the command's terminal another size.
    ///
    /// # Errors
    /// [`CommandError::NoTerminal`] where it has pipes.
    pub fn resize_terminal(&self, columns: u16, rows: u16) -> Result<(), CommandError> {
        let terminal = self
            .core
            .terminal
            .as_ref()
            .ok_or(CommandError::NoTerminal)?;
        let size = rustix::termios::Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&terminal.descriptor, size)
            .map_err(|errno| io_error("resizing the terminal")(errno.into()))
    }

    /// Ends the command and everything in its sandbox at once. No end is announced. What it printed can still be read.
    pub fn kill(&self) {
        self.core.kill();
    }

    /// How the command is. An end shows once its output is collected.
    pub fn status(&self) -> Status {
        self.core.status()
    }

    /// Leaves the command running when its handles are gone, to be found by its id. With `announce_end` the observer is told of
    /// its end, once; at once where it has ended already.
    pub fn keep(&self, announce_end: bool) {
        let core = &self.core;
        core.kept.store(true, Ordering::Release);
        core.announce.store(announce_end, Ordering::SeqCst);
        core.announce_if_due();
    }

    /// Whether [`CommandSession::keep`] was called.
    pub fn is_kept(&self) -> bool {
        self.core.kept.load(Ordering::Acquire)
    }

    /// Waits until the command has ended and its output is collected.
    pub async fn ended(&self) -> Status {
        loop {
            let ended = self.core.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if let Some(status) = self.core.end.get() {
                return status.clone();
            }
            ended.await;
        }
    }

    pub(crate) fn summary(&self) -> CommandSummary {
        CommandSummary {
            process_id: self.process_id().to_owned(),
            label: self.label().to_owned(),
            status: self.status(),
            kept: self.is_kept(),
        }
    }

    /// When somebody last asked for it by its id, or used it.
    pub(crate) fn last_named(&self) -> Instant {
        *self
            .core
            .last_named
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody holds it right now.
    pub(crate) fn is_held(&self) -> bool {
        self.core.handles.load(Ordering::Acquire) > 0
    }
}

impl Drop for CommandSession {
    fn drop(&mut self) {
        self.core.kill();
    }
}

impl Core {
    fn name(&self) {
        *self
            .last_named
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn hold(&self) -> Option<Arc<Held>> {
        self.hold
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn status(&self) -> Status {
        self.end.get().cloned().unwrap_or(Status::Running)
    }

    fn kill(&self) {
        if let Some(hold) = self.hold() {
            self.killed.store(true, Ordering::SeqCst);
            hold.kill();
        }
    }

    /// Waits for the command's end and collects what it printed.
    async fn supervise(self: Arc<Self>, sources: Vec<Arc<Source>>) {
        let mut readers = JoinSet::new();
        for source in &sources {
            readers.spawn(Arc::clone(&self.output).collect(Arc::clone(source)));
        }
        let Some(hold) = self.hold() else { return };
        let event = hold.event().await;
        // Its children end with it, and then its pipes.
        hold.kill();
        self.drain(&mut readers, &sources).await;
        readers.shutdown().await;
        drop(hold);
        self.finish(event);
    }

    async fn drain(&self, readers: &mut JoinSet<()>, sources: &[Arc<Source>]) {
        let started = Instant::now();
        let longest = started + DRAIN_LONGEST;
        let all_at_end = async { while readers.join_next().await.is_some() {} };
        tokio::pin!(all_at_end);
        while Instant::now() < longest {
            let quiet = self.output.last_arrival().max(started) + DRAIN_QUIET;
            if tokio::time::timeout_at(quiet.min(longest), &mut all_at_end)
                .await
                .is_ok()
            {
                return;
            }
            let is_quiet = self.output.last_arrival().max(started) + DRAIN_QUIET <= Instant::now();
            // Quiet may also mean that this machine is too busy to read: only an empty pipe is.
            if is_quiet
                && sources
                    .iter()
                    .map(|source| self.output.sweep(source, LAST_SWEEP))
                    .sum::<usize>()
                    == 0
            {
                return;
            }
        }
    }

    fn finish(&self, event: Event) {
        let status = match event {
            Event::Exited(code) => Status::Exited(code),
            Event::Signaled(signal) => Status::Signaled(signal.name()),
            Event::SandboxEnded if self.killed.load(Ordering::SeqCst) => {
                Status::Signaled(Signal::KILL.name())
            }
            Event::SandboxEnded => Status::Lost(CommandError::SandboxEnded),
        };
        *self.hold.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.input.shut();
        let _ = self.end.set(status);
        self.output.close();
        self.ended.notify_waiters();
        self.announce_if_due();
    }

    fn announce_if_due(&self) {
        let Some(status) = self.end.get() else { return };
        let wanted = self.announce.load(Ordering::SeqCst)
            && !self.killed.load(Ordering::SeqCst)
            && !self.end_told.load(Ordering::SeqCst);
        if !wanted || self.announced.swap(true, Ordering::SeqCst) {
            return;
        }
        let (output, output_cut) = self.output.latest(REPORTED_OUTPUT);
        self.observer.ended(EndedCommand {
            process_id: self.identity.process_id.clone(),
            label: self.identity.label.clone(),
            status: status.clone(),
            output,
            output_cut,
        });
    }
}

/// A command's streams as the reactor watches them.
struct Descriptors {
    stdin: Sender,
    sources: Vec<Arc<Source>>,
    terminal: Option<Arc<Source>>,
}

impl Descriptors {
    fn of(streams: Streams) -> io::Result<Descriptors> {
        let source = |channel, descriptor| {
            let descriptor = Receiver::from_owned_fd_unchecked(not_blocking(descriptor)?)?;
            io::Result::Ok(Arc::new(Source {
                channel,
                descriptor,
            }))
        };
        let sink = |descriptor| Sender::from_owned_fd_unchecked(not_blocking(descriptor)?);
        match streams {
            Streams::Pipes {
                stdin,
                stdout,
                stderr,
            } => Ok(Descriptors {
                stdin: sink(stdin)?,
                sources: vec![
                    source(Channel::Stdout, stdout)?,
                    source(Channel::Stderr, stderr)?,
                ],
                terminal: None,
            }),
            Streams::Terminal(master) => {
                let stdin = sink(master.try_clone()?)?;
                let master = source(Channel::Stdout, master)?;
                Ok(Descriptors {
                    stdin,
                    sources: vec![Arc::clone(&master)],
                    terminal: Some(master),
                })
            }
        }
    }
}

fn not_blocking(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    Ok(descriptor)
}

/// Somebody's hold on a session. When it is dropped and the session was not kept, the command and everything in it ends;
/// when the session has ended and all was read, its id is forgotten.
#[derive(Debug)]
pub struct CommandHandle {
    session: Arc<CommandSession>,
    registry: Weak<CommandSessions>,
    note: Option<String>,
}

impl CommandHandle {
    pub(crate) fn new(
        session: Arc<CommandSession>,
        registry: Weak<CommandSessions>,
        note: Option<String>,
    ) -> CommandHandle {
        session.core.handles.fetch_add(1, Ordering::AcqRel);
        session.core.name();
        CommandHandle {
            session,
            registry,
            note,
        }
    }

    /// What making room for this command has cost, as a line for the model: a session that was ended for it.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}

impl Deref for CommandHandle {
    type Target = CommandSession;

    fn deref(&self) -> &CommandSession {
        &self.session
    }
}

impl Drop for CommandHandle {
    fn drop(&mut self) {
        let core = &self.session.core;
        core.name();
        core.handles.fetch_sub(1, Ordering::AcqRel);
        let forgotten = if self.session.is_kept() {
            core.end_told.load(Ordering::Acquire)
        } else {
            core.kill();
            true
        };
        if forgotten && let Some(registry) = self.registry.upgrade() {
            registry.forget(self.session.process_id());
        }
    }
}
