//! Cuts an output to its budget while it streams (spec/environment.md 1.3, step 7; decisions, "head-tail").
//!
//! Counts are Unicode scalar values, so that no character is ever split. Nothing here writes a message or a file: the
//! caller is told what of each delta to show now, and at the end what is still to be shown.

use floe_protocol::Truncation;

/// What an output's budget lets through.
#[derive(Debug)]
pub(crate) struct Cut {
    /// None where the tool has no limit.
    limit: Option<usize>,
    truncation: Truncation,
    /// Characters that may still be shown at once.
    room: usize,
    /// Characters that were shown at once.
    shown: usize,
    /// Characters written so far, those that a ring dropped included.
    seen: u64,
    tail: Tail,
}

/// What is still to be shown when the tool has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Nothing was left out.
    Whole {
        /// The end of the output that did not stream; may be empty.
        tail: String,
    },
    /// The beginning was kept.
    Head {
        /// The budget.
        limit: usize,
    },
    /// The beginning and the end were kept.
    HeadTail {
        /// Characters kept at the beginning.
        first: usize,
        /// Characters kept at the end.
        last: usize,
        /// Characters in all.
        of: u64,
        /// The end.
        tail: String,
    },
}

impl Cut {
    /// A budget of `max_output_length` characters; 0 or less is no limit.
    pub(crate) fn new(max_output_length: i64, truncation: Truncation) -> Cut {
        let limit = usize::try_from(max_output_length)
            .ok()
            .filter(|max| *max > 0);
        let (room, keep) = match (limit, truncation) {
            (None, _) => (usize::MAX, 0),
            (Some(max), Truncation::Head) => (max, 0),
            (Some(max), Truncation::HeadTail) => (max / 2, max - max / 2),
        };
        Cut {
            limit,
            truncation,
            room,
            shown: 0,
            seen: 0,
            tail: Tail::keeping(keep),
        }
    }

    /// Takes a delta and returns the part of it that is shown now, always a prefix.
    pub(crate) fn write<'text>(&mut self, text: &'text str) -> &'text str {
        let characters = text.chars().count();
        self.seen += characters as u64;
        if characters <= self.room {
            self.room -= characters;
            self.shown += characters;
            return text;
        }
        let at = text
            .char_indices()
            .nth(self.room)
            .map_or(text.len(), |(index, _)| index);
        self.shown += self.room;
        let kept_back = characters - self.room;
        self.room = 0;
        let (now, later) = text.split_at(at);
        self.tail.push(later, kept_back);
        now
    }

    /// `characters` were lost before they reached the output. What was kept of the end is no longer next to what follows.
    pub(crate) fn dropped(&mut self, characters: u64) {
        self.seen += characters;
        if self.limit.is_some() && self.truncation == Truncation::HeadTail {
            self.room = 0;
            self.tail.clear();
        }
    }

    /// True where the output goes over its budget with `text`.
    pub(crate) fn exceeds_with(&self, text: &str) -> bool {
        // A byte count is never below the character count, so most deltas are not counted twice.
        self.limit.is_some_and(|max| {
            let max = max as u64;
            self.seen + text.len() as u64 > max && self.seen + text.chars().count() as u64 > max
        })
    }

    /// True once more was written than the budget allows.
    pub(crate) fn is_over(&self) -> bool {
        self.limit.is_some_and(|max| self.seen > max as u64)
    }

    /// Characters written so far.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// What was held back for the end; all of it while the output is not over its budget.
    pub(crate) fn held_back(&self) -> &str {
        &self.tail.text
    }

    /// True where the end of the output is kept, so that nothing streams after the head.
    pub(crate) fn keeps_tail(&self) -> bool {
        self.limit.is_some() && self.truncation == Truncation::HeadTail
    }

    /// Characters that would still be shown at once.
    pub(crate) fn still_streams(&self) -> usize {
        self.room
    }

    /// Characters that a tool may still write with an effect. Where the end is kept every character has one.
    pub(crate) fn still_kept(&self) -> u32 {
        if self.keeps_tail() {
            u32::MAX
        } else {
            u32::try_from(self.room).unwrap_or(u32::MAX)
        }
    }

    /// Ends the output.
    pub(crate) fn finish(self) -> Rest {
        let over = self.is_over();
        match (self.limit, self.truncation) {
            (Some(limit), Truncation::Head) if over => Rest::Head { limit },
            (Some(_), Truncation::HeadTail) if over => {
                let (tail, last) = self.tail.last();
                Rest::HeadTail {
                    first: self.shown,
                    last,
                    of: self.seen,
                    tail,
                }
            }
            _ => Rest::Whole {
                tail: self.tail.text,
            },
        }
    }
}

