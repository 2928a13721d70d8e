//! Unread output in bounded memory: when nobody reads, the first quarter and the latest three quarters stay, and what
//! lies between is counted. Characters are never split. Nothing here waits or knows where output comes from, except
//! for its channel.

use std::collections::VecDeque;

use crate::{Channel, OutputChunk};

/// A session's unread output.
#[derive(Debug)]
pub(crate) struct Ring {
    unit: Unit,
    head_limit: usize,
    tail_limit: usize,
    head: Stretch,
    /// What was dropped between head and tail, in `unit`s.
    dropped: u64,
    tail: Stretch,
}

/// What the ring counts and never splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Characters of UTF-8.
    Character,
    /// Bytes.
    Byte,
}

/// The bytes of the longest character.
const LONGEST_UNIT: usize = 4;

/// What was taken from the ring.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) chunks: Vec<OutputChunk>,
    /// What was dropped just before.
    pub(crate) dropped: u64,
}

impl Ring {
    /// A ring of `limit` bytes, at least 16 (a character must fit into the head): a quarter head, the rest tail.
    pub(crate) fn new(limit: usize, unit: Unit) -> Ring {
        let limit = limit.max(16);
        let head_limit = limit / 4;
        Ring {
            unit,
            head_limit,
            tail_limit: limit - head_limit,
            head: Stretch::default(),
            dropped: 0,
            tail: Stretch::default(),
        }
    }

    /// True where there is nothing to tell; what was dropped is something.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.dropped == 0 && self.tail.is_empty()
    }

    /// Adds output.
    pub(crate) fn push(&mut self, channel: Channel, data: &[u8]) {
        let mut rest = data;
        if self.dropped == 0 && self.tail.is_empty() {
            let room = self.head_limit - self.head.len();
            let fits = self.unit.floor(rest, room);
            if fits > 0 && self.head.may_append(channel, HEAD_SPANS) {
                self.head.append(channel, &rest[..fits]);
                rest = &rest[fits..];
            }
        }
        if rest.len() > self.tail_limit {
            // The front of it would be dropped at once.
            let excess = self.unit.ceil(rest, rest.len() - self.tail_limit);
            self.dropped += self.drop_from_tail(usize::MAX) + self.unit.count(&rest[..excess]);
            rest = &rest[excess..];
        }
        if rest.is_empty() {
            return;
        }
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.dropped += self.drop_from_tail(excess);
        while !self.tail.may_append(channel, TAIL_SPANS) {
            let oldest = self.tail.first_span();
            self.dropped += self.drop_from_tail(oldest);
        }
        self.tail.append(channel, rest);
    }

    /// Takes up to `limit` bytes in order; at least one character if there is one. Stops where something was dropped:
    /// the next call tells how much and goes on behind it.
    pub(crate) fn take(&mut self, limit: usize) -> Taken {
        let mut taken = Taken::default();
        let mut left = limit;
        if !self.head.is_empty() {
            taken.chunks = self.head.take(limit, self.unit);
            left = left.saturating_sub(taken.chunks.iter().map(|chunk| chunk.data.len()).sum());
        }
        let at_gap = self.dropped > 0 && !taken.chunks.is_empty();
        if self.head.is_empty() && !at_gap && (left >= LONGEST_UNIT || taken.chunks.is_empty()) {
            taken.dropped = std::mem::take(&mut self.dropped);
            taken.chunks.extend(self.tail.take(left, self.unit));
        }
        self.refill();
        taken
    }

    /// The last `limit` characters as text, and whether something lies before them. Takes nothing.
    pub(crate) fn latest(&self, limit: usize) -> (String, bool) {
        let mut bytes = Vec::new();
        if self.dropped == 0 {
            bytes.extend(self.head.bytes.iter());
        }
        bytes.extend(self.tail.bytes.iter());
        let text = String::from_utf8_lossy(&bytes);
        let before = text.chars().count().saturating_sub(limit);
        let kept = text.chars().skip(before).collect();
        (kept, before > 0 || self.dropped > 0)
    }

    /// Once the head is read and nothing is missing behind it, the oldest of the tail is the new head.
    fn refill(&mut self) {
        if !self.head.is_empty() || self.dropped > 0 {
            return;
        }
        if self.tail.len() <= self.head_limit {
            std::mem::swap(&mut self.head, &mut self.tail);
            return;
        }
        for chunk in self.tail.take(self.head_limit, self.unit) {
            self.head.append(chunk.channel, &chunk.data);
        }
    }

    /// Drops at least `excess` bytes, up to the end of a character, and tells how many units these were.
    fn drop_from_tail(&mut self, excess: usize) -> u64 {
        self.tail.drop_front(excess, self.unit)
    }
}

