//! A session's output on its way from the command's descriptors to whoever reads it: decoded, cleaned and kept in the
//! ring as it arrives, whether anybody reads or not. It never slows the command down and never grows without bound.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::Channel;
use crate::cleaner::Cleaner;
use crate::decoder::Decoder;
use crate::recording::Recording;
use crate::ring::{Ring, Taken, Unit};

/// How long an unfinished line must stay as it is before a waiting reader gets it as a prompt.
const PROMPT_QUIET: Duration = Duration::from_millis(100);
/// What is read from a pipe at a time; on the stack while it is read, so that an idle session holds no buffer.
const READ_SIZE: usize = 64 * 1024;
/// After so many reads in a row the other tasks get their turn.
const READS_IN_A_ROW: u32 = 8;

/// A descriptor that output comes from.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) channel: Channel,
    pub(crate) descriptor: Receiver,
}

/// The unread output of one session, and who waits for it.
#[derive(Debug)]
pub(crate) struct Output {
    state: Mutex<State>,
    /// Woken whenever `state` changed in a way that a reader may wait for.
    changed: Notify,
    /// Readers take their turn in the order in which they came.
    turn: tokio::sync::Mutex<()>,
    /// Takes the bytes as they come.
    recording: Option<Arc<dyn Recording>>,
}

#[derive(Debug)]
struct State {
    ring: Ring,
    form: Form,
    last_arrival: Instant,
    /// Nothing will come any more.
    closed: bool,
}

#[derive(Debug)]
enum Form {
    Raw,
    Text(Box<[Pipeline; 2]>),
}

/// What turns the bytes of one channel into text.
#[derive(Debug, Default)]
struct Pipeline {
    decoder: Decoder,
    cleaner: Cleaner,
}

/// What a read gives.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) taken: Taken,
    /// Nothing is left and nothing will come.
    pub(crate) exhausted: bool,
}

impl Output {
    /// Keeps at most `limit` unread bytes, and gives all to `recording` first.
    pub(crate) fn new(limit: usize, raw: bool, recording: Option<Arc<dyn Recording>>) -> Output {
        let (unit, form) = match raw {
            true => (Unit::Byte, Form::Raw),
            false => (Unit::Character, Form::Text(Box::default())),
        };
        Output {
            state: Mutex::new(State {
                ring: Ring::new(limit, unit),
                form,
                last_arrival: Instant::now(),
                closed: false,
            }),
            changed: Notify::new(),
            turn: tokio::sync::Mutex::new(()),
            recording,
        }
    }

    /// Reads `source` to its end. A terminal whose last user is gone answers with an error; no other error can be
    /// helped either.
    ///
    /// Two pipes have no common order. What waits in `before` is taken before anything of `source` is: so an error that
    /// a program tells at its end stays last, however far the readers are behind.
    pub(crate) async fn collect(self: Arc<Self>, source: Arc<Source>, before: Option<Arc<Source>>) {
        let mut in_a_row = 0;
        while source.descriptor.readable().await.is_ok() {
            if let Some(before) = &before {
                let waiting = rustix::io::ioctl_fionread(&before.descriptor).unwrap_or(0);
                self.sweep(before, usize::try_from(waiting).unwrap_or(usize::MAX));
            }
            match source.descriptor.try_io(|| self.read_once(&source)) {
                Ok(0) => break,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => break,
                Ok(_) | Err(_) => {}
            }
            in_a_row += 1;
            if in_a_row == READS_IN_A_ROW {
                in_a_row = 0;
                tokio::task::yield_now().await;
            }
        }
    }

    /// Reads what there is in `source` without waiting, at most `limit` bytes; tells how many it was.
    pub(crate) fn sweep(&self, source: &Source, limit: usize) -> usize {
        let mut total = 0;
        while total < limit
            && let Ok(length @ 1..) = self.read_once(source)
        {
            total += length;
        }
        total
    }

    /// One read, decoded and kept before anybody else reads that descriptor.
    fn read_once(&self, source: &Source) -> io::Result<usize> {
        let mut state = self.state();
        let mut buffer = [0; READ_SIZE];
        let length = persistently(|| rustix::io::read(&source.descriptor, &mut buffer))?;
        if length > 0 {
            if let Some(recording) = &self.recording {
                recording.bytes(&buffer[..length]);
            }
            state.arrived(source.channel, &buffer[..length]);
            drop(state);
            self.changed.notify_waiters();
        }
        Ok(length)
    }

    /// Nothing will come any more: gives away what is held back.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        if !state.closed {
            state.finish();
            state.closed = true;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// When the last bytes came.
    pub(crate) fn last_arrival(&self) -> Instant {
        self.state().last_arrival
    }

    /// The last unread characters, which stay unread, and whether more lies before them.
    pub(crate) fn latest(&self, characters: usize) -> (String, bool) {
        self.state().ring.latest(characters)
    }

    /// Takes all that is unread at once, an unfinished line too, also from before a reader that waits.
    pub(crate) fn take_unread(&self) -> Vec<u8> {
        let mut state = self.state();
        state.flush();
        let mut unread = Vec::new();
        while !state.ring.is_empty() {
            let taken = state.ring.take(usize::MAX);
            unread.extend(taken.chunks.into_iter().flat_map(|chunk| chunk.data));
        }
        unread
    }

