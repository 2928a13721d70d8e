//! A file that holds the beginning and the end of what was written: a head that is written once, and after it a ring.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::Outputs;
use crate::secrets::Secrets;

/// An open file.
#[derive(Debug)]
pub(super) struct Region {
    file: File,
    outputs: Arc<Outputs>,
    /// Bytes that the head may take.
    head: u64,
    /// Bytes that the ring may take.
    ring: u64,
    /// Bytes written in all.
    written: u64,
    /// Bytes of the Session's allowance that this file has.
    reserved: u64,
}

impl Region {
    pub(super) fn new(file: File, outputs: Arc<Outputs>) -> Region {
        let ring = outputs.output_limit / 2;
        Region {
            file,
            head: outputs.output_limit - ring,
            ring,
            written: 0,
            reserved: 0,
            outputs,
        }
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (at, room) = self.place();
            let piece = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let end = at + piece as u64;
            if end > self.reserved {
                if !self.outputs.reserve(end - self.reserved) {
                    return Err(used_up());
                }
                self.reserved = end;
            }
            self.file.write_all_at(&bytes[..piece], at)?;
            self.written += piece as u64;
            bytes = &bytes[piece..];
        }
        Ok(())
    }

    /// How many bytes it holds.
    pub(super) fn kept(&self) -> u64 {
        self.written.min(self.head + self.ring)
    }

    /// Writes what it holds, in order, and between a head and a ring that went round a line that says how much is missing.
    pub(super) fn copy_to(&self, into: &mut File, secrets: &Secrets) -> io::Result<()> {
        if self.written <= self.head + self.ring {
            return self.copy(0, self.written, into, secrets);
        }
        let oldest = (self.written - self.head) % self.ring;
        let head = self.head - self.split_character_before(self.head)?;
        self.copy(0, head, into, secrets)?;
        let left_out = self.written - self.kept();
        writeln!(into, "\n[{left_out} bytes in the middle are not kept]")?;
        let start = oldest + self.continuation_bytes_at(oldest)?;
        if start < self.ring {
            self.copy(self.head + start, self.head + self.ring, into, secrets)?;
            self.copy(self.head, self.head + oldest, into, secrets)
        } else {
            self.copy(
                self.head + start - self.ring,
                self.head + oldest,
                into,
                secrets,
            )
        }
    }

    /// Where the next byte goes, and how many fit there in one piece.
    fn place(&self) -> (u64, u64) {
        if self.written < self.head {
            return (self.written, self.head - self.written);
        }
        let in_ring = (self.written - self.head) % self.ring;
        (self.head + in_ring, self.ring - in_ring)
    }

    /// How many bytes before `end` belong to a character that `end` splits.
    fn split_character_before(&self, end: u64) -> io::Result<u64> {
        let mut last = [0; 4];
        let length = end.min(4) as usize;
        self.file
            .read_exact_at(&mut last[..length], end - length as u64)?;
        let last = &last[..length];
        Ok(match last.iter().rposition(|byte| byte & 0xC0 != 0x80) {
            Some(at) if std::str::from_utf8(&last[at..]).is_err() => (length - at) as u64,
            _ => 0,
        })
    }

    /// How many bytes from `oldest` in the ring on continue a character that began before.
    fn continuation_bytes_at(&self, oldest: u64) -> io::Result<u64> {
        for count in 0..3 {
            let mut byte = [0];
            let at = self.head + (oldest + count) % self.ring;
            self.file.read_exact_at(&mut byte, at)?;
            if byte[0] & 0xC0 != 0x80 {
                return Ok(count);
            }
        }
        Ok(3)
    }

    fn copy(&self, from: u64, to: u64, into: &mut File, secrets: &Secrets) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(from))?;
        let mut piece = file.take(to.saturating_sub(from));
        if secrets.is_empty() {
            // The kernel does this without the bytes passing through here.
            io::copy(&mut piece, into)?;
            return Ok(());
        }
        let mut into = BufWriter::new(into);
        secrets.copy_redacted(piece, &mut into)?;
        into.flush()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.outputs.release(self.reserved);
    }
}

pub(super) fn used_up() -> io::Error {
    io::Error::new(
        io::ErrorKind::QuotaExceeded,
        "the outputs of this Session have used up their 1 GiB",
    )
}