/// The last characters of a text that may be endless. Holds at most twice what it keeps, so that pushing stays cheap.
#[derive(Debug)]
struct Tail {
    keep: usize,
    text: String,
    characters: usize,
}

impl Tail {
    fn keeping(keep: usize) -> Tail {
        Tail {
            keep,
            text: String::new(),
            characters: 0,
        }
    }

    fn push(&mut self, text: &str, characters: usize) {
        if self.keep == 0 {
            return;
        }
        if characters >= self.keep {
            self.text.clear();
            self.text.push_str(skip(text, characters - self.keep));
            self.characters = self.keep;
            return;
        }
        self.text.push_str(text);
        self.characters += characters;
        if self.characters > 2 * self.keep {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let surplus = self.characters.saturating_sub(self.keep);
        let at = self.text.len() - skip(&self.text, surplus).len();
        self.text.drain(..at);
        self.characters -= surplus;
    }

    fn clear(&mut self) {
        self.text.clear();
        self.characters = 0;
    }

    fn last(mut self) -> (String, usize) {
        self.trim();
        (self.text, self.characters)
    }
}

/// `text` without its first `characters`.
fn skip(text: &str, characters: usize) -> &str {
    let at = text
        .char_indices()
        .nth(characters)
        .map_or(text.len(), |(index, _)| index);
    &text[at..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(max: i64, truncation: Truncation, deltas: &[&str]) -> (String, Rest) {
        let mut cut = Cut::new(max, truncation);
        let shown = deltas.iter().map(|delta| cut.write(delta)).collect();
        (shown, cut.finish())
    }

    #[test]
    fn the_head_is_exactly_the_first_characters() {
        let (shown, rest) = all(5, Truncation::Head, &["hel", "lo world"]);
        assert_eq!(shown, "hello");
        assert_eq!(rest, Rest::Head { limit: 5 });
    }

    #[test]
    fn an_output_of_exactly_the_budget_is_whole() {
        for truncation in [Truncation::Head, Truncation::HeadTail] {
            let (shown, rest) = all(10, truncation, &["0123456789"]);
            let Rest::Whole { tail } = rest else {
                panic!("cut: {rest:?}");
            };
            assert_eq!(shown + &tail, "0123456789");
        }
    }

    #[test]
    fn zero_and_less_disable_the_limit() {
        for max in [0, -1] {
            let (shown, rest) = all(max, Truncation::HeadTail, &["0123456789", "ä"]);
            assert_eq!(shown, "0123456789ä");
            assert_eq!(rest, Rest::Whole { tail: "".into() });
        }
    }

    #[test]
    fn of_an_odd_budget_the_tail_has_the_larger_half() {
        let (shown, rest) = all(3, Truncation::HeadTail, &["abcd"]);
        assert_eq!(shown, "a");
        assert_eq!(
            rest,
            Rest::HeadTail {
                first: 1,
                last: 2,
                of: 4,
                tail: "cd".into()
            }
        );
    }

    #[test]
    fn what_a_ring_dropped_counts_and_parts_head_from_tail() {
        let mut cut = Cut::new(10, Truncation::HeadTail);
        assert_eq!(cut.write("abc"), "abc");
        cut.dropped(100);
        assert_eq!(cut.write("xyz"), "");
        assert_eq!(
            cut.finish(),
            Rest::HeadTail {
                first: 3,
                last: 3,
                of: 106,
                tail: "xyz".into()
            }
        );
    }

    proptest! {
        #[test]
        fn head_and_tail_are_the_first_and_last_characters_for_every_chunking(
            deltas in proptest::collection::vec("[a-c\u{e4}\u{1f600}\n]{0,7}", 0..12),
            max in 1usize..20,
        ) {
            let text: Vec<char> = deltas.concat().chars().collect();
            let borrowed: Vec<&str> = deltas.iter().map(String::as_str).collect();

            let (shown, rest) = all(max as i64, Truncation::Head, &borrowed);
            let head: String = text.iter().take(max).collect();
            prop_assert_eq!(shown, head);
            prop_assert_eq!(matches!(rest, Rest::Head { .. }), text.len() > max);

            let (shown, rest) = all(max as i64, Truncation::HeadTail, &borrowed);
            match rest {
                Rest::Whole { tail } => {
                    prop_assert!(text.len() <= max);
                    prop_assert_eq!(shown + &tail, deltas.concat());
                }
                Rest::HeadTail { first, last, of, tail } => {
                    prop_assert!(text.len() > max);
                    prop_assert_eq!((first, last, of), (max / 2, max - max / 2, text.len() as u64));
                    prop_assert_eq!(shown, text[..first].iter().collect::<String>());
                    prop_assert_eq!(tail, text[text.len() - last..].iter().collect::<String>());
                }
                Rest::Head { .. } => prop_assert!(false),
            }
        }
    }
}
