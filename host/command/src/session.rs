//! One command that runs or has run: its streams, its end, and who holds it. A session ends with everything in it when
//! it is killed, when its last handle goes and it was not kept, or when it is dropped.

mod announcement;
mod core;
mod streams;

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use floe_sandbox::{Signal, interrupt_foreground};
use tokio::time::Instant;

use crate::error::io_error;
use crate::input::Input;
use crate::launch::{Held, Launched};
use crate::recording::Recording;
use crate::spec::CommandSummary;
use crate::{CommandError, OutputBatch, Status};

use self::core::Parts;
pub(crate) use self::core::{Core, Identity, Surroundings};
use self::streams::Descriptors;

/// What Ctrl-C sends to a terminal.
const END_OF_TEXT: u8 = 0x03;

/// A command that runs or has run.
#[derive(Debug)]
pub struct CommandSession {
    pub(crate) core: Arc<Core>,
}

impl CommandSession {
    /// Takes over a process that was started.
    pub(crate) fn start(
        launched: Launched,
        identity: Identity,
        recording: Option<Arc<dyn Recording>>,
        surroundings: Surroundings<'_>,
    ) -> Result<CommandSession, CommandError> {
        let runtime = surroundings.runtime;
        let _entered = runtime.enter();
        let streams = Descriptors::of(launched.streams)
            .map_err(io_error("watching the command's streams"))?;
        let parts = Parts {
            hold: Held::new(launched.hold).map_err(io_error("watching the command"))?,
            input: Input::new(
                streams.stdin,
                streams.terminal.is_some(),
                surroundings.limits.input_queue,
                runtime.clone(),
            ),
            input_kind: streams.input_kind,
            terminal: streams.terminal,
            leader: launched.pid,
            recording,
        };
        let core = Arc::new(Core::new(identity, parts, surroundings));
        core.runtime
            .spawn(Arc::clone(&core).supervise(streams.sources));
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

    /// Takes unread output of up to `max_bytes` (at least one character), waiting up to `wait` until there is some or
    /// the command has ended, whichever is first. Output that came while nobody read is there at once.
    ///
    /// A complete line is given as it comes. An unfinished one, which a carriage return might still start over, is
    /// given when `wait` is over, when nothing came for 100 ms and no carriage return has touched it (a prompt), or at
    /// the end. So read once for as long as is to be waited, not often and shortly; dropping the future loses nothing.
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
            // Nothing may be awaited from here on: the output is taken. A complete line says that the command is busy;
            // a wait in vain, or a prompt, that it may be waiting.
            let busy = batch
                .chunks
                .last()
                .is_some_and(|chunk| chunk.data.ends_with(b"\n"));
            batch.waiting_for_input = !busy && core.waits_for_input();
            return Ok(batch);
        }
        if let Some(Status::Lost(error)) = core.end.get() {
            if batch.chunks.is_empty() && batch.dropped == 0 {
                core.tell_end();
                return Err(error.clone());
            }
            batch.ended = false;
        } else {
            core.tell_end();
        }
        Ok(batch)
    }

    /// Sends `data` to the command's standard input, in order with other writers. Returns when all is written or
    /// queued; to an input that is closed, at once.
    ///
    /// # Errors
    /// [`CommandError::InputBlocked`] where the program does not read and the queue stayed full.
    pub async fn write_stdin(&self, data: &[u8]) -> Result<(), CommandError> {
        self.core.name();
        self.core.input.write(data, self.core.input_wait).await
    }

    /// Ends the command's standard input behind what is queued. A terminal gets Ctrl-D, which ends it at the start of
    /// a line only.
    pub fn close_stdin(&self) {
        self.core.name();
        self.core.input.close();
    }

    /// Sends SIGINT, SIGTERM or SIGKILL to the command's process group; SIGINT to a terminal is a typed Ctrl-C.
    /// SIGKILL ends everything in the sandbox. To a command that has ended nothing happens.
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
        if signal == Signal::INTERRUPT
            && let Some(terminal) = &self.core.terminal
        {
            let input = &self.core.input;
            // What waits to be typed must not follow the interrupt into whatever reads next.
            input.forget();
            if !interrupt_foreground(&terminal.descriptor).unwrap_or(false) {
                input.interrupt(END_OF_TEXT);
            }
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

    /// Leaves the command running when its handles are gone, to be found by its id. With `announce_end` the observer
    /// is told when it has ended and nobody holds it, and a report of its end waits to be taken, unless a read tells
    /// the end first; without, neither happens any more.
    pub fn keep(&self, announce_end: bool) {
        self.core.kept.store(true, Ordering::Release);
        self.core.want_announcement(announce_end);
        self.core.announce_if_due();
    }

    /// Takes all unread output at once, an unfinished line too: for who will not read any more. Waits for nobody.
    pub fn take_unread(&self) -> Vec<u8> {
        self.core.output.take_unread()
    }

    /// Its bytes as they came, where they are kept.
    pub fn recording(&self) -> Option<&Arc<dyn Recording>> {
        self.core.recording.as_ref()
    }

    /// Whether [`CommandSession::keep`] was called.
    pub fn is_kept(&self) -> bool {
        self.core.kept.load(Ordering::Acquire)
    }

    /// What had appeared in the Workspace when the command ended that programs outside the sandbox would execute or obey,
    /// as a sentence for the model.
    pub fn left_behind(&self) -> Option<&str> {
        self.core.left_behind.get().map(String::as_str)
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
