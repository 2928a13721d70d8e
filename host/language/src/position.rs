//! How the protocol counts characters: a server and its client agree on one of three units.

use serde::{Deserialize, Serialize};

/// A unit in which the protocol counts characters of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Bytes.
    Utf8,
    /// Two for a character outside the basic plane.
    Utf16,
    /// Unicode scalar values.
    Utf32,
}

impl Encoding {
    /// What we offer, what we like best first.
    pub(crate) const OFFERED: [&'static str; 3] = ["utf-8", "utf-32", "utf-16"];

    /// The unit with this name.
    pub(crate) fn from_name(name: &str) -> Option<Encoding> {
        match name {
            "utf-8" => Some(Encoding::Utf8),
            "utf-16" => Some(Encoding::Utf16),
            "utf-32" => Some(Encoding::Utf32),
            _ => None,
        }
    }

    /// How many units a character has.
    pub(crate) fn length(self, character: char) -> usize {
        match self {
            Encoding::Utf8 => character.len_utf8(),
            Encoding::Utf16 => character.len_utf16(),
            Encoding::Utf32 => 1,
        }
    }

    /// The units of a text.
    pub(crate) fn units(self, text: &str) -> usize {
        text.chars().map(|character| self.length(character)).sum()
    }

    /// The byte at which the unit `units` of `line` lies. Behind the end it is the end; within a character, its start.
    pub(crate) fn byte_of(self, line: &str, units: usize) -> usize {
        let mut before = 0;
        for (at, character) in line.char_indices() {
            let after = before + self.length(character);
            if after > units {
                return at;
            }
            before = after;
        }
        line.len()
    }
}

/// A place as the protocol says it: from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WirePosition {
    pub(crate) line: u32,
    pub(crate) character: u32,
}

/// A range as the protocol says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WireRange {
    pub(crate) start: WirePosition,
    pub(crate) end: WirePosition,
}
