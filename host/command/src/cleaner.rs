//! Terminal output to plain text, a piece at a time: ESC sequences and NUL are removed, and of a line that a carriage
//! return starts over only the last version stays. The state is carried over the borders of pieces, so where they lie
//! changes nothing.
//!
//! What is removed: CSI, OSC (ended by BEL or ST), DCS, SOS, PM, APC (ended by ST), the shorter escapes, and the C1
//! controls U+0080 to U+009F, with the sequence that one of them starts as ESC and its counterpart do. A sequence that is
//! not ended stops at the end of its line or at a length bound, so that no program can hide the rest of its output by
//! accident. All other characters pass.
//!
//! The carriage return. One that LF follows is part of the line's end and stays (several in a row count as one); any
//! other drops the text before it on its line. So a line can be given away only when it is complete, and an unfinished
//! one is held until [`Cleaner::flush`] says that a reader wants it now, or until it is longer than 64 KiB. What was
//! given away cannot be dropped any more: a carriage return after it becomes LF, so that two versions of a line never
//! run together.

/// An unfinished line of more bytes than this is given away as it comes.
const LONGEST_HELD_LINE: usize = 64 * 1024;
/// A CSI of more characters than this is none.
const LONGEST_CONTROL: usize = 256;
/// What follows after this many characters of an OSC, DCS, SOS, PM or APC is text again.
const LONGEST_STRING: usize = 64 * 1024;

const ESC: char = '\u{1B}';

/// The cleaner of one channel.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    escape: Escape,
    line: Line,
}

/// Where in an escape sequence the last character was.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    /// After ESC.
    Started,
    /// After ESC and an intermediate, such as `(`.
    Intermediate,
    /// In a CSI, after this many characters.
    Control(usize),
    /// In a string, after this many characters; BEL ends it if `bell`.
    String { bell: bool, length: usize },
    /// After an ESC in a string, which may start its end.
    StringEnding,
}

impl Cleaner {
    /// Cleans `text` as what follows the text before, and appends what can be given away to `out`.
    pub(crate) fn clean(&mut self, text: &str, out: &mut String) {
        let mut rest = text;
        while !rest.is_empty() {
            if self.escape == Escape::None {
                let plain = rest.bytes().position(may_be_special).unwrap_or(rest.len());
                if plain > 0 {
                    self.line.text(&rest[..plain], out);
                    rest = &rest[plain..];
                    continue;
                }
            }
            let mut characters = rest.chars();
            if let Some(character) = characters.next() {
                self.character(character, out);
            }
            rest = characters.as_str();
        }
    }

    /// Gives away an unfinished line, except where a carriage return has come that will either end or drop it.
    pub(crate) fn flush(&mut self, out: &mut String) {
        self.line.flush(out);
    }

    /// The input has ended: gives away what is left, and forgets an unfinished sequence. The cleaner can start anew.
    pub(crate) fn finish(&mut self, out: &mut String) {
        self.line.flush(out);
        *self = Cleaner::default();
    }

    /// True where an unfinished line is held that looks like a prompt: text that no carriage return has touched.
    pub(crate) fn holds_prompt(&self) -> bool {
        self.line.holds_prompt()
    }

    fn character(&mut self, character: char, out: &mut String) {
        let next = match self.escape {
            Escape::None => None,
            _ if matches!(character, '\u{18}' | '\u{1A}') => Some(Escape::None),
            _ if character == '\n' => None,
            Escape::Started => after_escape(character),
            Escape::Intermediate => match character {
                ' '..='/' => Some(Escape::Intermediate),
                '0'..='~' => Some(Escape::None),
                _ => None,
            },
            Escape::Control(length) => match character {
                ' '..='?' if length < LONGEST_CONTROL => Some(Escape::Control(length + 1)),
                '@'..='~' => Some(Escape::None),
                _ => None,
            },
            Escape::String { bell: true, .. } if character == '\u{07}' => Some(Escape::None),
            Escape::String { .. } if character == '\u{9C}' => Some(Escape::None),
            Escape::String { .. } if character == ESC => Some(Escape::StringEnding),
            Escape::String { bell, length } if length < LONGEST_STRING => Some(Escape::String {
                bell,
                length: length + 1,
            }),
            Escape::String { .. } => None,
            Escape::StringEnding if character == '\\' => Some(Escape::None),
            Escape::StringEnding => after_escape(character),
        };
        match next {
            Some(escape) => self.escape = escape,
            None => {
                self.escape = Escape::None;
                self.outside_sequence(character, out);
            }
        }
    }

