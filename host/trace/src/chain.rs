//! The seal at the end of a line: `,"seq":N,"prev":"<64 hex>","hash":"<64 hex>"}`. Written and found here and nowhere else.

use sha2::{Digest, Sha256};

/// Hexadecimal digits of a hash.
const HEX: usize = 64;
const SEQ: &[u8] = b",\"seq\":";
const PREV: &[u8] = b",\"prev\":\"";
const HASH: &[u8] = b",\"hash\":\"";
const END: &[u8] = b"\"}";

/// The hash of a record, as the hexadecimal text that stands in the Trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHash([u8; HEX]);

impl RecordHash {
    /// What stands as `prev` in the first record of a Session.
    pub(crate) const FIRST: RecordHash = RecordHash([b'0'; HEX]);

    fn of(bytes: &[u8]) -> RecordHash {
        let mut hex = [0; HEX];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(Sha256::digest(bytes)) {
            pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
            pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
        RecordHash(hex)
    }

    /// Reads 64 lower-case hexadecimal digits.
    pub(crate) fn parse(text: &[u8]) -> Option<RecordHash> {
        let hex: [u8; HEX] = text.try_into().ok()?;
        hex.iter()
            .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
            .then_some(RecordHash(hex))
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl std::fmt::Display for RecordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the end of a line says, and whether it is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    pub(crate) seq: u64,
    pub(crate) prev: RecordHash,
    pub(crate) hash: RecordHash,
    /// True where `hash` is the hash of the line.
    pub(crate) intact: bool,
}

/// Turns `line`, a JSON object from its `start` on, into a record: puts the seal in the place of its closing brace, and ends the line.
pub(crate) fn seal(line: &mut Vec<u8>, start: usize, seq: u64, prev: &RecordHash) -> RecordHash {
    debug_assert_eq!(line.last(), Some(&b'}'));
    line.pop();
    line.extend_from_slice(SEQ);
    line.extend_from_slice(seq.to_string().as_bytes());
    line.extend_from_slice(PREV);
    line.extend_from_slice(&prev.0);
    line.push(b'"');
    let hash = RecordHash::of(&line[start..]);
    line.extend_from_slice(HASH);
    line.extend_from_slice(&hash.0);
    line.extend_from_slice(END);
    line.push(b'\n');
    hash
}

/// Finds the seal of a line without its newline, counting from the end: whatever text the payload holds, it is never looked at.
pub(crate) fn unseal(line: &[u8]) -> Option<Seal> {
    let rest = line.strip_suffix(END)?;
    let (rest, hash) = rest.split_at_checked(rest.len().checked_sub(HEX)?)?;
    let hash = RecordHash::parse(hash)?;
    let covered = rest.strip_suffix(HASH)?;
    let rest = covered.strip_suffix(b"\"")?;
    let (rest, prev) = rest.split_at_checked(rest.len().checked_sub(HEX)?)?;
    let prev = RecordHash::parse(prev)?;
    let rest = rest.strip_suffix(PREV)?;
    let digits = rest
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (rest, number) = rest.split_at(rest.len() - digits);
    let seq = std::str::from_utf8(number).ok()?.parse().ok()?;
    rest.ends_with(SEQ).then(|| Seal {
        seq,
        prev,
        hash,
        intact: RecordHash::of(covered) == hash,
    })
}