impl Unit {
    /// The largest length of at most `limit` that splits nothing.
    fn floor(self, data: &[u8], limit: usize) -> usize {
        let mut end = limit.min(data.len());
        while self == Unit::Character && end > 0 && end < data.len() && is_continuation(data[end]) {
            end -= 1;
        }
        end
    }

    /// The smallest length of at least `limit` that splits nothing.
    fn ceil(self, data: &[u8], limit: usize) -> usize {
        let mut end = limit.min(data.len());
        while self == Unit::Character && end < data.len() && is_continuation(data[end]) {
            end += 1;
        }
        end
    }

    fn count(self, data: &[u8]) -> u64 {
        match self {
            Unit::Byte => data.len() as u64,
            Unit::Character => data.iter().filter(|&&byte| !is_continuation(byte)).count() as u64,
        }
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// How often the channel may change within the head, and within the tail: a program that writes single bytes in turn
/// must not make the ring's bookkeeping larger than its content.
const HEAD_SPANS: usize = 8 * 1024;
const TAIL_SPANS: usize = 24 * 1024;

/// Output without a gap.
#[derive(Debug, Default)]
struct Stretch {
    bytes: VecDeque<u8>,
    spans: VecDeque<Span>,
}

/// Bytes in a row from one channel. Whole characters.
#[derive(Debug, Clone, Copy)]
struct Span {
    channel: Channel,
    length: u32,
}

impl Stretch {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn first_span(&self) -> usize {
        self.spans.front().map_or(0, |span| span.length as usize)
    }

    fn continues(&self, channel: Channel) -> bool {
        self.spans
            .back()
            .is_some_and(|span| span.channel == channel)
    }

    fn may_append(&self, channel: Channel, most_spans: usize) -> bool {
        self.spans.len() < most_spans || self.continues(channel)
    }

    fn append(&mut self, channel: Channel, data: &[u8]) {
        self.bytes.extend(data);
        let length = data.len() as u32;
        match self.spans.back_mut() {
            Some(span) if span.channel == channel => span.length += length,
            _ => self.spans.push_back(Span { channel, length }),
        }
    }

    /// Takes up to `limit` bytes, at least one character.
    fn take(&mut self, limit: usize, unit: Unit) -> Vec<OutputChunk> {
        let mut chunks = Vec::new();
        let mut left = limit;
        while let Some(span) = self.spans.front_mut() {
            let whole = span.length as usize;
            let mut length = whole;
            if whole > left {
                length = floor_in(&self.bytes, whole, left, unit);
                if length == 0 && chunks.is_empty() {
                    length = ceil_in(&self.bytes, whole, left.max(1), unit);
                }
            }
            if length == 0 {
                break;
            }
            let channel = span.channel;
            if length == whole {
                self.spans.pop_front();
            } else {
                span.length -= length as u32;
            }
            let data = self.bytes.drain(..length).collect();
            chunks.push(OutputChunk { channel, data });
            left = left.saturating_sub(length);
            if left == 0 {
                break;
            }
        }
        self.give_memory_back();
        chunks
    }

    /// Drops at least `excess` bytes (all where there are fewer), up to the end of a character; tells how many units.
    fn drop_front(&mut self, excess: usize, unit: Unit) -> u64 {
        let mut left = excess;
        let mut count = 0;
        while left > 0
            && let Some(span) = self.spans.front_mut()
        {
            let whole = span.length as usize;
            let length = ceil_in(&self.bytes, whole, left.min(whole), unit);
            if length == whole {
                self.spans.pop_front();
            } else {
                span.length -= length as u32;
            }
            count += match unit {
                Unit::Byte => length as u64,
                Unit::Character => self
                    .bytes
                    .range(..length)
                    .filter(|&&byte| !is_continuation(byte))
                    .count() as u64,
            };
            self.bytes.drain(..length);
            left = left.saturating_sub(length);
        }
        count
    }

    fn give_memory_back(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > 4096 {
            *self = Stretch::default();
        }
    }
}

/// [`Unit::floor`] over the first `whole` bytes.
fn floor_in(bytes: &VecDeque<u8>, whole: usize, limit: usize, unit: Unit) -> usize {
    let mut end = limit.min(whole);
    while unit == Unit::Character && end > 0 && end < whole && is_continuation(bytes[end]) {
        end -= 1;
    }
    end
}

/// [`Unit::ceil`] over the first `whole` bytes.
fn ceil_in(bytes: &VecDeque<u8>, whole: usize, limit: usize, unit: Unit) -> usize {
    let mut end = limit.min(whole);
    while unit == Unit::Character && end < whole && is_continuation(bytes[end]) {
        end += 1;
    }
    end
}

#[cfg(test)]
mod tests;
