//! One event of a Chat Completions stream, read leniently: what this driver does not know is ignored, and a field may be null or
//! absent wherever some service leaves it so.

use floe_protocol::TokenCount;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One event.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Chunk {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) choices: Vec<Choice>,
    #[serde(default)]
    pub(super) usage: Option<Usage>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

/// One answer of possibly several; only the first is asked for.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) index: u64,
    /// The fragment. A service that does not stream sends the whole as `message`.
    #[serde(default, alias = "message", deserialize_with = "or_default")]
    pub(super) delta: Delta,
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
}

/// A fragment of an answer.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta {
    #[serde(default, deserialize_with = "text")]
    pub(super) content: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) refusal: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) reasoning_content: String,
    #[serde(default, deserialize_with = "text")]
    pub(super) reasoning: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) tool_calls: Vec<CallFragment>,
}

/// A fragment of a tool call.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CallFragment {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(default, deserialize_with = "text")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) function: FunctionFragment,
}

/// The function of a tool call.
#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionFragment {
    #[serde(default, deserialize_with = "text")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "arguments")]
    pub(super) arguments: String,
}

/// Tokens so far; the last one of a stream counts.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Usage {
    #[serde(default, deserialize_with = "or_default")]
    prompt_tokens: u64,
    #[serde(default, deserialize_with = "or_default")]
    completion_tokens: u64,
    #[serde(default)]
    total_tokens: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    prompt_tokens_details: PromptDetails,
}

#[derive(Debug, Default, Deserialize)]
struct PromptDetails {
    #[serde(default, deserialize_with = "or_default")]
    cached_tokens: u64,
}

impl From<Usage> for TokenCount {
    fn from(usage: Usage) -> TokenCount {
        let cached = usage
            .prompt_tokens_details
            .cached_tokens
            .min(usage.prompt_tokens);
        TokenCount {
            cache_read: cached,
            cache_write: usage.prompt_tokens - cached,
            output: usage.completion_tokens,
            total: usage
                .total_tokens
                .unwrap_or(usage.prompt_tokens.saturating_add(usage.completion_tokens)),
        }
    }
}

/// Null counts as absent.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A string, or a list of parts of which the texts count; anything else says nothing.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect(),
        _ => String::new(),
    })
}

/// A piece of argument text. Some services send the object itself.
fn arguments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        object @ Value::Object(_) => object.to_string(),
        _ => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_count_as_absent() {
        let chunk: Chunk = serde_json::from_str(
            r#"{"choices":[{"index":null,"delta":{"content":null,"tool_calls":null,"reasoning":null},"finish_reason":null}],"usage":null,"error":null}"#,
        )
        .unwrap();
        assert_eq!(chunk.choices[0].delta.content, "");
        assert!(chunk.usage.is_none() && chunk.error.is_none());
        serde_json::from_str::<Chunk>(r#"{"choices":null}"#).unwrap();
    }

    #[test]
    fn cached_tokens_are_counted_apart_and_the_sum_is_made_where_it_is_missing() {
        let usage: Usage = serde_json::from_str(
            r#"{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}"#,
        )
        .unwrap();
        assert_eq!(
            TokenCount::from(usage),
            TokenCount {
                cache_read: 4,
                cache_write: 6,
                output: 3,
                total: 13
            }
        );
    }

    #[test]
    fn content_in_parts_and_arguments_as_an_object_are_read() {
        let delta: Delta = serde_json::from_str(
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]}"#,
        )
        .unwrap();
        assert_eq!(delta.content, "ab");
        assert_eq!(delta.tool_calls[0].function.arguments, r#"{"x":1}"#);
    }
}
