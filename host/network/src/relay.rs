//! Bytes from one side to the other and back, until both have said their last or nothing has moved for too long.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

use crate::body::BLOCK;

/// How long the other side may be silent once one has said its last: nobody may be left who waits for it.
const AFTER_THE_LAST: Duration = Duration::from_secs(60);

/// When something moved last, and how long nothing may.
#[derive(Debug)]
pub(crate) struct Activity {
    start: Instant,
    /// In milliseconds from the start.
    last: AtomicU64,
    /// In milliseconds.
    limit: AtomicU64,
}

impl Activity {
    /// Nothing may be silent for longer than `limit`.
    pub(crate) fn new(limit: Duration) -> Activity {
        Activity {
            start: Instant::now(),
            last: AtomicU64::new(0),
            limit: AtomicU64::new(milliseconds(limit)),
        }
    }

    fn touch(&self) {
        self.last
            .store(milliseconds(self.start.elapsed()), Ordering::Relaxed);
    }

    /// One side has said its last.
    pub(crate) fn ends(&self) {
        self.touch();
        self.limit
            .fetch_min(milliseconds(AFTER_THE_LAST), Ordering::Relaxed);
    }

    /// Returns when nothing has moved for too long.
    pub(crate) async fn idle(&self) {
        loop {
            let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
            let limit = Duration::from_millis(self.limit.load(Ordering::Relaxed));
            let (now, end) = (Instant::now(), self.start + last + limit);
            if end <= now {
                return;
            }
            // The limit may shrink meanwhile.
            tokio::time::sleep_until(end.min(now + AFTER_THE_LAST)).await;
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A writer whose every byte is activity.
#[derive(Debug)]
pub(crate) struct Noted<'a, W> {
    writer: W,
    activity: &'a Activity,
}

impl<'a, W> Noted<'a, W> {
    pub(crate) fn new(writer: W, activity: &'a Activity) -> Self {
        Noted { writer, activity }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Noted<'_, W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.writer).poll_write(context, bytes);
        if let Poll::Ready(Ok(_)) = written {
            self.activity.touch();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(context)
    }
}

/// Moves all that `reader` gives, and then says that no more comes.
pub(crate) async fn pump(
    mut reader: impl AsyncRead + Unpin,
    writer: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    loop {
        match reader.read(&mut block).await? {
            0 => return writer.shutdown().await,
            count => writer.write_all(&block[..count]).await?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_ends_and_a_byte_puts_the_end_off() {
        let activity = Activity::new(Duration::from_secs(60));
        let begin = Instant::now();
        let talk = async {
            let mut writer = Noted::new(tokio::io::sink(), &activity);
            tokio::time::sleep(Duration::from_secs(50)).await;
            writer.write_all(b"abc").await.unwrap();
        };
        tokio::join!(talk, activity.idle());
        assert_eq!(begin.elapsed().as_secs(), 110);
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_last_word_of_one_side_the_other_may_be_silent_for_a_shorter_time() {
        let activity = Activity::new(Duration::from_secs(300));
        let begin = Instant::now();
        let end = async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            activity.ends();
        };
        tokio::join!(end, activity.idle());
        let elapsed = begin.elapsed().as_secs();
        assert!((160..=220).contains(&elapsed), "{elapsed}");
    }

    #[tokio::test]
    async fn the_end_of_one_side_is_passed_on() {
        let (mut near, far) = tokio::io::duplex(64);
        pump(&b"all of it"[..], &mut near).await.unwrap();
        let mut text = String::new();
        let mut far = far;
        // The writing half is closed although `near` is still there.
        far.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "all of it");
        drop(near);
    }
}
