//! Puts one streamed answer together, chunk by chunk. Knows nothing of HTTP.

use floe_protocol::{StopReason, TokenCount};

use super::calls::Calls;
use super::chunk::{Chunk, Delta};
use super::failure;
use crate::segments::{Emit, Segments, Speech};
use crate::{ModelAnswer, ModelError, ModelErrorKind};

/// How the service said that the answer is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Finish {
    /// By itself.
    Whole,
    /// At the limit of tokens.
    Length,
}

/// An answer that is being received.
pub(super) struct Answer<'a> {
    segments: Segments<'a>,
    calls: Calls,
    /// True once anything of the answer came.
    heard: bool,
    finish: Option<Finish>,
    usage: Option<TokenCount>,
}

impl<'a> Answer<'a> {
    pub(super) fn new(emit: Emit<'a>) -> Answer<'a> {
        Answer {
            segments: Segments::new(emit),
            calls: Calls::default(),
            heard: false,
            finish: None,
            usage: None,
        }
    }

    /// Takes the data of one event.
    ///
    /// # Errors
    ///
    /// `Malformed` for what cannot be understood; the class of the error object where the service sent one.
    pub(super) fn take(&mut self, data: &str) -> Result<(), ModelError> {
        let chunk: Chunk = serde_json::from_str(data).map_err(|error| {
            ModelError::new(
                ModelErrorKind::Malformed,
                format!("The model service sent an event that cannot be read: {error}."),
            )
        })?;
        if let Some(error) = chunk.error {
            return Err(failure::from_error_object(&error));
        }
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage.into());
        }
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            self.heard = true;
            self.take_delta(choice.delta)?;
            match choice.finish_reason.as_deref() {
                None | Some("") => {}
                Some("length") => self.finish(Finish::Length)?,
                Some("error") => {
                    return Err(ModelError::new(
                        ModelErrorKind::Failed,
                        "The model service ended the answer with an error.",
                    ));
                }
                Some(_) => self.finish(Finish::Whole)?,
            }
        }
        Ok(())
    }

    /// The stream is over in the way that the protocol says (`[DONE]`).
    ///
    /// # Errors
    ///
    /// The answer was cut at the limit of tokens, or it is not whole after all.
    pub(super) fn done(mut self) -> Result<ModelAnswer, ModelError> {
        if self.finish.is_none() {
            // Nobody said that the answer is whole: only what is whole by itself counts.
            self.calls.end_whole_calls(&mut self.segments);
            if !self.heard || self.calls.is_any_open(&self.segments) {
                return self.closed();
            }
            self.segments.end_all(StopReason::Completed);
        }
        self.end()
    }

    /// The stream is over without a word.
    ///
    /// # Errors
    ///
    /// As [`Answer::done`]; `Malformed` where the service had not said that the answer is whole.
    pub(super) fn closed(self) -> Result<ModelAnswer, ModelError> {
        if self.finish.is_some() {
            return self.end();
        }
        Err(self.fail(ModelError::new(
            ModelErrorKind::Malformed,
            "The answer of the model service ended in the middle.",
        )))
    }

    /// The stream broke, or went on with something that cannot be read. An answer that was whole by then stays good.
    ///
    /// # Errors
    ///
    /// `error`, unless the answer was whole.
    pub(super) fn broken(self, error: ModelError) -> Result<ModelAnswer, ModelError> {
        if self.finish.is_some() {
            return self.end();
        }
        Err(self.fail(error))
    }

    /// Closes what is open with the class of an error, and gives the error its tokens.
    fn fail(mut self, mut error: ModelError) -> ModelError {
        self.segments.end_all(error.kind.stop_reason());
        error.usage = self.usage;
        error
    }

    fn end(self) -> Result<ModelAnswer, ModelError> {
        match self.finish {
            Some(Finish::Length) => Err(ModelError {
                usage: self.usage,
                ..ModelError::new(
                    ModelErrorKind::Failed,
                    "The answer was cut at the limit of tokens (finish_reason: length).",
                )
            }),
            _ => Ok(ModelAnswer { usage: self.usage }),
        }
    }

    fn take_delta(&mut self, delta: Delta) -> Result<(), ModelError> {
        // A service that fills both fields says the same in both.
        let (field, thinking) = if delta.reasoning_content.is_empty() {
            ("reasoning", &delta.reasoning)
        } else {
            ("reasoning_content", &delta.reasoning_content)
        };
        self.speak(Speech::Thinking { field }, thinking);
        self.speak(Speech::Text, &delta.content);
        self.speak(Speech::Text, &delta.refusal);
        for fragment in delta.tool_calls {
            self.finish = None;
            self.calls.take(fragment, &mut self.segments)?;
        }
        Ok(())
    }

    fn speak(&mut self, kind: Speech, delta: &str) {
        if !delta.is_empty() {
            self.finish = None;
            self.calls.end_whole_calls(&mut self.segments);
            self.segments.speak(kind, delta);
        }
    }

    fn finish(&mut self, finish: Finish) -> Result<(), ModelError> {
        match finish {
            Finish::Whole => {
                self.calls.check_names()?;
                self.segments.end_all(StopReason::Completed);
            }
            Finish::Length => {
                self.calls.end_whole_calls(&mut self.segments);
                self.segments.end_all(StopReason::Failed);
            }
        }
        self.finish = Some(finish);
        Ok(())
    }
}
