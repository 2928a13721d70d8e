//! The messages of one call on their way to the sink, in the order of the contract: start, delta*, stop, complete. The text of
//! the tool arrives here on the guest's thread and leaves at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use floe_protocol::{EventMsg, Facts, ModelMsg, OmniMessage, Phase, Role, StopReason};
use floe_runtime::OutputSink;
use floe_runtime::capability::commands::Recording;

use crate::close_out::{CloseOut, Ending};
use crate::gate::{Gate, Refusal};
use crate::options::MessageSink;
use crate::secrets::{Redactor, Secrets};
use crate::verbatim::Verbatim;

/// How often the count of an output that no longer streams is told.
const PROGRESS: Duration = Duration::from_millis(250);

/// The complete output of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCallOutput {
    /// The call.
    pub tool_call_id: String,
    /// What the model reads.
    pub output: String,
    /// `data:` URLs.
    pub images: Vec<String>,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// What the host knows apart from the text.
    pub facts: Option<Facts>,
    /// What became of the call.
    pub end: CallOutcome,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// It ran.
    Ran,
    /// It ran and was interrupted.
    Interrupted,
    /// A gate ended it.
    Gate(Gate),
    /// A mode or a person denied it, or nobody could be asked.
    Denied,
}

impl ToolCallOutput {
    /// The exit status of `floe call` (decisions, "Surfaces"): 0 completed, 1 failed, 3 denied, 130 interrupted.
    pub fn exit_status(&self) -> u8 {
        match (self.end, self.stop_reason) {
            (_, StopReason::Completed) => 0,
            (CallOutcome::Denied, _) | (CallOutcome::Gate(_), StopReason::Aborted) => 3,
            (_, StopReason::Aborted) => 130,
            _ => 1,
        }
    }
}

/// Writes the messages of one call.
#[derive(Clone)]
pub(crate) struct Frames {
    sink: Arc<dyn MessageSink>,
    tool_call_id: Arc<str>,
    secrets: Secrets,
}

impl Frames {
    pub(crate) fn new(sink: Arc<dyn MessageSink>, tool_call_id: &str, secrets: Secrets) -> Frames {
        Frames {
            sink,
            tool_call_id: tool_call_id.into(),
            secrets,
        }
    }

    fn partial(
        &self,
        event_type: Phase,
        output: String,
        images: Option<Vec<String>>,
        stop_reason: Option<StopReason>,
    ) {
        self.sink
            .emit(OmniMessage::model(ModelMsg::PartialToolCallOutput {
                role: Role::User,
                event_type,
                output,
                images,
                tool_call_id: self.tool_call_id.to_string(),
                stop_reason,
            }));
    }

    fn start(&self) {
        self.partial(Phase::Start, String::new(), None, None);
    }

    fn delta(&self, text: &str) {
        self.partial(Phase::Delta, text.to_owned(), None, None);
    }

    fn stop(&self, stop_reason: StopReason) {
        self.partial(Phase::Stop, String::new(), None, Some(stop_reason));
    }

    fn complete(&self, output: ToolCallOutput) -> ToolCallOutput {
        self.sink.emit(OmniMessage::model(ModelMsg::ToolCallOutput {
            role: Role::User,
            output: output.output.clone(),
            images: (!output.images.is_empty()).then(|| output.images.clone()),
            tool_call_id: output.tool_call_id.clone(),
            stop_reason: output.stop_reason,
            facts: output.facts.clone(),
        }));
        output
    }

    /// A call that a gate ended: framed as if it had run.
    pub(crate) fn refused(&self, refusal: Refusal) -> ToolCallOutput {
        // It may quote the arguments.
        let text = self.secrets.redact(&refusal.text).into_owned();
        self.start();
        self.delta(&text);
        self.stop(refusal.stop_reason);
        self.complete(ToolCallOutput {
            tool_call_id: self.tool_call_id.to_string(),
            output: text,
            images: Vec::new(),
            stop_reason: refusal.stop_reason,
            facts: Some(Facts {
                code: Some(refusal.code.to_owned()),
                ..Facts::default()
            }),
            end: CallOutcome::Gate(refusal.gate),
        })
    }

    /// A call that a mode or a person denied: the complete output alone.
    pub(crate) fn denied(&self) -> ToolCallOutput {
        self.complete(ToolCallOutput {
            tool_call_id: self.tool_call_id.to_string(),
            output: "Tool call denied by user.".into(),
            images: Vec::new(),
            stop_reason: StopReason::Aborted,
            facts: None,
            end: CallOutcome::Denied,
        })
    }
}

