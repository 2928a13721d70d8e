//! Following the chain of hashes line by line, whatever was done to the lines, and naming what does not fit.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use floe_protocol::{Body, EventMsg, OmniMessage};

use crate::faults::{Faults, Garbage, Place};
use crate::head::Head;
use crate::lines::{Line, Lines};
use crate::read::is_json_object;
use crate::seal::{RecordHash, Seal, unseal};
use crate::verify::{End, Fault, FaultKind, Verification};

/// What the end of the Trace is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    None,
    /// The last record has to have this hash.
    Given(RecordHash),
    /// The record of this number has to have this hash.
    Kept(u64, RecordHash),
}

impl Anchor {
    pub(crate) fn kept(head: &Head) -> Anchor {
        match RecordHash::parse(head.hash.as_bytes()) {
            Some(hash) => Anchor::Kept(head.seq, hash),
            None => Anchor::None,
        }
    }
}

/// What is known so far while the lines go by. Every step is constant or logarithmic in the number of lines.
pub(crate) struct Chain {
    anchor: Anchor,
    /// True for a copy of a later file: its first record need not be the Session's first.
    pub(crate) may_start_later: bool,
    place: Place,
    /// Where the last intact record stands.
    last_place: Place,
    /// The number that the next record should have.
    expected: u64,
    /// The hash of the last intact record.
    prev: RecordHash,
    /// Damaged lines since the last intact record: so many records may have stood there.
    damaged: u64,
    garbage: Garbage,
    /// Numbers that were skipped: first to last, and where that showed. A record that turns up later was moved.
    skipped: BTreeMap<u64, (u64, Place)>,
    records: u64,
    healed: u64,
    last_hash: Option<RecordHash>,
    /// Where the anchor was found.
    anchored_at: Option<Place>,
    anchor_differs: Option<Place>,
    faults: Faults,
}

impl Chain {
    pub(crate) fn new(anchor: Anchor) -> Chain {
        let start = Place { file: 0, line: 1 };
        Chain {
            anchor,
            may_start_later: false,
            place: start,
            last_place: start,
            expected: 0,
            prev: RecordHash::FIRST,
            damaged: 0,
            garbage: Garbage::default(),
            skipped: BTreeMap::new(),
            records: 0,
            healed: 0,
            last_hash: None,
            anchored_at: None,
            anchor_differs: None,
            faults: Faults::default(),
        }
    }

    /// Follows the chain through the lines of the file with this number, after those before.
    pub(crate) fn file(&mut self, index: usize, mut lines: Lines<impl BufRead>) -> io::Result<()> {
        while let Some(line) = lines.next()? {
            self.line(index, line);
        }
        Ok(())
    }

    fn fault(&mut self, place: Place, kind: FaultKind, detail: impl Into<String>) {
        self.faults.add(place, kind, detail);
    }

    fn line(&mut self, file: usize, line: Line<'_>) {
        self.place = Place {
            file,
            line: line.number,
        };
        if !line.ended {
            let detail = "the last line is not complete; the Session ended while it was written, or the end was cut";
            self.fault(self.place, FaultKind::CutOff, detail);
        }
        let seal = unseal(line.bytes);
        match seal {
            // What carries its own hash was written by a writer of records, so its JSON need not be parsed again.
            Some(seal) if seal.intact && line.bytes.starts_with(b"{") => {
                self.record(seal, line.bytes)
            }
            _ if !is_json_object(line.bytes) => {
                if line.ended {
                    self.garbage.add(self.place, line.length);
                }
                self.damaged += 1;
            }
            Some(_) => {
                self.fault(
                    self.place,
                    FaultKind::Changed,
                    "its hash does not fit its bytes",
                );
                self.damaged += 1;
            }
            None => {
                let detail = "it does not end in `seq`, `prev` and `hash`";
                self.fault(self.place, FaultKind::Changed, detail);
                self.damaged += 1;
            }
        }
    }

    fn record(&mut self, seal: Seal, bytes: &[u8]) {
        self.settle_garbage(&seal, bytes);
        self.records += 1;
        self.compare_with_anchor(&seal);
        if self.records == 1 && self.damaged == 0 && self.may_start_later {
            self.expected = seal.seq;
            self.prev = seal.prev;
        }
        if seal.seq < self.expected {
            return self.out_of_order(&seal);
        }
        if seal.seq == self.expected && seal.prev != self.prev {
            self.broken_link(&seal);
        }
        // Each damaged line may have been one of the records in between.
        let first_missing = self.expected + self.damaged.min(seal.seq - self.expected);
        if first_missing < seal.seq {
            self.skipped
                .insert(first_missing, (seal.seq - 1, self.place));
        }
        self.expected = seal.seq + 1;
        self.prev = seal.hash;
        self.last_hash = Some(seal.hash);
        self.last_place = self.place;
        self.damaged = 0;
    }

