//! Bytes from one side to the other and back, until both have said their last or nothing has moved for too long.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

use crate::body::BLOCK;

/// When something moved last.
#[derive(Debug)]
pub(crate) struct Activity {
    start: Instant,
    last: AtomicU64,
}

impl Activity {
    pub(crate) fn new() -> Activity {
        Activity {
            start: Instant::now(),
            last: AtomicU64::new(0),
        }
    }

    fn touch(&self) {
        let since = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(since, Ordering::Relaxed);
    }

    /// Returns when nothing has moved for `limit`.
    pub(crate) async fn idle(&self, limit: Duration) {
        loop {
            let last = self.last.load(Ordering::Relaxed);
            let end = self.start + Duration::from_millis(last) + limit;
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}

/// A writer whose every byte is counted and is activity.
#[derive(Debug)]
pub(crate) struct Counted<'a, W> {
    writer: W,
    activity: &'a Activity,
    bytes: &'a AtomicU64,
}

impl<'a, W> Counted<'a, W> {
    pub(crate) fn new(writer: W, activity: &'a Activity, bytes: &'a AtomicU64) -> Self {
        Counted {
            writer,
            activity,
            bytes,
        }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Counted<'_, W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.writer).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = written {
            self.activity.touch();
            self.bytes.fetch_add(count as u64, Ordering::Relaxed);
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
        let activity = Activity::new();
        let bytes = AtomicU64::new(0);
        let begin = Instant::now();
        let talk = async {
            let mut writer = Counted::new(tokio::io::sink(), &activity, &bytes);
            tokio::time::sleep(Duration::from_secs(50)).await;
            writer.write_all(b"abc").await.unwrap();
        };
        tokio::join!(talk, activity.idle(Duration::from_secs(60)));
        assert_eq!(begin.elapsed().as_secs(), 110);
        assert_eq!(bytes.into_inner(), 3);
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
