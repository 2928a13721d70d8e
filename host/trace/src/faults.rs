//! What does not fit in a Trace, kept in bounded memory, however much of the file is damaged.

use std::collections::BTreeMap;

use crate::FaultKind;

/// So many faults of a kind are named one by one. Of a file that is damaged throughout, the first tell as much as all, and all may not
/// fit into memory.
const NAMED: usize = 1000;

/// A line by its file and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) file: usize,
    pub(crate) line: u64,
}

/// Faults as they are found, in bounded memory.
#[derive(Default)]
pub(crate) struct Faults {
    named: Vec<(Place, FaultKind, String)>,
    counts: BTreeMap<FaultKind, usize>,
    /// How many more there are of a kind, and where the first of them is.
    left_out: BTreeMap<FaultKind, (Place, u64)>,
}

impl Faults {
    pub(crate) fn add(&mut self, place: Place, kind: FaultKind, detail: impl Into<String>) {
        let count = self.counts.entry(kind).or_default();
        if *count == NAMED {
            return self.leave_out(place, kind, 1);
        }
        *count += 1;
        self.named.push((place, kind, detail.into()));
    }

    /// Every line of `garbage` is a fault.
    pub(crate) fn add_garbage(&mut self, garbage: Garbage) {
        let Garbage { lines, places, .. } = garbage;
        let named = places.len().min(NAMED);
        for place in &places[..named] {
            self.add(*place, FaultKind::NotJson, "the line is not a JSON object");
        }
        if let Some(place) = places.get(named) {
            self.leave_out(*place, FaultKind::NotJson, lines - named as u64);
        }
    }

    fn leave_out(&mut self, place: Place, kind: FaultKind, more: u64) {
        let (_, count) = self.left_out.entry(kind).or_insert((place, 0));
        *count += more;
    }

    /// By file and line.
    pub(crate) fn sorted(self) -> Vec<(Place, FaultKind, String)> {
        let mut all = self.named;
        all.extend(self.left_out.into_iter().map(|(kind, (place, count))| {
            let detail = format!("{count} more from here on, not named one by one");
            (place, kind, detail)
        }));
        all.sort();
        all
    }
}

/// Lines that are not JSON since the last intact record: a `trace_healed` explains them.
#[derive(Default)]
pub(crate) struct Garbage {
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    /// The first of them.
    places: Vec<Place>,
}

impl Garbage {
    pub(crate) fn add(&mut self, place: Place, bytes: u64) {
        self.lines += 1;
        self.bytes += bytes;
        // One more than is named, for the place from which on they are not.
        if self.places.len() <= NAMED {
            self.places.push(place);
        }
    }
}
