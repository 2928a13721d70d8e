//! How every call ends: the close-out of spec/environment.md 1.3 as a state machine without I/O of its own.
//!
//! It takes the text of a call as it is produced, says what of it streams now, and at the end says what is still to be
//! streamed and what the complete output is. Whatever was streamed, joined, equals the complete output. It never ends
//! empty, and it never decides anything: whether the call was interrupted or timed out is told to it.

use std::borrow::Cow;
use std::sync::Arc;

use floe_protocol::{Facts, StopReason, Truncation};
use floe_runtime::capability::commands::Recording;

use crate::cut::{Cut, Rest};
use crate::secrets::Secrets;

/// The words where there is nothing to say.
pub(crate) const NO_OUTPUT: &str = "[no output]";
/// The note of an interrupt.
pub(crate) const INTERRUPTED: &str = "[interrupted: tool aborted by user]";

/// The note of a command that ran without the sandbox.
pub(crate) const UNCONFINED: &str = "[UNCONFINED: ran without the sandbox]";

/// Keeps the whole of an output that is cut. The first text arrives when the output goes over its budget.
pub(crate) trait KeepWhole: Send {
    /// The whole is what a command prints, as it came; appending does nothing from here on.
    fn record(&mut self, recording: Arc<dyn Recording>);
    /// Appends text. A failure is remembered, not reported: it never changes how the call ends.
    fn append(&mut self, text: &str);
    /// Ends the file.
    fn finish(&mut self) -> Kept;
}

/// What became of the whole output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It can be read under this path, as the tools see it.
    At(String),
    /// It is not kept, and why.
    Not(String),
}

/// What the tool itself said about its end.
#[derive(Debug, Default)]
pub(crate) struct SelfReport {
    /// Completed where none.
    pub(crate) stop_reason: Option<StopReason>,
    /// The tool's own note.
    pub(crate) note: Option<String>,
    /// `data:` URLs.
    pub(crate) images: Vec<String>,
}

/// How a call ended. Several may hold at once; the close-out knows which comes first.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// What the tool returned, where it returned.
    pub(crate) returned: SelfReport,
    /// The message of a trap or of the error case, where there was one.
    pub(crate) error: Option<String>,
    /// The limit in milliseconds, where it ran out.
    pub(crate) timed_out: Option<i64>,
    /// True where the person interrupted before the close-out.
    pub(crate) interrupted: bool,
    /// Lines of the host about what it did for the call; they stand before the tool's own note.
    pub(crate) host_notes: Vec<String>,
    /// What the host knows; `truncated` and `full_output` are filled in here.
    pub(crate) facts: Facts,
}

impl Ending {
    /// Takes secrets out of all that becomes text.
    pub(crate) fn redact(&mut self, secrets: &Secrets) {
        let texts = self
            .host_notes
            .iter_mut()
            .chain(&mut self.returned.note)
            .chain(&mut self.error);
        for text in texts {
            if let Cow::Owned(redacted) = secrets.redact(text) {
                *text = redacted;
            }
        }
        if let Some(structured) = &mut self.facts.structured {
            secrets.redact_json(structured);
        }
    }
}

/// What is still to be emitted, in this order: the deltas, the images in a delta of their own, stop, the complete message.
#[derive(Debug)]
pub(crate) struct Closing {
    pub(crate) deltas: Vec<String>,
    pub(crate) images: Vec<String>,
    pub(crate) stop_reason: StopReason,
    pub(crate) output: String,
    pub(crate) facts: Facts,
}

/// One call's output on its way to its end.
pub(crate) struct CloseOut {
    cut: Cut,
    /// What was streamed so far.
    body: String,
    /// False where the last text left its line open.
    at_line_start: bool,
    keeper: Option<Box<dyn KeepWhole>>,
    keeping: bool,
    /// Where the output so far is the text of a command: the bytes that it was made of.
    source: Option<Arc<dyn Recording>>,
}

impl CloseOut {
    /// For a tool with these limits. Without a keeper the whole of a cut output is lost.
    pub(crate) fn new(
        max_output_length: i64,
        truncation: Truncation,
        keeper: Option<Box<dyn KeepWhole>>,
    ) -> CloseOut {
        CloseOut {
            cut: Cut::new(max_output_length, truncation),
            body: String::new(),
            at_line_start: true,
            keeper,
            keeping: false,
            source: None,
        }
    }

    /// Whether it is decided what is kept of the whole output: nothing, or what began when it went over its budget.
    pub(crate) fn is_source_decided(&self) -> bool {
        self.keeping || self.keeper.is_none()
    }

    /// All text up to and with the next is that of a command, with these bytes; or is not.
    pub(crate) fn comes_from(&mut self, source: Option<Arc<dyn Recording>>) {
        self.source = source;
    }

