//! Bytes to text, a piece at a time: the concatenation of what comes out is `String::from_utf8_lossy` of the
//! concatenation of what went in, however it was cut. Holds at most three bytes back.

/// An incremental UTF-8 decoder. A maximal invalid sequence becomes one U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The start of a character whose rest has not come yet.
    partial: Vec<u8>,
}

impl Decoder {
    /// Decodes `bytes` as what follows the bytes before, and appends the text to `text`.
    pub(crate) fn decode(&mut self, bytes: &[u8], text: &mut String) {
        if self.partial.is_empty() {
            self.decode_whole(bytes, text);
            return;
        }
        // Almost always 1 to 3 bytes finish the character, so only these are copied.
        let borrowed = bytes.len().min(3);
        let mut joined = std::mem::take(&mut self.partial);
        let before = joined.len();
        joined.extend_from_slice(&bytes[..borrowed]);
        let decided = decided_prefix(&joined);
        if decided < before {
            // Fewer bytes came than the character needs.
            self.partial = joined;
            return;
        }
        text.push_str(&String::from_utf8_lossy(&joined[..decided]));
        self.decode_whole(&bytes[decided - before..], text);
    }

    /// The input has ended: what is held back was no character.
    pub(crate) fn finish(&mut self, text: &mut String) {
        text.push_str(&String::from_utf8_lossy(&std::mem::take(&mut self.partial)));
    }

    fn decode_whole(&mut self, bytes: &[u8], text: &mut String) {
        let decided = decided_prefix(bytes);
        text.push_str(&String::from_utf8_lossy(&bytes[..decided]));
        self.partial.extend_from_slice(&bytes[decided..]);
    }
}

/// The length of the longest prefix whose decoding no further byte can change: all but an unfinished character at the
/// end.
fn decided_prefix(bytes: &[u8]) -> usize {
    let tail_starts = bytes.len().saturating_sub(3);
    for start in tail_starts..bytes.len() {
        let is_start = bytes[start] >= 0xC0;
        if is_start
            && let Err(error) = std::str::from_utf8(&bytes[start..])
            && error.valid_up_to() == 0
            && error.error_len().is_none()
        {
            return start;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode_cut(bytes: &[u8], cuts: &[usize]) -> String {
        let mut decoder = Decoder::default();
        let mut text = String::new();
        let mut at = 0;
        for &cut in cuts {
            let cut = cut.clamp(at, bytes.len());
            decoder.decode(&bytes[at..cut], &mut text);
            at = cut;
        }
        decoder.decode(&bytes[at..], &mut text);
        decoder.finish(&mut text);
        text
    }

    #[test]
    fn a_character_cut_at_each_position_is_whole() {
        for sample in ["ä€😀x", "é", "\u{10FFFF}", "a\u{800}b", "ऀ"] {
            for cut in 0..=sample.len() {
                assert_eq!(decode_cut(sample.as_bytes(), &[cut]), sample, "{cut}");
            }
            let every: Vec<usize> = (0..=sample.len()).collect();
            assert_eq!(decode_cut(sample.as_bytes(), &every), sample);
        }
    }

    #[test]
    fn what_is_held_back_at_the_end_becomes_one_replacement() {
        assert_eq!(decode_cut(b"a\xF0\x9F\x98", &[]), "a\u{FFFD}");
        assert_eq!(decode_cut(b"\xE2", &[]), "\u{FFFD}");
    }

    #[test]
    fn a_character_is_not_held_back_when_it_is_complete() {
        let mut decoder = Decoder::default();
        let mut text = String::new();
        decoder.decode("€".as_bytes(), &mut text);
        assert_eq!(text, "€");
    }

    fn nasty_bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            any::<u8>(),
            prop::sample::select(vec![
                0xC0, 0xC2, 0xE0, 0xE2, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF, 0x80, 0x8F, 0x90,
                0x9F, 0xA0, 0xBF, b'a'
            ]),
        ];
        prop::collection::vec(byte, 0..40)
    }

    proptest! {
        #[test]
        fn any_bytes_cut_anywhere_decode_as_the_whole_does(
            bytes in nasty_bytes(),
            mut cuts in prop::collection::vec(0usize..40, 0..12),
        ) {
            cuts.sort_unstable();
            prop_assert_eq!(decode_cut(&bytes, &cuts), String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn any_bytes_cut_at_every_position_decode_as_the_whole_does(bytes in nasty_bytes()) {
            for cut in 0..=bytes.len() {
                prop_assert_eq!(decode_cut(&bytes, &[cut]), String::from_utf8_lossy(&bytes));
            }
            let every: Vec<usize> = (0..=bytes.len()).collect();
            prop_assert_eq!(decode_cut(&bytes, &every), String::from_utf8_lossy(&bytes));
        }
    }
}
