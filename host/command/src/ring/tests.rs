use super::*;
use proptest::prelude::*;

fn text_of(taken: &Taken) -> String {
    let bytes: Vec<u8> = taken
        .chunks
        .iter()
        .flat_map(|chunk| chunk.data.clone())
        .collect();
    String::from_utf8(bytes).unwrap()
}

/// Takes everything: each gap as its count, the text between as it is.
fn take_all(ring: &mut Ring) -> (String, u64, String) {
    let (mut head, mut dropped, mut tail) = (String::new(), 0, String::new());
    while !ring.is_empty() {
        let taken = ring.take(usize::MAX);
        if taken.dropped > 0 {
            assert_eq!(dropped, 0, "one gap at most");
            dropped = taken.dropped;
        }
        match dropped {
            0 => head.push_str(&text_of(&taken)),
            _ => tail.push_str(&text_of(&taken)),
        }
    }
    (head, dropped, tail)
}

#[test]
fn what_fits_comes_back_verbatim() {
    let mut ring = Ring::new(40, Unit::Character);
    ring.push(Channel::Stdout, "ten bytes.".repeat(4).as_bytes());
    assert_eq!(
        take_all(&mut ring),
        ("ten bytes.".repeat(4), 0, String::new())
    );
    assert!(ring.is_empty());
}

#[test]
fn too_much_keeps_the_first_quarter_and_the_latest_three_and_counts_the_rest() {
    let mut ring = Ring::new(40, Unit::Character);
    for digit in ["0", "1", "2", "3", "4", "5"] {
        ring.push(Channel::Stdout, digit.repeat(10).as_bytes());
    }
    let tail = "3".repeat(10) + &"4".repeat(10) + &"5".repeat(10);
    assert_eq!(take_all(&mut ring), ("0".repeat(10), 20, tail));
}

#[test]
fn a_single_piece_larger_than_the_ring_is_cut_the_same_way() {
    let text: String = (0..1000)
        .map(|number| char::from(b'a' + (number % 26) as u8))
        .collect();
    let mut ring = Ring::new(40, Unit::Character);
    ring.push(Channel::Stdout, text.as_bytes());
    assert_eq!(
        take_all(&mut ring),
        (text[..10].into(), 960, text[970..].into())
    );
}

#[test]
fn what_was_dropped_adds_up_and_is_told_once() {
    let mut ring = Ring::new(40, Unit::Character);
    ring.push(Channel::Stdout, &[b'x'; 100]);
    ring.push(Channel::Stdout, &[b'y'; 100]);
    assert_eq!(take_all(&mut ring), ("x".repeat(10), 160, "y".repeat(30)));
    ring.push(Channel::Stdout, b"z");
    assert_eq!(take_all(&mut ring), ("z".into(), 0, String::new()));
}

#[test]
fn a_ring_that_only_lost_something_is_not_empty() {
    let mut ring = Ring::new(16, Unit::Character);
    ring.push(Channel::Stdout, &[b'x'; 100]);
    assert_eq!(text_of(&ring.take(100)), "xxxx");
    assert!(!ring.is_empty());
    assert_eq!(ring.take(5).dropped, 84);
    assert_eq!(text_of(&ring.take(100)), "xxxxxxx");
    assert!(ring.is_empty());
}

#[test]
fn characters_are_never_split_and_are_what_is_counted() {
    let mut ring = Ring::new(40, Unit::Character);
    ring.push(Channel::Stdout, "€".repeat(100).as_bytes());
    assert_eq!(take_all(&mut ring), ("€".repeat(3), 87, "€".repeat(10)));
}

#[test]
fn bytes_are_counted_and_split_where_the_output_is_raw() {
    let mut ring = Ring::new(40, Unit::Byte);
    ring.push(Channel::Stdout, "€".repeat(100).as_bytes());
    assert_eq!(ring.take(usize::MAX).chunks[0].data.len(), 10);
    let taken = ring.take(usize::MAX);
    assert_eq!((taken.dropped, taken.chunks[0].data.len()), (260, 30));
}

