//! The output of a call as a result of the protocol. What a tool or the Environment says about a failure is text that the model reads:
//! an error of the protocol would be shown to nobody.

use floe_environment::ToolCallOutput;
use floe_protocol::{Facts, StopReason};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};

/// Where a result holds what the host knows about the call.
pub(crate) const FACTS: &str = "floe/facts";

/// The result; `remark` is what a person can do about it, for the end of the text.
pub(crate) fn result(output: ToolCallOutput, remark: Option<String>) -> CallToolResult {
    let mut content = vec![ContentBlock::text(output.output)];
    content.extend(remark.map(ContentBlock::text));
    content.extend(output.images.iter().map(|image| picture(image)));
    let mut result = match output.stop_reason {
        StopReason::Completed => CallToolResult::success(content),
        _ => CallToolResult::error(content),
    };
    let mut facts = output.facts.unwrap_or_default();
    result.structured_content = facts.structured.take();
    result.meta = meta(&facts);
    result
}

/// A call that was not even made.
pub(crate) fn refused(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

fn meta(facts: &Facts) -> Option<MetaObject> {
    if facts.is_empty() {
        return None;
    }
    let mut meta = MetaObject::new();
    meta.0
        .insert(FACTS.to_owned(), serde_json::to_value(facts).ok()?);
    Some(meta)
}

/// An image from its `data:` URL.
fn picture(url: &str) -> ContentBlock {
    let parts = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    match parts {
        Some((kind, data)) => ContentBlock::image(data, kind),
        None => ContentBlock::text("[an image that cannot be passed on]"),
    }
}

#[cfg(test)]
mod tests {
    use floe_environment::{CallOutcome, Gate};
    use serde_json::{Value, json};

    use super::*;

    fn output(stop_reason: StopReason) -> ToolCallOutput {
        ToolCallOutput {
            tool_call_id: "call".into(),
            output: "text".into(),
            images: vec![],
            stop_reason,
            facts: None,
            end: CallOutcome::Ran,
        }
    }

    fn json_of(output: ToolCallOutput, remark: Option<&str>) -> Value {
        serde_json::to_value(result(output, remark.map(Into::into))).unwrap()
    }

    #[test]
    fn text_images_structure_and_facts_each_have_their_place() {
        let mut output = output(StopReason::Completed);
        output.images = vec!["data:image/png;base64,iVBO".into()];
        output.facts = Some(Facts {
            exit_code: Some(0),
            structured: Some(json!({"a": 1})),
            ..Facts::default()
        });
        let result = json_of(output, None);
        assert_eq!(
            result["content"],
            json!([
                {"type": "text", "text": "text"},
                {"type": "image", "data": "iVBO", "mimeType": "image/png"},
            ])
        );
        assert_eq!(result["isError"], false);
        assert_eq!(result["structuredContent"], json!({"a": 1}));
        assert_eq!(result["_meta"], json!({FACTS: {"exit_code": 0}}));
    }

    #[test]
    fn whatever_is_not_completed_is_an_error_of_the_tool() {
        for stop_reason in [StopReason::Failed, StopReason::Aborted] {
            let mut output = output(stop_reason);
            output.end = CallOutcome::Gate(Gate::Surface);
            let result = json_of(output, Some("remark"));
            assert_eq!(result["isError"], true);
            assert_eq!(result["content"][0]["text"], "text");
            assert_eq!(result["content"][1]["text"], "remark");
            assert!(result.get("_meta").is_none());
        }
    }
}
