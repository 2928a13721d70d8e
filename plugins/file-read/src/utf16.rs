//! UTF-16 that comes in pieces, as UTF-8. Pure.

/// Which byte of a unit comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

/// What is no UTF-16, to follow the name of the file.
pub(crate) const NOT_UTF16: &str = "starts like UTF-16 text but holds other bytes.";

/// Decodes piece by piece; what a piece leaves unfinished is held for the next.
#[derive(Debug)]
pub(crate) struct Decoder {
    order: ByteOrder,
    /// Half a unit, a first surrogate, or both.
    held: Vec<u8>,
}

impl Decoder {
    pub(crate) fn new(order: ByteOrder) -> Decoder {
        Decoder {
            order,
            held: Vec::new(),
        }
    }

    /// The text of a piece, as far as it is complete.
    ///
    /// # Errors
    /// It is no UTF-16, or holds a NUL, which no text does.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Result<String, &'static str> {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(piece);
        let (units, half) = bytes.as_chunks::<2>();
        let mut whole = units.len();
        let unit = |unit: [u8; 2]| match self.order {
            ByteOrder::Little => u16::from_le_bytes(unit),
            ByteOrder::Big => u16::from_be_bytes(unit),
        };
        if units
            .last()
            .is_some_and(|last| (0xd800..0xdc00).contains(&unit(*last)))
        {
            whole -= 1;
        }
        let mut text = String::with_capacity(bytes.len());
        for character in char::decode_utf16(units[..whole].iter().map(|bytes| unit(*bytes))) {
            match character {
                Ok('\0') | Err(_) => return Err(NOT_UTF16),
                Ok(character) => text.push(character),
            }
        }
        self.held = [units[whole..].as_flattened(), half].concat();
        Ok(text)
    }

    /// Ends the text.
    ///
    /// # Errors
    /// It ends within a character.
    pub(crate) fn finish(self) -> Result<(), &'static str> {
        if self.held.is_empty() {
            Ok(())
        } else {
            Err(NOT_UTF16)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str, order: ByteOrder) -> Vec<u8> {
        let unit = |unit: u16| match order {
            ByteOrder::Little => unit.to_le_bytes(),
            ByteOrder::Big => unit.to_be_bytes(),
        };
        text.encode_utf16().flat_map(unit).collect()
    }

    fn decoded(bytes: &[u8], order: ByteOrder, piece: usize) -> Result<String, &'static str> {
        let mut decoder = Decoder::new(order);
        let mut text = String::new();
        for piece in bytes.chunks(piece) {
            text.push_str(&decoder.feed(piece)?);
        }
        decoder.finish().map(|()| text)
    }

    #[test]
    fn how_the_text_is_cut_into_pieces_does_not_matter() {
        let text = "naïve\r\n漢字 🙂🙂 end";
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let bytes = bytes(text, order);
            for piece in 1..=bytes.len() {
                assert_eq!(
                    decoded(&bytes, order, piece).as_deref(),
                    Ok(text),
                    "{piece}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for bytes in [
            &b"a\0b"[..],
            b"\x3d\xd8",
            b"\x3d\xd8a\0",
            b"\0\0",
            b"\x42\xdea\0",
        ] {
            assert_eq!(
                decoded(bytes, ByteOrder::Little, 9),
                Err(NOT_UTF16),
                "{bytes:?}"
            );
        }
    }
}
