//! What a process is blocked in, from `/proc/<pid>/syscall` and what the call's arguments point to. Pure but for reading
//! that memory.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// A call that may wait for input, without a limit of time.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    /// It reads this descriptor.
    Reading(u64),
    /// It waits for one of several descriptors.
    Watching(Watch),
}

/// Where the descriptors are that a process waits for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Watch {
    /// So many `struct pollfd` at an address.
    Poll { at: u64, count: u64 },
    /// Bit sets at addresses, of so many bits: to read, to write, exceptions.
    Select { sets: [u64; 3], bits: u64 },
    /// An epoll descriptor.
    Epoll(u64),
}

/// The numbers of the calls.
#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const READ: &[u64] = &[0, 19];
    pub(super) const POLL: u64 = 7;
    pub(super) const PPOLL: u64 = 271;
    pub(super) const SELECT: &[u64] = &[23, 270];
    pub(super) const EPOLL: &[u64] = &[232, 281];
    pub(super) const EPOLL_PWAIT2: u64 = 441;
}
#[cfg(not(target_arch = "x86_64"))]
mod number {
    pub(super) const READ: &[u64] = &[63, 65];
    /// There is none.
    pub(super) const POLL: u64 = u64::MAX;
    pub(super) const PPOLL: u64 = 73;
    pub(super) const SELECT: &[u64] = &[72];
    pub(super) const EPOLL: &[u64] = &[22];
    pub(super) const EPOLL_PWAIT2: u64 = 441;
}

/// `POLLIN`, also as an event of epoll.
const IN: u64 = 1;

impl Blocked {
    /// From a line of `/proc/<pid>/syscall`: the call's number, then its arguments in hexadecimal.
    pub(super) fn in_call(line: &str) -> Option<Blocked> {
        let mut fields = line.split_ascii_whitespace();
        let call: u64 = fields.next()?.parse().ok()?;
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            let digits = fields.next()?.strip_prefix("0x")?;
            *argument = u64::from_str_radix(digits, 16).ok()?;
        }
        let [first, second, third, fourth, fifth, _] = arguments;
        // A timeout in milliseconds is an `int`; a negative one never ends.
        let endless = |timeout: u64| (timeout as u32 as i32) < 0;
        match call {
            _ if number::READ.contains(&call) => Some(Blocked::Reading(first)),
            number::POLL if endless(third) => Some(Blocked::Watching(Watch::Poll {
                at: first,
                count: second,
            })),
            number::PPOLL if third == 0 => Some(Blocked::Watching(Watch::Poll {
                at: first,
                count: second,
            })),
            _ if number::SELECT.contains(&call) && fifth == 0 => {
                Some(Blocked::Watching(Watch::Select {
                    sets: [second, third, fourth],
                    bits: first,
                }))
            }
            _ if number::EPOLL.contains(&call) && endless(fourth) => {
                Some(Blocked::Watching(Watch::Epoll(first)))
            }
            number::EPOLL_PWAIT2 if fourth == 0 => Some(Blocked::Watching(Watch::Epoll(first))),
            _ => None,
        }
    }
}

impl Watch {
    /// The descriptors that process `pid` waits for, all of them to read from; `None` where it waits for something else
    /// as well, for more than `most`, or where the kernel does not tell.
    pub(super) fn descriptors(&self, pid: u32, most: usize) -> Option<Vec<u64>> {
        let memory = |at: u64, length: usize| {
            let mut bytes = vec![0; length];
            let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
            memory.read_exact_at(&mut bytes, at).ok()?;
            Some(bytes)
        };
        match *self {
            Watch::Poll { at, count } => {
                let count = usize::try_from(count).ok().filter(|count| *count <= most)?;
                polled(&memory(at, count * POLLFD)?)
            }
            Watch::Select { sets, bits } => {
                let bytes = (usize::try_from(bits).ok()?.div_ceil(64)).checked_mul(8)?;
                if bytes > 1024 / 8 {
                    return None;
                }
                let [read, write, exceptional] = sets.map(|at| match at {
                    0 => Some(vec![0; bytes]),
                    at => memory(at, bytes),
                });
                let none = |set: Option<Vec<u8>>| set?.iter().all(|byte| *byte == 0).then_some(());
                none(write)?;
                none(exceptional)?;
                let selected = selected(&read?, bits);
                (selected.len() <= most).then_some(selected)
            }
            Watch::Epoll(descriptor) => {
                let path = format!("/proc/{pid}/fdinfo/{descriptor}");
                registered(&fs::read_to_string(path).ok()?, most)
            }
        }
    }
}

