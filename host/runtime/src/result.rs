//! What a tool returned, from the wire form to plain data. A guest wrote it: what would get past the limits of its output, or is
//! no JSON where JSON is promised, does not get through.

use floe_protocol::StopReason;

use crate::bindings::floe::tool::types as wit;
use crate::call::{CallEnd, ToolResult};
use crate::capability::Failure;

/// Characters of a note, a failure's message and its hint: they stand outside the limit of the output.
const MAX_LINE: usize = 4096;
/// Characters of a failure's code.
const MAX_CODE: usize = 64;
/// Bytes of structured data.
const MAX_STRUCTURED: usize = 1 << 20;
/// Entries of the open set.
const MAX_METADATA: usize = 64;

/// Reads a result. One whose structured data cannot be used ends the call as a failure of the tool.
pub(crate) fn read(result: wit::ToolResult) -> CallEnd {
    let structured = match result.structured.as_deref().map(structured).transpose() {
        Ok(structured) => structured,
        Err(reason) => {
            let message = format!("the tool returned structured data that {reason}");
            return CallEnd::Failed(Failure::new("invalid-result", message));
        }
    };
    CallEnd::Returned(ToolResult {
        stop_reason: result.stop_reason.map(|reason| match reason {
            wit::StopReason::Completed => StopReason::Completed,
            wit::StopReason::Failed => StopReason::Failed,
            wit::StopReason::Aborted => StopReason::Aborted,
        }),
        note: result.note.map(|note| cut(note, MAX_LINE)),
        images: result.images,
        structured,
        metadata: result.metadata.into_iter().take(MAX_METADATA).collect(),
    })
}

/// A failure whose texts are no longer than a line may be.
pub(crate) fn bounded(failure: Failure) -> Failure {
    Failure {
        code: cut(failure.code, MAX_CODE),
        message: cut(failure.message, MAX_LINE),
        hint: failure.hint.map(|hint| cut(hint, MAX_LINE)),
        retryable: failure.retryable,
    }
}

fn structured(text: &str) -> Result<serde_json::Value, String> {
    if text.len() > MAX_STRUCTURED {
        return Err(format!("has {} bytes (limit {MAX_STRUCTURED})", text.len()));
    }
    serde_json::from_str(text).map_err(|error| format!("is not JSON ({error})"))
}

fn cut(mut text: String, characters: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(characters) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returning(structured: Option<&str>, note: Option<String>) -> CallEnd {
        read(wit::ToolResult {
            stop_reason: None,
            note,
            images: Vec::new(),
            structured: structured.map(str::to_owned),
            metadata: Vec::new(),
        })
    }

    #[test]
    fn structured_data_that_is_no_json_fails_the_call() {
        for garbage in [
            "{",
            "",
            "nul",
            &"[".repeat(100_000),
            &" ".repeat(MAX_STRUCTURED + 1),
        ] {
            let CallEnd::Failed(failure) = returning(Some(garbage), None) else {
                panic!("{garbage:.10} was taken");
            };
            assert_eq!(failure.code, "invalid-result");
        }
        assert!(matches!(
            returning(Some("{\"a\":1}"), None),
            CallEnd::Returned(_)
        ));
    }

    #[test]
    fn a_note_does_not_get_around_the_limit_of_the_output() {
        let CallEnd::Returned(result) = returning(None, Some("é".repeat(100_000))) else {
            panic!("a long note is no failure");
        };
        assert_eq!(result.note.unwrap().chars().count(), MAX_LINE + 1);
    }
}