    /// Takes text and returns the part of it that streams now; empty where none does.
    pub(crate) fn write<'text>(&mut self, text: &'text str) -> &'text str {
        if !self.keeping && self.cut.exceeds_with(text) {
            self.keep_from_here();
        }
        if self.keeping
            && let Some(keeper) = &mut self.keeper
        {
            keeper.append(text);
        }
        if !text.is_empty() {
            self.at_line_start = text.ends_with('\n');
        }
        let now = self.cut.write(text);
        self.body.push_str(now);
        now
    }

    /// `characters` were lost before they reached the output. Returns what streams now in their place.
    pub(crate) fn dropped(&mut self, characters: u64) -> String {
        if characters == 0 {
            return String::new();
        }
        let open_line = if self.at_line_start { "" } else { "\n" };
        let line = format!("{open_line}[... {characters} chars of earlier output dropped ...]\n");
        if self.cut.keeps_tail() {
            self.keep_from_here();
            if let Some(keeper) = &mut self.keeper {
                keeper.append(&line);
            }
            self.at_line_start = true;
            self.cut.dropped(characters);
            return String::new();
        }
        self.cut.dropped(characters);
        self.write(&line).to_owned()
    }

    /// Characters that the tool may still write with an effect.
    pub(crate) fn still_kept(&self) -> u32 {
        self.cut.still_kept()
    }

    /// The count for a progress event, where the output no longer streams.
    pub(crate) fn silent_progress(&self) -> Option<u64> {
        (self.cut.keeps_tail() && self.cut.still_streams() == 0).then(|| self.cut.seen())
    }

    fn keep_from_here(&mut self) {
        if self.keeping {
            return;
        }
        if let Some(keeper) = &mut self.keeper {
            match self.source.take() {
                Some(recording) => keeper.record(recording),
                None => {
                    keeper.append(&self.body);
                    keeper.append(self.cut.held_back());
                }
            }
            self.keeping = true;
        }
    }

    /// Ends the call. User interrupt > timeout > trap or error > self-report.
    pub(crate) fn finish(self, ending: Ending) -> Closing {
        let CloseOut {
            cut,
            mut body,
            keeper,
            keeping,
            ..
        } = self;
        let kept = keeper.filter(|_| keeping).map(|mut keeper| keeper.finish());
        let mut facts = ending.facts;
        let mut deltas = Vec::new();
        let mut notes = Vec::new();

        match cut.finish() {
            Rest::Whole { tail } => deltas.push(tail),
            Rest::Head { limit } => {
                facts.truncated = Some(true);
                notes.push(format!("[output truncated: exceeded {limit} chars]"));
            }
            Rest::HeadTail {
                first,
                last,
                of,
                tail,
            } => {
                facts.truncated = Some(true);
                deltas.push(middle(&body, first, last, of, kept.as_ref(), &tail));
            }
        }
        if let Some(Kept::At(path)) = kept {
            facts.full_output = Some(path);
        }
        deltas.retain(|delta| !delta.is_empty());
        body.extend(deltas.iter().map(String::as_str));

        notes.extend(ending.host_notes);
        notes.extend(ending.returned.note.filter(|note| !note.is_empty()));
        let reported = ending.returned.stop_reason.unwrap_or(StopReason::Completed);
        let stop_reason = if ending.interrupted
            || (ending.timed_out.is_none() && reported == StopReason::Aborted)
        {
            notes.push(INTERRUPTED.to_owned());
            StopReason::Aborted
        } else if let Some(limit) = ending.timed_out {
            notes.push(format!("[tool timeout: exceeded {limit}ms]"));
            StopReason::Failed
        } else if let Some(message) = ending.error {
            notes.push(format!("[tool error] {message}"));
            StopReason::Failed
        } else {
            reported
        };

        let mut closing = notes.join("\n");
        if closing.is_empty() {
            if body.is_empty() {
                closing.push_str(NO_OUTPUT);
            }
        } else if !body.is_empty() {
            // One newline always, also after a body that ends in one.
            closing.insert(0, '\n');
        }
        body.push_str(&closing);
        if !closing.is_empty() {
            deltas.push(closing);
        }
        let images = if stop_reason == StopReason::Completed {
            ending.returned.images
        } else {
            Vec::new()
        };
        Closing {
            deltas,
            images,
            stop_reason,
            output: body,
            facts,
        }
    }
}

/// The marker with the lines around it, and the end of the output.
fn middle(
    head: &str,
    first: usize,
    last: usize,
    of: u64,
    kept: Option<&Kept>,
    tail: &str,
) -> String {
    let mut text = String::with_capacity(tail.len() + 128);
    if !head.is_empty() && !head.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!(
        "[output truncated: kept first {first} and last {last} of {of} chars]"
    ));
    match kept {
        Some(Kept::At(path)) => text.push_str(&format!("\n[full output: {path}]")),
        Some(Kept::Not(why)) => text.push_str(&format!("\n[full output not kept: {why}]")),
        None => {}
    }
    if !tail.starts_with('\n') {
        text.push('\n');
    }
    text.push_str(tail);
    text
}

#[cfg(test)]
#[path = "close_out_tests.rs"]
mod tests;
