//! The body of a forwarded request: exactly as long as its head says, so that nothing rides behind it to a host that was
//! not checked.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::head::Framing;

/// Bytes that are moved at once.
pub(crate) const BLOCK: usize = 16 * 1024;
/// The longest line that tells the size of a chunk: sixteen digits.
const LONGEST_SIZE: usize = 16;

/// Moves a body of this framing from `source` to `sink`.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidData`] where the client does not keep to the framing, which must end the connection; else what
/// reading or writing says.
pub(crate) async fn copy(
    framing: Framing,
    source: &mut Source<impl AsyncRead + Unpin>,
    sink: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    match framing {
        Framing::Length(length) => source.copy(length, sink).await,
        Framing::Chunked => copy_chunks(source, sink).await,
    }
}

/// Chunks are written as they were understood; extensions and trailers, which nobody needs, are refused.
async fn copy_chunks(
    source: &mut Source<impl AsyncRead + Unpin>,
    sink: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    loop {
        let size = source.size().await?;
        sink.write_all(format!("{size:x}\r\n").as_bytes()).await?;
        source.copy(size, sink).await?;
        source.expect(b"\r\n").await?;
        sink.write_all(b"\r\n").await?;
        if size == 0 {
            return sink.flush().await;
        }
    }
}

/// What a client sends, with what was already read of it.
#[derive(Debug)]
pub(crate) struct Source<R> {
    ahead: Vec<u8>,
    used: usize,
    reader: R,
}

impl<R: AsyncRead + Unpin> Source<R> {
    pub(crate) fn new(ahead: Vec<u8>, reader: R) -> Source<R> {
        Source {
            ahead,
            used: 0,
            reader,
        }
    }

    /// Some bytes, at most a block; waits for one at least.
    async fn fill(&mut self) -> io::Result<&[u8]> {
        if self.used == self.ahead.len() {
            self.used = 0;
            self.ahead.resize(BLOCK, 0);
            let read = self.reader.read(&mut self.ahead).await;
            self.ahead.truncate(*read.as_ref().unwrap_or(&0));
            read?;
            if self.ahead.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(&self.ahead[self.used..])
    }

    /// Waits until the client sends something, or never will again: that is true.
    pub(crate) async fn has_ended(&mut self) -> bool {
        self.fill().await.is_err()
    }

    async fn copy(
        &mut self,
        mut length: u64,
        sink: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        while length > 0 {
            let bytes = self.fill().await?;
            let taken = bytes
                .len()
                .min(usize::try_from(length).unwrap_or(usize::MAX));
            sink.write_all(&bytes[..taken]).await?;
            self.used += taken;
            length -= taken as u64;
        }
        sink.flush().await
    }

    async fn byte(&mut self) -> io::Result<u8> {
        let byte = self.fill().await?[0];
        self.used += 1;
        Ok(byte)
    }

    async fn expect(&mut self, expected: &[u8]) -> io::Result<()> {
        for &byte in expected {
            if self.byte().await? != byte {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    }

    /// The size of a chunk: a line of hexadecimal digits.
    async fn size(&mut self) -> io::Result<u64> {
        let mut size = 0_u64;
        for digits in 0..=LONGEST_SIZE {
            let byte = self.byte().await?;
            match char::from(byte).to_digit(16) {
                Some(digit) if digits < LONGEST_SIZE => size = size << 4 | u64::from(digit),
                None if byte == b'\r' && digits > 0 => {
                    self.expect(b"\n").await?;
                    return Ok(size);
                }
                _ => break,
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What goes on of `sent` when `ahead` bytes of it came with the head.
    async fn copied(framing: Framing, sent: &[u8], ahead: usize) -> (io::Result<()>, Vec<u8>) {
        let mut sink = Vec::new();
        let (first, rest) = sent.split_at(ahead.min(sent.len()));
        let mut source = Source::new(first.to_vec(), rest);
        let end = copy(framing, &mut source, &mut sink).await;
        (end, sink)
    }

    #[tokio::test]
    async fn a_body_is_as_long_as_its_head_says_and_nothing_rides_behind_it() {
        let (end, sink) = copied(Framing::Length(3), b"abcGET http://b.test/", 1).await;
        assert_eq!((end.is_ok(), &sink[..]), (true, &b"abc"[..]));
        let (end, _) = copied(Framing::Length(3), b"ab", 0).await;
        assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn chunks_end_with_the_empty_one() {
        let sent = b"3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\nGET http://b.test/";
        let (end, sink) = copied(Framing::Chunked, sent, 5).await;
        assert!(end.is_ok());
        assert_eq!(sink, b"3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n");
    }

    #[tokio::test]
    async fn chunks_that_could_be_read_in_two_ways_are_refused() {
        for sent in [
            "3\nabc\r\n0\r\n\r\n",
            "3;a=b\r\nabc\r\n0\r\n\r\n",
            "3\r\nabcd\r\n0\r\n\r\n",
            "\r\nabc\r\n0\r\n\r\n",
            "0x3\r\nabc\r\n0\r\n\r\n",
            "+3\r\nabc\r\n0\r\n\r\n",
            " 3\r\nabc\r\n0\r\n\r\n",
            "00000000000000003\r\nabc\r\n0\r\n\r\n",
            "0\r\nTrailer: x\r\n\r\n",
        ] {
            let (end, _) = copied(Framing::Chunked, sent.as_bytes(), 0).await;
            assert_eq!(
                end.unwrap_err().kind(),
                io::ErrorKind::InvalidData,
                "{sent:?}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn wherever_the_head_was_cut_the_same_body_goes_on(
            chunks in proptest::collection::vec(proptest::collection::vec(proptest::num::u8::ANY, 1..40), 0..5),
            ahead in 0_usize..100,
        ) {
            let mut sent = Vec::new();
            for chunk in &chunks {
                sent.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                sent.extend(chunk);
                sent.extend(b"\r\n");
            }
            sent.extend(b"0\r\n\r\n");
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let whole = [&sent[..], b"more"].concat();
            let (end, sink) = runtime.block_on(copied(Framing::Chunked, &whole, ahead));
            proptest::prop_assert!(end.is_ok());
            proptest::prop_assert_eq!(sink, sent);
        }
    }
}
