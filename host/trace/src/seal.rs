//! The seal at the end of a line: `,"seq":N,"prev":"<64 hex>","hash":"<64 hex>"}`. Written and found here and nowhere else.

use sha2::{Digest, Sha256};

/// Hexadecimal digits of a hash.
const HEX: usize = 64;
const SEQ: &[u8] = b",\"seq\":";
const PREV: &[u8] = b",\"prev\":\"";
const HASH: &[u8] = b",\"hash\":\"";
const END: &[u8] = b"\"}";
/// No Session has more records; a forged number above it must not make sums overflow.
const LARGEST_SEQ: u64 = u64::MAX / 2;

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
    (rest.ends_with(SEQ) && seq <= LARGEST_SEQ).then(|| Seal {
        seq,
        prev,
        hash,
        intact: RecordHash::of(covered) == hash,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(json: &str, seq: u64) -> Vec<u8> {
        let mut line = json.as_bytes().to_vec();
        seal(&mut line, 0, seq, &RecordHash::FIRST);
        assert_eq!(line.pop(), Some(b'\n'));
        line
    }

    #[test]
    fn the_hash_covers_the_bytes_before_the_key_hash_and_stands_last() {
        let line = String::from_utf8(sealed("{\"a\":1}", 7)).unwrap();
        let zeros = "0".repeat(64);
        let covered = format!("{{\"a\":1,\"seq\":7,\"prev\":\"{zeros}\"");
        let hash: String = Sha256::digest(covered.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(line, format!("{covered},\"hash\":\"{hash}\"}}"));
        let keys: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line).unwrap();
        assert_eq!(
            keys.keys().collect::<Vec<_>>(),
            ["a", "seq", "prev", "hash"]
        );
    }

    #[test]
    fn a_payload_that_holds_a_whole_seal_is_not_taken_for_it() {
        let forged = format!(
            ",\"seq\":9,\"prev\":\"{}\",\"hash\":\"{}\"}}",
            "a".repeat(64),
            "b".repeat(64)
        );
        let text = serde_json::to_string(&forged).unwrap();
        // In a string the quotes are escaped, so the bytes of a seal cannot stand there.
        assert!(text.contains(",\\\"hash\\\":") && !text.contains(",\"hash\":"));
        let line = sealed(&format!("{{\"payload\":{text}}}"), 3);
        let seal = unseal(&line).unwrap();
        assert!(seal.intact);
        assert_eq!((seal.seq, seal.prev), (3, RecordHash::FIRST));
        // And an object that has these keys itself is no matter either: the seal is found from the end.
        let line = sealed(&format!("{{\"payload\":{{\"x\":0{forged}}}"), 4);
        let seal = unseal(&line).unwrap();
        assert_eq!((seal.seq, seal.intact), (4, true));
    }

    #[test]
    fn a_line_without_a_seal_has_none() {
        for line in ["", "{}", "\"}", "{\"hash\":\"00\"}", "x"] {
            assert_eq!(unseal(line.as_bytes()), None, "{line}");
        }
        let whole = sealed("{\"a\":1}", 0);
        for cut in 1..whole.len() {
            assert!(unseal(&whole[..cut]).is_none());
            assert!(!unseal(&whole[cut..]).is_some_and(|seal| seal.intact));
        }
    }
}