/// The size of a `struct pollfd`.
const POLLFD: usize = 8;

fn polled(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut descriptors = Vec::new();
    for entry in bytes.chunks_exact(POLLFD) {
        let descriptor = i32::from_ne_bytes(entry[..4].try_into().ok()?);
        let events = u16::from_ne_bytes(entry[4..6].try_into().ok()?);
        // A negative one is passed over.
        let Ok(descriptor) = u64::try_from(descriptor) else {
            continue;
        };
        if u64::from(events) & IN == 0 {
            return None;
        }
        descriptors.push(descriptor);
    }
    Some(descriptors)
}

fn selected(set: &[u8], bits: u64) -> Vec<u64> {
    (0..bits)
        .filter(|bit| {
            set.get((bit / 8) as usize)
                .is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
        })
        .collect()
}

/// From the lines `tfd: DESCRIPTOR events: HEXADECIMAL ...` of an epoll descriptor.
fn registered(lines: &str, most: usize) -> Option<Vec<u64>> {
    let mut descriptors = Vec::new();
    for line in lines.lines() {
        let Some(entry) = line.strip_prefix("tfd:") else {
            continue;
        };
        let mut words = entry.split_ascii_whitespace();
        let descriptor = words.next()?.parse().ok()?;
        let events = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        if events & IN == 0 || descriptors.len() == most {
            return None;
        }
        descriptors.push(descriptor);
    }
    Some(descriptors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: u64, arguments: [u64; 6]) -> Option<Blocked> {
        let arguments: Vec<_> = arguments
            .iter()
            .map(|argument| format!("{argument:#x}"))
            .collect();
        Blocked::in_call(&format!("{number} {} 0x7ffc 0x7f1b\n", arguments.join(" ")))
    }

    #[test]
    fn a_read_has_its_descriptor_and_what_is_no_call_has_nothing() {
        let read = call(number::READ[0], [3, 0x7ffd, 0x1000, 0, 0, 0]);
        assert_eq!(read, Some(Blocked::Reading(3)));
        for other in [
            "running\n",
            "",
            "61 0x0 0x0",
            "-1 0x7ffd 0x7f1b",
            "read 0x0",
        ] {
            assert_eq!(Blocked::in_call(other), None, "{other:?}");
        }
    }

    #[test]
    fn only_a_wait_without_a_limit_of_time_counts() {
        let forever = u64::from(u32::MAX);
        let watches = |call: Option<Blocked>| matches!(call, Some(Blocked::Watching(_)));
        assert!(watches(call(number::PPOLL, [64, 1, 0, 0, 8, 0])));
        assert!(!watches(call(number::PPOLL, [64, 1, 96, 0, 8, 0])));
        assert!(watches(call(number::SELECT[0], [1, 64, 0, 0, 0, 0])));
        assert!(!watches(call(number::SELECT[0], [1, 64, 0, 0, 96, 0])));
        assert!(watches(call(number::EPOLL[0], [5, 64, 9, forever, 0, 8])));
        assert!(!watches(call(number::EPOLL[0], [5, 64, 9, 1000, 0, 8])));
        assert!(watches(call(number::EPOLL_PWAIT2, [5, 64, 9, 0, 0, 8])));
    }

    #[test]
    fn descriptors_are_those_to_read_from_and_another_wish_makes_them_unknown() {
        let entry = |descriptor: i32, events: u16| {
            let mut bytes = descriptor.to_ne_bytes().to_vec();
            bytes.extend(events.to_ne_bytes());
            bytes.extend([0, 0]);
            bytes
        };
        let both = [entry(0, 1), entry(-1, 4), entry(7, 3)].concat();
        assert_eq!(polled(&both), Some(vec![0, 7]));
        assert_eq!(polled(&entry(1, 4)), None);
        assert_eq!(selected(&[0b1000_0001, 1], 9), [0, 7, 8]);
        let lines = "pos:\t0\ntfd:        0 events:       19 data: 0\ntfd: 4 events: 1 data: 4\n";
        assert_eq!(registered(lines, 9), Some(vec![0, 4]));
        assert_eq!(registered(lines, 1), None);
        assert_eq!(registered("tfd: 0 events: 4 data: 0", 9), None);
    }
}
