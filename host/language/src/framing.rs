//! Messages on a pipe: a header with the length, an empty line, the message.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The longest message that is read.
pub(crate) const LONGEST_MESSAGE: usize = 16 * 1024 * 1024;
/// The longest line of a header.
const LONGEST_LINE: u64 = 4096;
/// Lines of a header.
const MOST_LINES: usize = 32;

/// The memory that the values of one message may take once it is read, by a measure that is never less.
const MOST_MEMORY: usize = 256 * 1024 * 1024;
/// What a value takes of it, beside its text.
const VALUE: usize = 64;
/// What an object takes of it, however little is in it.
const OBJECT: usize = 640;

/// Why nothing more can be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("it closed its output")]
    End,
    #[error("it wrote something that is no message of the protocol")]
    Garbage,
    #[error("it wrote a message of {0} bytes (limit {LONGEST_MESSAGE})")]
    TooLong(u64),
    #[error("it wrote a message of too many values")]
    Crowded,
    #[error("its output cannot be read")]
    Io,
}

/// Reads one message.
pub(crate) async fn read(input: &mut (impl AsyncBufRead + Unpin)) -> Result<Vec<u8>, FrameError> {
    let mut length = None;
    for count in 0.. {
        let mut line = Vec::new();
        let mut bounded = (&mut *input).take(LONGEST_LINE);
        let read = bounded.read_until(b'\n', &mut line).await;
        match read.map_err(|_| FrameError::Io)? {
            0 if count == 0 => return Err(FrameError::End),
            _ if !line.ends_with(b"\r\n") || count == MOST_LINES => {
                return Err(FrameError::Garbage);
            }
            2 => break,
            _ => {}
        }
        let line = std::str::from_utf8(&line).map_err(|_| FrameError::Garbage)?;
        let (name, value) = line.split_once(':').ok_or(FrameError::Garbage)?;
        if name.trim().eq_ignore_ascii_case("content-length") {
            let value: u64 = value.trim().parse().map_err(|_| FrameError::Garbage)?;
            length = Some(value);
        }
    }
    let length = length.ok_or(FrameError::Garbage)?;
    if length > LONGEST_MESSAGE as u64 {
        return Err(FrameError::TooLong(length));
    }
    // Memory is taken as bytes come, not as they are announced.
    let mut message = Vec::new();
    let read = input.take(length).read_to_end(&mut message).await;
    match read {
        Ok(read) if read as u64 == length && is_crowded(&message) => Err(FrameError::Crowded),
        Ok(read) if read as u64 == length => Ok(message),
        Ok(_) => Err(FrameError::End),
        Err(_) => Err(FrameError::Io),
    }
}

/// Whether a message would be read as values that take many times its own memory, as millions of empty objects do.
fn is_crowded(message: &[u8]) -> bool {
    let (mut memory, mut is_text, mut is_escaped) = (0, false, false);
    for byte in message {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b'{' if !is_text => memory += OBJECT,
            b'[' | b',' if !is_text => memory += VALUE,
            _ => {}
        }
    }
    memory > MOST_MEMORY
}

/// Writes one message.
pub(crate) async fn write(
    output: &mut (impl AsyncWrite + Unpin),
    message: &[u8],
) -> io::Result<()> {
    let header = format!("Content-Length: {}\r\n\r\n", message.len());
    output.write_all(header.as_bytes()).await?;
    output.write_all(message).await?;
    output.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(mut bytes: &[u8]) -> Result<Vec<u8>, FrameError> {
        read(&mut bytes).await
    }

    #[tokio::test]
    async fn what_was_written_is_read_again() {
        let mut pipe = Vec::new();
        write(&mut pipe, b"{}").await.unwrap();
        write(&mut pipe, b"[1]").await.unwrap();
        let mut input = pipe.as_slice();
        assert_eq!(read(&mut input).await, Ok(b"{}".to_vec()));
        assert_eq!(read(&mut input).await, Ok(b"[1]".to_vec()));
        assert_eq!(read(&mut input).await, Err(FrameError::End));
    }

    #[tokio::test]
    async fn other_headers_are_passed_over_and_case_does_not_matter() {
        let message = b"Content-Type: x\r\ncontent-length: 1\r\n\r\n7";
        assert_eq!(read_all(message).await, Ok(b"7".to_vec()));
    }

    #[tokio::test]
    async fn what_is_no_message_is_told_from_one_that_was_cut_off() {
        for garbage in [
            "hello\r\n\r\n".to_owned(),
            "\r\n".to_owned(),
            "Content-Length: x\r\n\r\n".to_owned(),
            "Content-Length: -1\r\n\r\n".to_owned(),
            "Content-Length: 1\n\n7".to_owned(),
            "x".repeat(10_000),
            "a: b\r\n".repeat(10_000),
        ] {
            assert_eq!(read_all(garbage.as_bytes()).await, Err(FrameError::Garbage));
        }
        let cut = read_all(b"Content-Length: 9\r\n\r\n7").await;
        assert_eq!(cut, Err(FrameError::End));
    }

    #[tokio::test]
    async fn a_message_of_millions_of_small_values_is_refused_before_they_are_made() {
        let framed = |body: &str| format!("Content-Length: {}\r\n\r\n{body}", body.len());
        for value in ["{},", "[],", "0,"] {
            let body = format!("[{}0]", value.repeat(LONGEST_MESSAGE / value.len() - 2));
            let read = read_all(framed(&body).as_bytes()).await;
            assert_eq!(read, Err(FrameError::Crowded), "{value}");
        }
        let place = r#"{"uri":"file:///workspace/src/a.c","range":{"start":{"line":1,"character":2},"end":{"line":1,"character":3}}},"#;
        let body = format!("[{}0]", place.repeat(90_000));
        assert!(read_all(framed(&body).as_bytes()).await.is_ok());
        let text = format!("\"{}\\\"\"", "{,[".repeat(LONGEST_MESSAGE / 3 - 9));
        assert!(read_all(framed(&text).as_bytes()).await.is_ok());
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_is_refused_before_it_is_read() {
        let long = read_all(b"Content-Length: 99999999999\r\n\r\n").await;
        assert_eq!(long, Err(FrameError::TooLong(99_999_999_999)));
    }
}
