//! What a tool returns: how the call ended, and what goes beside the text.

use crate::bindings::floe::tool::types::{Image, StopReason, ToolResult};

/// How a call ended, with what belongs to it beside the text that went through [`output`](crate::output).
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    stop_reason: StopReason,
    text: Option<String>,
    note: Option<String>,
    images: Vec<Image>,
    structured: Option<String>,
    metadata: Vec<(String, String)>,
}

impl Outcome {
    /// The tool did what was asked.
    pub fn completed() -> Outcome {
        Outcome::ended(StopReason::Completed)
    }

    /// The tool did what was asked, and this text is its last output.
    pub fn text(text: impl Into<String>) -> Outcome {
        Outcome {
            text: Some(text.into()),
            ..Outcome::completed()
        }
    }

    /// The tool could not do what was asked. The message is the last output: what failed, on what, and what to do.
    pub fn failed(message: impl Into<String>) -> Outcome {
        Outcome {
            text: Some(message.into()),
            ..Outcome::failed_silently()
        }
    }

    /// The tool could not do what was asked, and its output or a note says so already.
    pub fn failed_silently() -> Outcome {
        Outcome::ended(StopReason::Failed)
    }

    /// The text that the host and this crate use for a required argument that is absent or empty.
    pub fn missing_argument(argument: &str, tool: &str) -> Outcome {
        Outcome::failed(format!(
            "Missing required argument \"{argument}\" for {tool}."
        ))
    }

    fn ended(stop_reason: StopReason) -> Outcome {
        Outcome {
            stop_reason,
            text: None,
            note: None,
            images: Vec::new(),
            structured: None,
            metadata: Vec::new(),
        }
    }

    /// Adds a note: a line after the output that no limit cuts, `[in square brackets]` by convention.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Outcome {
        self.note = Some(note.into());
        self
    }

    /// Adds an image for the model. The host encodes it and drops it where the call does not complete.
    #[must_use]
    pub fn with_image(mut self, mime_type: impl Into<String>, data: Vec<u8>) -> Outcome {
        self.images.push(Image {
            mime_type: mime_type.into(),
            data,
        });
        self
    }

    /// Adds a value for programs, serialised as JSON; the model does not see it.
    ///
    /// # Panics
    /// Where the value cannot be written as JSON, such as a map whose keys are not strings.
    #[must_use]
    pub fn with_structured(mut self, value: &impl serde::Serialize) -> Outcome {
        self.structured =
            Some(serde_json::to_string(value).expect("a structured value can be written as JSON"));
        self
    }

    /// True where the tool did what was asked.
    pub fn is_completed(&self) -> bool {
        self.stop_reason == StopReason::Completed
    }

    /// The last output, where the outcome carries one.
    pub fn last_text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The note, where there is one.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The images, as (MIME type, bytes).
    pub fn images(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.images
            .iter()
            .map(|image| (image.mime_type.as_str(), image.data.as_slice()))
    }

    /// The record of the contract, and the text that has yet to be written.
    pub(crate) fn into_result(self) -> (Option<String>, ToolResult) {
        let result = ToolResult {
            stop_reason: Some(self.stop_reason),
            note: self.note,
            images: self.images,
            structured: self.structured,
            metadata: self.metadata,
        };
        (self.text, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_argument_is_named_with_its_tool() {
        let outcome = Outcome::missing_argument("cmd", "exec_command");
        assert!(!outcome.is_completed());
        assert_eq!(
            outcome.last_text(),
            Some("Missing required argument \"cmd\" for exec_command.")
        );
    }

    #[test]
    fn an_outcome_becomes_the_record_of_the_contract_and_its_last_text() {
        let outcome = Outcome::text("done")
            .with_note("[note]")
            .with_image("image/png", vec![1])
            .with_structured(&[1, 2]);
        let (text, result) = outcome.into_result();
        assert_eq!(text.as_deref(), Some("done"));
        assert_eq!(result.stop_reason, Some(StopReason::Completed));
        assert_eq!(result.note.as_deref(), Some("[note]"));
        assert_eq!(result.images.len(), 1);
        assert_eq!(result.structured.as_deref(), Some("[1,2]"));
    }
}