    /// Takes up to `limit` bytes (at least one character), waiting up to `wait` for something to take or the end.
    /// Dropping the future loses nothing. Of several readers the one that came first is served first.
    pub(crate) async fn read(&self, limit: usize, wait: Duration) -> Read {
        let deadline = deadline_after(wait);
        let Ok(_turn) = tokio::time::timeout_at(deadline, self.turn.lock()).await else {
            return Read {
                taken: Taken::default(),
                exhausted: false,
            };
        };
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change goes unnoticed.
            changed.as_mut().enable();
            let wake_at = {
                let mut state = self.state();
                if let Some(read) = state.take_if_due(limit, deadline) {
                    return read;
                }
                state.prompt_due().map_or(deadline, |due| due.min(deadline))
            };
            let _ = tokio::time::timeout_at(wake_at, changed).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads once, whatever interrupts it. A terminal without users answers EIO, but the kernel looks for bytes first and for
/// users after: what the last user wrote in between is there when it is asked again.
fn persistently(mut read: impl FnMut() -> Result<usize, Errno>) -> Result<usize, Errno> {
    let mut without_users = false;
    loop {
        match read() {
            Err(Errno::INTR) => {}
            Err(Errno::IO) if !without_users => without_users = true,
            result => return result,
        }
    }
}

impl State {
    fn arrived(&mut self, channel: Channel, bytes: &[u8]) {
        self.last_arrival = Instant::now();
        match &mut self.form {
            Form::Raw => self.ring.push(channel, bytes),
            Form::Text(pipelines) => {
                let pipeline = &mut pipelines[channel as usize];
                let mut decoded = String::with_capacity(bytes.len() + 8);
                let mut cleaned = String::with_capacity(bytes.len() + 8);
                pipeline.decoder.decode(bytes, &mut decoded);
                pipeline.cleaner.clean(&decoded, &mut cleaned);
                self.ring.push(channel, cleaned.as_bytes());
            }
        }
    }

    fn finish(&mut self) {
        self.each_pipeline(|pipeline, text| {
            let mut decoded = String::new();
            pipeline.decoder.finish(&mut decoded);
            pipeline.cleaner.clean(&decoded, text);
            pipeline.cleaner.finish(text);
        });
    }

    /// Gives unfinished lines to the ring.
    fn flush(&mut self) {
        self.each_pipeline(|pipeline, text| pipeline.cleaner.flush(text));
    }

    fn each_pipeline(&mut self, mut step: impl FnMut(&mut Pipeline, &mut String)) {
        let Form::Text(pipelines) = &mut self.form else {
            return;
        };
        for channel in [Channel::Stdout, Channel::Stderr] {
            let mut text = String::new();
            step(&mut pipelines[channel as usize], &mut text);
            self.ring.push(channel, text.as_bytes());
        }
    }

    /// When what looks like a prompt may be given to a waiting reader.
    fn prompt_due(&self) -> Option<Instant> {
        let Form::Text(pipelines) = &self.form else {
            return None;
        };
        let held = pipelines
            .iter()
            .any(|pipeline| pipeline.cleaner.holds_prompt());
        held.then(|| self.last_arrival + PROMPT_QUIET)
    }

    /// What a reader gets now; `None` where it should wait.
    fn take_if_due(&mut self, limit: usize, deadline: Instant) -> Option<Read> {
        let now = Instant::now();
        if self.ring.is_empty() && !self.closed {
            if deadline > now && self.prompt_due().is_none_or(|due| due > now) {
                return None;
            }
            self.flush();
        }
        let taken = self.ring.take(limit);
        Some(Read {
            taken,
            exhausted: self.closed && self.ring.is_empty(),
        })
    }
}

/// `wait` from now by the monotonic clock; a year where the sum does not exist.
pub(crate) fn deadline_after(wait: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + wait.min(YEAR)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn source(channel: Channel) -> (Arc<Source>, io::PipeWriter) {
        let (reader, writer) = io::pipe().unwrap();
        let reader = std::os::fd::OwnedFd::from(reader);
        rustix::io::ioctl_fionbio(&reader, true).unwrap();
        let descriptor = Receiver::from_owned_fd_unchecked(reader).unwrap();
        let source = Source {
            channel,
            descriptor,
        };
        (Arc::new(source), writer)
    }

    #[tokio::test]
    async fn what_waits_on_standard_output_comes_before_an_error_that_was_told_after_it() {
        let (stdout, mut printed) = source(Channel::Stdout);
        let (stderr, mut told) = source(Channel::Stderr);
        let lines = "a line\n".repeat(9_000);
        printed.write_all(lines.as_bytes()).unwrap();
        told.write_all(b"the reason\n").unwrap();
        drop(told);
        let output = Arc::new(Output::new(1 << 20, false, None));
        Arc::clone(&output).collect(stderr, Some(stdout)).await;
        output.close();
        let taken = output.read(1 << 20, Duration::ZERO).await.taken;
        let text: Vec<u8> = taken
            .chunks
            .iter()
            .flat_map(|chunk| chunk.data.clone())
            .collect();
        assert_eq!(String::from_utf8(text).unwrap(), lines + "the reason\n");
    }

    fn answer(answers: &[Result<usize, Errno>]) -> (Result<usize, Errno>, usize) {
        let mut asked = 0;
        let answer = persistently(|| {
            asked += 1;
            answers[asked - 1]
        });
        (answer, asked)
    }

    #[test]
    fn what_the_last_user_of_a_terminal_wrote_while_the_kernel_looked_away_is_read() {
        assert_eq!(answer(&[Err(Errno::IO), Ok(5)]), (Ok(5), 2));
        assert_eq!(
            answer(&[Err(Errno::IO), Err(Errno::INTR), Ok(5)]),
            (Ok(5), 3)
        );
        assert_eq!(
            answer(&[Err(Errno::IO), Err(Errno::IO)]),
            (Err(Errno::IO), 2)
        );
    }

    #[test]
    fn an_interrupted_read_is_repeated_and_any_other_answer_holds() {
        assert_eq!(answer(&[Err(Errno::INTR), Ok(0)]), (Ok(0), 2));
        assert_eq!(answer(&[Err(Errno::AGAIN)]), (Err(Errno::AGAIN), 1));
    }
}