    /// A record in its place that was written after another one than stands before it.
    fn broken_link(&mut self, seal: &Seal) {
        match seal.seq.checked_sub(1) {
            None => {
                let detail = "the first record names one before it";
                self.fault(self.place, FaultKind::Changed, detail);
            }
            Some(before) => {
                let detail = format!(
                    "record {before} is not the one that record {} was written after",
                    seal.seq
                );
                self.fault(self.last_place, FaultKind::Changed, detail);
            }
        }
    }

    /// A record with a number that was due before: one that was moved here, or one more of the same.
    fn out_of_order(&mut self, seal: &Seal) {
        let number = seal.seq;
        let gap = self
            .skipped
            .range(..=number)
            .next_back()
            .map(|(first, (last, place))| (*first, *last, *place))
            .filter(|(_, last, _)| *last >= number);
        match gap {
            Some((first, last, place)) => {
                self.skipped.remove(&first);
                if first < number {
                    self.skipped.insert(first, (number - 1, place));
                }
                if number < last {
                    self.skipped.insert(number + 1, (last, place));
                }
                let detail = format!("record {number} stands after record {}", self.expected - 1);
                self.fault(self.place, FaultKind::Reordered, detail);
            }
            None => {
                let detail = format!("record {number} stands here again");
                self.fault(self.place, FaultKind::Reordered, detail);
            }
        }
    }

    /// Lines that are not JSON are faults, unless this record says that a writer ended them.
    fn settle_garbage(&mut self, seal: &Seal, bytes: &[u8]) {
        if self.garbage.lines == 0 {
            return;
        }
        if self.damaged == self.garbage.lines
            && seal.seq == self.expected
            && seal.prev == self.prev
            && healed_bytes(bytes) == Some(self.garbage.bytes)
        {
            self.healed += self.garbage.lines;
            self.damaged = 0;
            self.garbage = Garbage::default();
        }
        self.report_garbage();
    }

    fn report_garbage(&mut self) {
        self.faults.add_garbage(std::mem::take(&mut self.garbage));
    }

    fn compare_with_anchor(&mut self, seal: &Seal) {
        match self.anchor {
            Anchor::Given(hash) if hash == seal.hash => {
                self.anchored_at.get_or_insert(self.place);
            }
            Anchor::Kept(number, hash) if number == seal.seq => {
                if hash == seal.hash {
                    self.anchored_at.get_or_insert(self.place);
                } else {
                    self.anchor_differs = Some(self.place);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn end(mut self, files: Vec<PathBuf>, missing: &Path) -> Verification {
        self.report_garbage();
        for (first, (last, place)) in std::mem::take(&mut self.skipped) {
            let detail = if first == last {
                format!("record {first} is not here")
            } else {
                format!("records {first} to {last} are not here")
            };
            self.fault(place, FaultKind::Missing, detail);
        }
        let end = self.anchor_end(files.is_empty());
        Verification {
            records: self.records,
            healed: self.healed,
            last_hash: self.last_hash.map(|hash| hash.to_string()),
            end,
            faults: self
                .faults
                .sorted()
                .into_iter()
                .map(|(place, kind, detail)| Fault {
                    file: files
                        .get(place.file)
                        .map_or(missing, PathBuf::as_path)
                        .to_owned(),
                    line: place.line,
                    kind,
                    detail,
                })
                .collect(),
            files,
        }
    }

    fn anchor_end(&mut self, no_files: bool) -> End {
        let last = self.expected.checked_sub(1);
        match (self.anchor, self.anchored_at) {
            (Anchor::None, _) => return End::NotAnchored,
            (_, Some(place)) if place == self.last_place => return End::Anchored,
            (Anchor::Kept(number, _), Some(_)) => {
                return End::Beyond(last.unwrap_or(number) - number);
            }
            (Anchor::Given(_), Some(_)) => {
                let detail = "the given head is an earlier record; this one was added after it";
                self.fault(self.last_place, FaultKind::Changed, detail);
            }
            (Anchor::Kept(number, hash), None) => match self.anchor_differs {
                Some(place) => {
                    let detail = format!("record {number} is not the head, {hash}");
                    self.fault(place, FaultKind::Changed, detail);
                }
                None if no_files => {
                    let detail =
                        format!("all files are gone; the head, {hash}, is record {number}");
                    self.fault(self.place, FaultKind::Missing, detail);
                }
                None if self.expected.saturating_add(self.damaged) <= number => {
                    let detail = format!(
                        "the head, {hash}, is record {number}; here the last is {}",
                        last.map_or("none".to_owned(), |last| last.to_string())
                    );
                    self.fault(self.place, FaultKind::CutOff, detail);
                }
                // The line of the head is damaged, and that was reported.
                None => {}
            },
            (Anchor::Given(hash), None) => {
                let detail = format!("no record has the hash of the given head, {hash}");
                self.fault(self.place, FaultKind::CutOff, detail);
            }
        }
        End::NotAnchored
    }
}

/// How many bytes a `trace_healed` record explains.
fn healed_bytes(line: &[u8]) -> Option<u64> {
    match serde_json::from_slice::<OmniMessage>(line).ok()?.body {
        Body::EventMsg(EventMsg::TraceHealed { bytes }) => Some(bytes),
        _ => None,
    }
}
