//! How many tokens an answer may have (spec/environment.md 1.10): what was configured, but no more than the window still holds.

use floe_model::{ModelRequest, ToolOffer};
use floe_protocol::ModelMsg;

/// Tokens that are left free for what the estimate misses.
const RESERVE: u64 = 1024;
/// The least that is asked for, so that a full window still yields an answer or a clear error.
const FLOOR: u64 = 512;
/// Tokens that an image counts as.
const IMAGE: u64 = 1600;
/// ASCII characters to a token; any other character is one.
const ASCII_PER_TOKEN: u64 = 4;

/// The limit for an answer; none where nothing was configured, which leaves it to the service.
pub(crate) fn max_tokens(
    configured: Option<u64>,
    window: Option<u64>,
    request: &ModelRequest,
) -> Option<u64> {
    let configured = configured?;
    let Some(window) = window else {
        return Some(configured);
    };
    let room = window
        .saturating_sub(estimate(request))
        .saturating_sub(RESERVE);
    Some(configured.min(room).max(FLOOR))
}

fn estimate(request: &ModelRequest) -> u64 {
    let history: u64 = request.history.iter().map(message).sum();
    let tools: u64 = request.tools.iter().map(tool).sum();
    text(&request.system_prompt) + history + tools
}

fn tool(offer: &ToolOffer) -> u64 {
    text(&offer.name) + text(&offer.description) + text(&offer.parameters.to_string())
}

fn message(message: &ModelMsg) -> u64 {
    match message {
        ModelMsg::Text { text: said, .. } => text(said),
        ModelMsg::Thinking { thinking, .. } => text(thinking),
        ModelMsg::ToolCall {
            name, arguments, ..
        } => text(name) + text(arguments),
        ModelMsg::ToolCallOutput { output, images, .. } => {
            text(output) + IMAGE * images.as_ref().map_or(0, |images| images.len() as u64)
        }
        ModelMsg::ImageUrl { .. } | ModelMsg::InlineData { .. } => IMAGE,
        ModelMsg::PartialText { .. }
        | ModelMsg::PartialThinking { .. }
        | ModelMsg::PartialToolCall { .. }
        | ModelMsg::PartialToolCallOutput { .. } => 0,
    }
}

fn text(text: &str) -> u64 {
    let characters = text.chars().count() as u64;
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    ascii.div_ceil(ASCII_PER_TOKEN) + (characters - ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(said: &str) -> ModelRequest {
        ModelRequest {
            history: vec![ModelMsg::user_text(said)],
            ..ModelRequest::default()
        }
    }

    #[test]
    fn an_answer_gets_what_was_configured_or_what_the_window_still_holds() {
        let short = request("hi");
        assert_eq!(max_tokens(None, Some(9999), &short), None);
        assert_eq!(max_tokens(Some(32_000), None, &short), Some(32_000));
        assert_eq!(
            max_tokens(Some(32_000), Some(128_000), &short),
            Some(32_000)
        );
        let long = request(&"x".repeat(4 * 5000));
        assert_eq!(
            max_tokens(Some(32_000), Some(8000), &long),
            Some(8000 - 5000 - 1024)
        );
        assert_eq!(max_tokens(Some(32_000), Some(4000), &long), Some(FLOOR));
    }

    #[test]
    fn four_ascii_characters_are_a_token_and_any_other_character_is_one() {
        assert_eq!(text("abcde"), 2);
        assert_eq!(text("größe"), 3);
        assert_eq!(text("🦀🦀"), 2);
    }
}
