//! Sorts what a service answers instead of an answer into the classes of `ModelError` (spec/environment.md 5.2).

use reqwest::StatusCode;
use serde_json::Value;

use crate::{ModelError, ModelErrorKind};

/// Characters of a service's own words that a message shows.
const SHOWN: usize = 500;

/// The error of a response that is no success.
pub(super) fn from_status(status: StatusCode, body: &str, service: &str) -> ModelError {
    let words = serde_json::from_str::<Value>(body)
        .ok()
        .and_then(|value| message_of(value.get("error").unwrap_or(&value)))
        .unwrap_or_else(|| shorten(body));
    let (kind, permanent) = classify_status(status.as_u16());
    let remedy = match status.as_u16() {
        401 | 403 => " Check OPENAI_API_KEY.",
        404 => " Check the model's name and OPENAI_BASE_URL.",
        300..=399 => {
            " It redirects, which is not followed; name its own address in OPENAI_BASE_URL."
        }
        _ => "",
    };
    let words = match words.trim() {
        "" => String::new(),
        words => format!(": {words}"),
    };
    let message = format!(
        "The model service at {service} answered HTTP {}{words}.{remedy}",
        status.as_u16()
    );
    ModelError {
        permanent,
        ..ModelError::new(kind, message)
    }
}

/// The error of an error object in the middle of a stream.
pub(super) fn from_error_object(error: &Value) -> ModelError {
    let status = [error.get("code"), error.get("status")]
        .into_iter()
        .flatten()
        .find_map(|code| {
            code.as_u64()
                .or_else(|| code.as_str().and_then(|text| text.parse().ok()))
        })
        .and_then(|code| u16::try_from(code).ok());
    let (kind, permanent) = match status {
        Some(status) if status >= 400 => classify_status(status),
        _ => classify_words(error),
    };
    let words = message_of(error).unwrap_or_else(|| shorten(&error.to_string()));
    ModelError {
        permanent,
        ..ModelError::new(
            kind,
            format!("The model service reported an error: {words}."),
        )
    }
}

/// The class of a status, and whether asking again is pointless: the same request cannot become right by itself.
fn classify_status(status: u16) -> (ModelErrorKind, bool) {
    match status {
        401 | 403 => (ModelErrorKind::Auth, true),
        408 | 429 | 500.. => (ModelErrorKind::Timeout, false),
        409 | 425 => (ModelErrorKind::Failed, false),
        _ => (ModelErrorKind::Failed, true),
    }
}

/// The class of an error that has no status but says in a word what it is.
fn classify_words(error: &Value) -> (ModelErrorKind, bool) {
    let word = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    let says = |needle: &str| word("type").contains(needle) || word("code").contains(needle);
    if says("authentication") || says("invalid_api_key") || says("permission") {
        (ModelErrorKind::Auth, true)
    } else if says("rate_limit") || says("overloaded") || says("server_error") || says("timeout") {
        (ModelErrorKind::Timeout, false)
    } else {
        (ModelErrorKind::Failed, says("invalid_request"))
    }
}

fn message_of(error: &Value) -> Option<String> {
    let words = match error {
        Value::String(text) => text,
        _ => ["message", "detail", "error"]
            .into_iter()
            .find_map(|key| error.get(key)?.as_str())?,
    };
    Some(shorten(words))
}

fn shorten(text: &str) -> String {
    let mut characters = text.trim().trim_end_matches('.').chars();
    let mut short: String = characters.by_ref().take(SHOWN).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(status: u16) -> (ModelErrorKind, bool) {
        let error = from_status(StatusCode::from_u16(status).unwrap(), "", "http://m");
        (error.kind, error.is_retryable())
    }

    #[test]
    fn a_status_has_the_class_of_the_contract() {
        for status in [401, 403] {
            assert_eq!(kind_of(status), (ModelErrorKind::Auth, false), "{status}");
        }
        for status in [408, 429, 500, 502, 503, 529] {
            assert_eq!(kind_of(status), (ModelErrorKind::Timeout, true), "{status}");
        }
        for status in [302, 400, 404, 422] {
            assert_eq!(kind_of(status), (ModelErrorKind::Failed, false), "{status}");
        }
        assert_eq!(kind_of(409), (ModelErrorKind::Failed, true));
    }

    #[test]
    fn the_service_is_quoted_in_whichever_shape_it_speaks() {
        for body in [
            r#"{"error":{"message":"no such model","type":"x"}}"#,
            r#"{"error":"no such model"}"#,
            r#"{"object":"error","message":"no such model","code":404}"#,
            r#"{"detail":"no such model"}"#,
            "no such model",
        ] {
            let error = from_status(StatusCode::NOT_FOUND, body, "http://m/v1");
            assert_eq!(
                error.message,
                "The model service at http://m/v1 answered HTTP 404: no such model. Check the model's name and OPENAI_BASE_URL."
            );
        }
        let long = from_status(StatusCode::BAD_REQUEST, &"x".repeat(9999), "http://m/v1");
        assert!(long.message.len() < 700);
    }

    #[test]
    fn an_error_object_has_the_class_of_its_code_or_its_words() {
        let kind = |text: &str| from_error_object(&serde_json::from_str(text).unwrap()).kind;
        assert_eq!(
            kind(r#"{"code":429,"message":"slow"}"#),
            ModelErrorKind::Timeout
        );
        assert_eq!(kind(r#"{"code":"401"}"#), ModelErrorKind::Auth);
        assert_eq!(kind(r#"{"code":"invalid_api_key"}"#), ModelErrorKind::Auth);
        assert_eq!(
            kind(r#"{"type":"overloaded_error"}"#),
            ModelErrorKind::Timeout
        );
        assert_eq!(
            kind(r#"{"type":"server_error","code":null}"#),
            ModelErrorKind::Timeout
        );
        assert_eq!(kind(r#""broken""#), ModelErrorKind::Failed);
    }
}
