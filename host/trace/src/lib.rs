//! The Trace: the append-only record of a Session, one JSON object a line, each holding the hash of the one before.
//!
//! Invariants. A line is written with one write and never changed afterwards. What a line's hash covers is found by
//! counting from the line's end, so that no payload can be taken for it. A failed write is an error for its caller only, and the
//! gap is recorded as soon as writing works again. There is no key: a chain shows that a Trace was changed by accident or by somebody
//! who could not write `FLOE_HOME`, and nothing more.
//!
//! The format is a contract (docs: reference, Trace): the last keys of a line are `seq`, `prev` and `hash`; `hash` is the SHA-256 in hex of the
//! line's bytes before `,"hash":`; `prev` is the `hash` of the record before, across files too, and 64 zeros in the first.

mod chain;
mod error;
mod faults;
mod files;
mod head;
mod lines;
mod list;
mod read;
mod regular;
mod seal;
mod show;
mod verify;
mod writer;

pub use error::TraceError;
pub use files::{TraceFiles, find};
pub use head::Head;
pub use list::{TraceState, TraceSummary, list};
pub use read::{ReadFault, Record, raw_lines, read};
pub use show::show;
pub use verify::{End, Fault, FaultKind, Verification, VerifyTarget, verify};
pub use writer::TraceWriter;