/// The output of a call that runs.
pub(crate) struct CallOutput {
    frames: Frames,
    state: Mutex<State>,
}

struct State {
    /// None once the call has ended.
    close_out: Option<CloseOut>,
    redactor: Redactor,
    verbatim: Verbatim,
    progress_told: Instant,
}

impl CallOutput {
    /// Opens the output.
    pub(crate) fn start(frames: Frames, close_out: CloseOut) -> Arc<CallOutput> {
        frames.start();
        let redactor = Redactor::new(frames.secrets.clone());
        Arc::new(CallOutput {
            frames,
            state: Mutex::new(State {
                close_out: Some(close_out),
                redactor,
                verbatim: Verbatim::default(),
                progress_told: Instant::now(),
            }),
        })
    }

    /// Ends the output. What is written after it goes nowhere.
    pub(crate) fn finish(&self, mut ending: Ending) -> ToolCallOutput {
        let interrupted = ending.interrupted;
        let mut state = self.lock();
        let mut close_out = state
            .close_out
            .take()
            .unwrap_or_else(|| CloseOut::new(0, floe_protocol::Truncation::Head, None));
        if ending.interrupted || ending.timed_out.is_some() {
            // What a tool that passes a command's text on was kept from passing on.
            let held = state.verbatim.take_held();
            let text = state
                .redactor
                .push(&String::from_utf8_lossy(&held))
                .into_owned();
            let now = close_out.write(&text);
            if !now.is_empty() {
                self.frames.delta(now);
            }
        }
        self.write_held(&mut close_out, &mut state.redactor);
        ending.redact(&self.frames.secrets);
        let closing = close_out.finish(ending);
        for delta in &closing.deltas {
            self.frames.delta(delta);
        }
        if !closing.images.is_empty() {
            let images = Some(closing.images.clone());
            self.frames
                .partial(Phase::Delta, String::new(), images, None);
        }
        self.frames.stop(closing.stop_reason);
        self.frames.complete(ToolCallOutput {
            tool_call_id: self.frames.tool_call_id.to_string(),
            output: closing.output,
            images: closing.images,
            stop_reason: closing.stop_reason,
            facts: (!closing.facts.is_empty()).then_some(closing.facts),
            end: if interrupted {
                CallOutcome::Interrupted
            } else {
                CallOutcome::Ran
            },
        })
    }

    /// What waited for the piece after it has none.
    fn write_held(&self, close_out: &mut CloseOut, redactor: &mut Redactor) {
        let held = redactor.finish();
        let now = close_out.write(&held);
        if !now.is_empty() {
            self.frames.delta(now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputSink for CallOutput {
    fn write(&self, delta: &str) -> u32 {
        // Held while the message leaves, so that the stream keeps the order of the text.
        let mut state = self.lock();
        let State {
            close_out,
            redactor,
            verbatim,
            progress_told,
        } = &mut *state;
        let Some(close_out) = close_out else {
            return 0;
        };
        verbatim.wrote(delta.as_bytes());
        if !close_out.is_source_decided() {
            close_out.comes_from(verbatim.recording());
        }
        let delta = redactor.push(delta);
        let now = close_out.write(&delta);
        if !now.is_empty() {
            self.frames.delta(now);
        } else if let Some(characters) = close_out.silent_progress()
            && progress_told.elapsed() >= PROGRESS
        {
            *progress_told = Instant::now();
            self.frames
                .sink
                .emit(OmniMessage::event(EventMsg::ToolProgress {
                    tool_call_id: self.frames.tool_call_id.to_string(),
                    characters,
                }));
        }
        close_out.still_kept()
    }

    fn dropped(&self, characters: u64) {
        let mut state = self.lock();
        let State {
            close_out,
            redactor,
            verbatim,
            ..
        } = &mut *state;
        if let Some(close_out) = close_out {
            if !close_out.is_source_decided() {
                close_out.comes_from(verbatim.recording());
            }
            self.write_held(close_out, redactor);
            let now = close_out.dropped(characters);
            if !now.is_empty() {
                self.frames.delta(&now);
            }
        }
    }

    fn handed(&self, recording: &Arc<dyn Recording>, text: &[u8]) {
        self.lock().verbatim.handed(recording, text);
    }
}
