//! The text of a JSON object that comes in pieces. Whether it is whole is known at every moment, and every byte is looked at twice at
//! most, however the pieces are cut.

/// The text so far.
#[derive(Debug, Default)]
pub(crate) struct ObjectText {
    text: String,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing but white space.
    #[default]
    Empty,
    /// Between braces, so many deep; perhaps in a string, perhaps behind a backslash.
    Inside {
        depth: usize,
        in_string: bool,
        escaped: bool,
    },
    /// The first brace was closed, and what lies between is an object; only white space followed.
    Whole,
    /// It is no object, whatever may follow.
    Broken,
}

impl ObjectText {
    /// Adds a piece.
    pub(crate) fn push(&mut self, piece: &str) {
        let start = self.text.len();
        self.text.push_str(piece);
        for (offset, byte) in piece.bytes().enumerate() {
            self.state = if !self.state.is_closed_by(byte) {
                self.state.after(byte)
            } else if is_json(&self.text[..=start + offset]) {
                State::Whole
            } else {
                State::Broken
            };
        }
    }

    /// True where the text is one complete JSON object.
    pub(crate) fn is_whole(&self) -> bool {
        self.state == State::Whole
    }

    /// The text.
    pub(crate) fn into_string(self) -> String {
        self.text
    }
}

impl State {
    /// True for the brace that ends the object.
    fn is_closed_by(self, byte: u8) -> bool {
        matches!(byte, b'}' | b']')
            && matches!(
                self,
                State::Inside {
                    depth: 1,
                    in_string: false,
                    ..
                }
            )
    }

    fn after(self, byte: u8) -> State {
        match self {
            State::Empty if byte == b'{' => State::Inside {
                depth: 1,
                in_string: false,
                escaped: false,
            },
            State::Empty | State::Whole if byte.is_ascii_whitespace() => self,
            State::Empty | State::Whole | State::Broken => State::Broken,
            State::Inside {
                depth,
                in_string: true,
                escaped,
            } => State::Inside {
                depth,
                in_string: escaped || byte != b'"',
                escaped: !escaped && byte == b'\\',
            },
            State::Inside { depth, .. } => State::Inside {
                depth: match byte {
                    b'{' | b'[' => depth + 1,
                    b'}' | b']' => depth - 1,
                    _ => depth,
                },
                in_string: byte == b'"',
                escaped: false,
            },
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_whole(text: &str, size: usize) -> bool {
        let mut whole = ObjectText::default();
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(size) {
            whole.push(&piece.iter().collect::<String>());
        }
        let is_whole = whole.is_whole();
        assert_eq!(whole.into_string(), text);
        is_whole
    }

    #[test]
    fn an_object_is_whole_when_its_first_brace_is_closed_however_it_was_cut() {
        for (text, expected) in [
            ("{}", true),
            (" {\"a\": [1, {\"b\": \"}\\\"}é\"}]} \n", true),
            ("{\"a\":\"\\\\\"}", true),
            ("", false),
            ("{", false),
            ("{\"a\":\"}", false),
            ("{\"a\":\"\\\"}", false),
            ("{}{}", false),
            ("{} x", false),
            ("[]", false),
            ("null", false),
            ("{]", false),
            ("{a}", false),
        ] {
            for size in [1, 2, 3, 100] {
                assert_eq!(is_whole(text, size), expected, "{text:?} by {size}");
            }
        }
    }

    #[test]
    fn a_megabyte_of_closing_braces_one_by_one_costs_no_more_than_a_megabyte() {
        let mut text = ObjectText::default();
        let start = std::time::Instant::now();
        text.push("{\"a\":\"");
        for _ in 0..1 << 20 {
            text.push("}");
            assert!(!text.is_whole());
        }
        text.push("\"}");
        assert!(text.is_whole());
        assert!(start.elapsed().as_secs() < 20);
    }
}