#[test]
fn channels_stay_apart_in_order_of_arrival() {
    let mut ring = Ring::new(100, Unit::Character);
    ring.push(Channel::Stdout, b"a");
    ring.push(Channel::Stdout, b"b");
    ring.push(Channel::Stderr, b"c");
    ring.push(Channel::Stdout, b"d");
    let chunks = ring.take(usize::MAX).chunks;
    let seen: Vec<_> = chunks
        .iter()
        .map(|chunk| (chunk.channel, chunk.data.as_slice()))
        .collect();
    let wanted: [(Channel, &[u8]); 3] = [
        (Channel::Stdout, b"ab"),
        (Channel::Stderr, b"c"),
        (Channel::Stdout, b"d"),
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn a_read_takes_no_more_than_it_asked_for_but_always_one_character() {
    let mut ring = Ring::new(100, Unit::Character);
    ring.push(Channel::Stdout, "ab€".as_bytes());
    ring.push(Channel::Stderr, b"cd");
    assert_eq!(text_of(&ring.take(3)), "ab");
    assert_eq!(text_of(&ring.take(0)), "€");
    assert_eq!(text_of(&ring.take(1)), "c");
    assert_eq!(text_of(&ring.take(9)), "d");
}

#[test]
fn after_a_part_was_read_there_is_room_for_more() {
    let mut ring = Ring::new(40, Unit::Character);
    ring.push(Channel::Stdout, &[b'x'; 40]);
    assert_eq!(text_of(&ring.take(10)).len(), 10);
    ring.push(Channel::Stdout, &[b'y'; 10]);
    let (text, dropped, _) = take_all(&mut ring);
    assert_eq!((text, dropped), ("x".repeat(30) + &"y".repeat(10), 0));
}

#[test]
fn channels_that_take_turns_byte_by_byte_cost_bounded_memory_and_lose_nothing_uncounted() {
    let mut ring = Ring::new(1024 * 1024, Unit::Character);
    for number in 0..200_000 {
        let channel = if number % 2 == 0 {
            Channel::Stdout
        } else {
            Channel::Stderr
        };
        ring.push(channel, b"x");
    }
    assert!(ring.head.spans.len() + ring.tail.spans.len() <= HEAD_SPANS + TAIL_SPANS);
    let (head, dropped, tail) = take_all(&mut ring);
    assert_eq!(head.len() as u64 + dropped + tail.len() as u64, 200_000);
    assert!(dropped > 0);
}

#[test]
fn an_empty_ring_holds_no_memory() {
    let mut ring = Ring::new(1024 * 1024, Unit::Character);
    ring.push(Channel::Stdout, &[b'x'; 3_000_000]);
    take_all(&mut ring);
    assert!(ring.head.bytes.capacity() + ring.tail.bytes.capacity() <= 8192);
}

#[test]
fn the_latest_characters_can_be_seen_and_stay() {
    let mut ring = Ring::new(40, Unit::Character);
    ring.push(Channel::Stdout, "abc€".as_bytes());
    assert_eq!(ring.latest(2), ("c€".into(), true));
    assert_eq!(ring.latest(4), ("abc€".into(), false));
    ring.push(Channel::Stdout, &[b'x'; 100]);
    assert_eq!(ring.latest(100), ("x".repeat(30), true));
    assert!(!ring.is_empty());
}

/// The first bytes of `text` up to `limit`, and the last, without splitting a character.
fn reference(text: &str, limit: usize) -> (String, u64, String) {
    let head_limit = limit / 4;
    let tail_limit = limit - head_limit;
    let mut head_end = head_limit.min(text.len());
    while !text.is_char_boundary(head_end) {
        head_end -= 1;
    }
    let rest = &text[head_end..];
    let mut tail_start = rest.len().saturating_sub(tail_limit);
    while !rest.is_char_boundary(tail_start) {
        tail_start += 1;
    }
    let dropped = rest[..tail_start].chars().count() as u64;
    let tail = rest[tail_start..].to_owned();
    match dropped {
        0 => (text[..head_end].to_owned() + &tail, 0, String::new()),
        _ => (text[..head_end].to_owned(), dropped, tail),
    }
}

/// What a ring must do, told step by step without being clever: every unread character with its channel, a gap in
/// between.
#[derive(Default)]
struct Model {
    head: Vec<(Channel, char)>,
    dropped: u64,
    tail: std::collections::VecDeque<(Channel, char)>,
}

impl Model {
    fn bytes<'c>(characters: impl IntoIterator<Item = &'c (Channel, char)>) -> usize {
        characters
            .into_iter()
            .map(|(_, character)| character.len_utf8())
            .sum()
    }

    fn push(&mut self, channel: Channel, text: &str, limit: usize) {
        for character in text.chars() {
            let fits = Self::bytes(&self.head) + character.len_utf8() <= limit / 4;
            if self.dropped == 0 && self.tail.is_empty() && fits {
                self.head.push((channel, character));
            } else {
                self.tail.push_back((channel, character));
            }
        }
        while Self::bytes(&self.tail) > limit - limit / 4 {
            self.tail.pop_front();
            self.dropped += 1;
        }
    }
}

proptest! {
    #[test]
    fn what_is_read_at_the_end_is_head_and_tail_of_the_text_with_the_exact_count(
        pieces in prop::collection::vec(("[a€é😀]{0,30}", any::<bool>()), 0..12),
        limit in 16usize..80,
    ) {
        let mut ring = Ring::new(limit, Unit::Character);
        let mut whole = String::new();
        for (piece, stderr) in &pieces {
            let channel = if *stderr { Channel::Stderr } else { Channel::Stdout };
            ring.push(channel, piece.as_bytes());
            whole.push_str(piece);
        }
        prop_assert_eq!(take_all(&mut ring), reference(&whole, limit));
    }

    #[test]
    fn a_read_in_between_never_loses_or_reorders_a_character(
        steps in prop::collection::vec(("[a€é😀]{0,30}", any::<bool>(), 0usize..60), 0..12),
        limit in 16usize..80,
    ) {
        let mut ring = Ring::new(limit, Unit::Character);
        let (mut pushed, mut seen) = (Vec::new(), Vec::new());
        let mut absorb = |taken: Taken, pushed: &[(Channel, char)]| {
            // What was dropped counts as seen, by its place.
            let from = seen.len();
            seen.extend_from_slice(&pushed[from..from + taken.dropped as usize]);
            for chunk in &taken.chunks {
                let text = std::str::from_utf8(&chunk.data).expect("whole characters");
                seen.extend(text.chars().map(|character| (chunk.channel, character)));
            }
            seen.clone()
        };
        for (piece, stderr, take) in &steps {
            let channel = if *stderr { Channel::Stderr } else { Channel::Stdout };
            let mut model = Model::default();
            let before_was_empty = ring.is_empty();
            ring.push(channel, piece.as_bytes());
            pushed.extend(piece.chars().map(|character| (channel, character)));
            if before_was_empty {
                model.push(channel, piece, limit);
                prop_assert_eq!(ring.dropped, model.dropped);
                prop_assert_eq!(ring.head.len(), Model::bytes(&model.head));
            }
            prop_assert!(ring.head.len() + ring.tail.len() <= limit);
            if *take > 0 {
                let seen = absorb(ring.take(*take), &pushed);
                prop_assert_eq!(&seen[..], &pushed[..seen.len()]);
            }
        }
        let mut seen = Vec::new();
        while !ring.is_empty() {
            seen = absorb(ring.take(usize::MAX), &pushed);
        }
        prop_assert!(seen.is_empty() || seen == pushed);
    }
}
