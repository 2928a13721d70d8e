//! Undoes compression piece by piece. A few kilobytes can stand for gigabytes, so little goes in at once, and what comes out is counted by
//! whoever reads it before more goes in.

use std::io::Write;

use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;
use http::Method;
use http::header::{self, HeaderMap};

use super::address::Address;
use super::error::GateError;

/// Compressed bytes that go in at once; at most about a thousand times as many come out.
const AT_ONCE: usize = 1 << 10;

/// How a body comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// As it is.
    Plain,
    /// In the one compression that is asked for.
    Gzip,
    /// In one that nobody asked for, or in several; it is handed on like that.
    Other,
}

impl Coding {
    pub(super) fn of(headers: &HeaderMap) -> Coding {
        let mut named = headers.get_all(header::CONTENT_ENCODING).iter();
        let (Some(coding), None) = (named.next(), named.next()) else {
            return match headers.contains_key(header::CONTENT_ENCODING) {
                true => Coding::Other,
                false => Coding::Plain,
            };
        };
        let is = |name: &[u8]| coding.as_bytes().eq_ignore_ascii_case(name);
        if is(b"gzip") || is(b"x-gzip") {
            Coding::Gzip
        } else if is(b"identity") || is(b"") {
            Coding::Plain
        } else {
            Coding::Other
        }
    }
}

/// Refuses a response of a host that may know a secret, where nobody could find the secret in it.
pub(super) fn can_be_looked_through(
    method: &Method,
    from: &Address,
    headers: &HeaderMap,
) -> Result<(), GateError> {
    // A body can be compressed on its way, too; nothing undoes that.
    let is_plain_on_its_way = headers
        .get_all(header::TRANSFER_ENCODING)
        .iter()
        .all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    let is_hidden = Coding::of(headers) == Coding::Other || !is_plain_on_its_way;
    match *method != Method::HEAD && is_hidden {
        true => Err(GateError::failed(format!(
            "{} answers in a compression that it was not asked for, in which no secret could be found; nothing of it is shown",
            from.target.host
        ))),
        false => Ok(()),
    }
}

/// A body's compression.
pub(super) struct Gzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    waiting: Bytes,
    has_begun: bool,
}

impl Gzip {
    pub(super) fn new() -> Gzip {
        Gzip {
            decoder: MultiGzDecoder::new(Vec::new()),
            waiting: Bytes::new(),
            has_begun: false,
        }
    }

    /// Takes compressed bytes in. All that were given before must have been asked for.
    pub(super) fn push(&mut self, bytes: Bytes) {
        self.has_begun |= !bytes.is_empty();
        self.waiting = bytes;
    }

    /// What the next compressed bytes stand for, possibly nothing; none where there are no more of them.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>, GateError> {
        if self.waiting.is_empty() {
            return Ok(None);
        }
        let taken = self.waiting.len().min(AT_ONCE);
        self.decoder
            .write_all(&self.waiting[..taken])
            .map_err(|_| not_gzip())?;
        self.waiting.advance(taken);
        Ok(Some(std::mem::take(self.decoder.get_mut())))
    }

    /// What is still due at the end.
    pub(super) fn finish(&mut self) -> Result<Vec<u8>, GateError> {
        // A response without a body may still name a compression.
        if !self.has_begun {
            return Ok(Vec::new());
        }
        self.decoder.try_finish().map_err(|_| not_gzip())?;
        Ok(std::mem::take(self.decoder.get_mut()))
    }
}

fn not_gzip() -> GateError {
    GateError::failed("the body of the response is not the gzip that it is said to be")
}
