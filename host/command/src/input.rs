//! A session's standard input: a bounded queue between whoever writes and a program that may read slowly or never.
//! Writing to an input that is closed is no error (spec/environment.md 1.5).

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::unix::pipe::Sender;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::CommandError;
use crate::output::deadline_after;

/// What a terminal understands as the end of input, at the start of a line.
const END_OF_TRANSMISSION: u8 = 0x04;

/// The input of one session.
#[derive(Debug)]
pub(crate) struct Input {
    state: Mutex<State>,
    /// Woken when the queue became shorter or the input closed.
    changed: Notify,
    /// Writers take their turn in the order in which they came.
    turn: tokio::sync::Mutex<()>,
    limit: usize,
    terminal: bool,
    runtime: Handle,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<u8>,
    /// `None` once it is closed.
    descriptor: Option<Arc<Sender>>,
    /// Close when the queue is empty, and take nothing more.
    closing: bool,
    /// The task that empties the queue, while there is one.
    writer: Option<AbortHandle>,
}

impl Input {
    /// Queues at most `limit` bytes.
    pub(crate) fn new(descriptor: Sender, terminal: bool, limit: usize, runtime: Handle) -> Input {
        Input {
            state: Mutex::new(State {
                queue: VecDeque::new(),
                descriptor: Some(Arc::new(descriptor)),
                closing: false,
                writer: None,
            }),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::new(()),
            limit: limit.max(1),
            terminal,
            runtime,
        }
    }

    /// Queues `data` whole, or says after `wait` how much of it was taken.
    pub(crate) async fn write(
        self: &Arc<Self>,
        data: &[u8],
        wait: Duration,
    ) -> Result<(), CommandError> {
        let deadline = deadline_after(wait);
        let mut accepted = 0;
        let blocked = |accepted| CommandError::InputBlocked {
            accepted,
            offered: data.len(),
        };
        let Ok(_turn) = tokio::time::timeout_at(deadline, self.turn.lock()).await else {
            return Err(blocked(accepted));
        };
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.state();
                if state.descriptor.is_none() || state.closing {
                    return Ok(());
                }
                let room = self.limit.saturating_sub(state.queue.len());
                let fits = room.min(data.len() - accepted);
                state.queue.extend(&data[accepted..accepted + fits]);
                accepted += fits;
                self.keep_writing(&mut state);
            }
            if accepted == data.len() {
                return Ok(());
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                return Err(blocked(accepted));
            }
        }
    }

    /// Ends the input once what is queued was read. A terminal gets the character that means this.
    pub(crate) fn close(self: &Arc<Self>) {
        let mut state = self.state();
        if self.terminal {
            state.queue.push_back(END_OF_TRANSMISSION);
        } else {
            state.closing = true;
        }
        self.keep_writing(&mut state);
    }

    /// Forgets what is queued.
    pub(crate) fn forget(&self) {
        self.state().queue.clear();
        self.changed.notify_waiters();
    }

    /// Puts a control character before everything that is queued, and forgets that, as a terminal does.
    pub(crate) fn interrupt(self: &Arc<Self>, character: u8) {
        let mut state = self.state();
        state.queue.clear();
        state.queue.push_back(character);
        self.keep_writing(&mut state);
    }

    /// Closes at once and forgets what is queued.
    pub(crate) fn shut(&self) {
        let mut state = self.state();
        state.queue = VecDeque::new();
        state.descriptor = None;
        if let Some(writer) = state.writer.take() {
            writer.abort();
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn keep_writing(self: &Arc<Self>, state: &mut State) {
        if state.writer.is_none() && state.descriptor.is_some() {
            let writer = self.runtime.spawn(Arc::clone(self).empty_queue());
            state.writer = Some(writer.abort_handle());
        }
    }

    async fn empty_queue(self: Arc<Self>) {
        while let Some(descriptor) = self.next_descriptor() {
            if descriptor.writable().await.is_err() {
                return self.shut();
            }
            match descriptor.try_io(|| self.write_once(&descriptor)) {
                Ok(()) => self.changed.notify_waiters(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The program closed its input, or is gone.
                Err(_) => return self.shut(),
            }
        }
    }

    /// The descriptor to write to; `None` ends the writer, and the input where it is to be closed.
    fn next_descriptor(&self) -> Option<Arc<Sender>> {
        let mut state = self.state();
        if !state.queue.is_empty() {
            return state.descriptor.clone();
        }
        state.writer = None;
        state.queue = VecDeque::new();
        if state.closing {
            state.descriptor = None;
        }
        None
    }

    fn write_once(&self, descriptor: &Sender) -> io::Result<()> {
        let mut state = self.state();
        let (front, _) = state.queue.as_slices();
        match rustix::io::write(descriptor, front) {
            Ok(length) => {
                state.queue.drain(..length);
                Ok(())
            }
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