    fn outside_sequence(&mut self, character: char, out: &mut String) {
        match character {
            ESC => self.escape = Escape::Started,
            '\0' => {}
            '\u{80}'..='\u{9F}' => self.escape = after_c1(character),
            '\r' => self.line.carriage_return(),
            _ => self.line.text(character.encode_utf8(&mut [0; 4]), out),
        }
    }
}

/// The state after ESC and `character`; `None` where they are no sequence and `character` stands for itself.
fn after_escape(character: char) -> Option<Escape> {
    match character {
        '[' => Some(Escape::Control(0)),
        ']' => Some(Escape::String {
            bell: true,
            length: 0,
        }),
        'P' | 'X' | '^' | '_' => Some(Escape::String {
            bell: false,
            length: 0,
        }),
        ' '..='/' => Some(Escape::Intermediate),
        '0'..='~' => Some(Escape::None),
        _ => None,
    }
}

/// The state after a C1 control: that after ESC and its counterpart where they start a sequence; else it stands alone.
fn after_c1(character: char) -> Escape {
    let counterpart = char::from_u32(u32::from(character) - 0x40).and_then(after_escape);
    counterpart.unwrap_or_default()
}

/// NUL, CR, ESC, or the first byte of U+0080 to U+00BF.
fn may_be_special(byte: u8) -> bool {
    matches!(byte, 0 | b'\r' | 0x1B | 0xC2)
}

/// The line that is being written.
#[derive(Debug, Default)]
struct Line {
    /// Its text as far as it was not given away.
    held: String,
    /// A carriage return has come, and nothing after it.
    returned: bool,
    /// A carriage return has started this line over.
    restarted: bool,
    given: Given,
}

/// What of the line was given away.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Given {
    #[default]
    Nothing,
    /// What a reader wanted at once.
    Start,
    /// Everything, since it is too long to hold.
    AsItComes,
}

impl Line {
    fn carriage_return(&mut self) {
        self.returned = true;
    }

    /// `text` is not empty and holds no carriage return.
    fn text(&mut self, text: &str, out: &mut String) {
        if std::mem::take(&mut self.returned) {
            if text.starts_with('\n') {
                self.held.push('\r');
            } else {
                self.start_over(out);
            }
        }
        let Some(end) = text.rfind('\n') else {
            return self.unfinished(text, out);
        };
        out.push_str(&self.held);
        out.push_str(&text[..=end]);
        self.forget();
        self.restarted = false;
        self.given = Given::Nothing;
        if end + 1 < text.len() {
            self.unfinished(&text[end + 1..], out);
        }
    }

    fn unfinished(&mut self, text: &str, out: &mut String) {
        if self.given == Given::AsItComes || self.held.len() + text.len() > LONGEST_HELD_LINE {
            out.push_str(&self.held);
            out.push_str(text);
            self.forget();
            self.given = Given::AsItComes;
        } else {
            self.held.push_str(text);
        }
    }

    fn start_over(&mut self, out: &mut String) {
        if self.given != Given::Nothing {
            out.push('\n');
            self.given = Given::Nothing;
        }
        self.held.clear();
        self.restarted = true;
    }

    fn flush(&mut self, out: &mut String) {
        if !self.returned && !self.held.is_empty() {
            out.push_str(&self.held);
            self.forget();
            if self.given == Given::Nothing {
                self.given = Given::Start;
            }
        }
    }

    fn holds_prompt(&self) -> bool {
        !self.held.is_empty() && !self.returned && !self.restarted
    }

    /// Drops what is held, and a large buffer with it: most sessions are idle most of the time.
    fn forget(&mut self) {
        if self.held.capacity() > 4096 {
            self.held = String::new();
        } else {
            self.held.clear();
        }
    }
}

#[cfg(test)]
mod tests;
