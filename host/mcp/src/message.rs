//! One line of the client as a message, or what it is answered where it is none. A request whose id can be read is never left without
//! an answer: its client would wait forever.

use rmcp::RoleServer;
use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::service::RxJsonRpcMessage;
use serde::Deserialize;

use crate::lines::{Line, MAX_LINE};

/// What a line is.
pub(crate) enum Incoming {
    /// A message of the protocol.
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// None, and this is the answer.
    Refused(Box<ServerJsonRpcMessage>),
    /// Nothing that is answered: an empty line, a notification that nobody knows.
    Ignored,
}

/// What can be read of a message that is not understood. The rest is passed over without recursion, however deep it nests.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(default)]
    method: Option<String>,
}

/// Reads a line.
pub(crate) fn read(line: &Line) -> Incoming {
    let text = match line {
        Line::Text(text) => text.trim_ascii(),
        Line::TooLong => {
            return refused(
                None,
                ErrorCode::INVALID_REQUEST,
                format!("A message of more than {MAX_LINE} bytes was passed over."),
            );
        }
    };
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    if text.is_empty() {
        return Incoming::Ignored;
    }
    let error = match serde_json::from_slice(text) {
        Ok(message) => return Incoming::Message(Box::new(message)),
        Err(error) => error,
    };
    if text[0] != b'{' {
        // Some revisions knew batches; a plain word is no JSON-RPC in any.
        let code = if text[0] == b'[' {
            ErrorCode::INVALID_REQUEST
        } else {
            ErrorCode::PARSE_ERROR
        };
        return refused(
            None,
            code,
            "A message is one JSON object on one line.".into(),
        );
    }
    match serde_json::from_slice::<Envelope>(text) {
        Ok(Envelope {
            id: Some(id),
            method: Some(_),
        }) => refused(
            Some(id),
            ErrorCode::INVALID_REQUEST,
            format!("The request cannot be read: {error}."),
        ),
        Ok(_) => Incoming::Ignored,
        Err(error) if error.is_data() => refused(
            None,
            ErrorCode::INVALID_REQUEST,
            format!("The message cannot be read: {error}."),
        ),
        Err(error) => refused(
            None,
            ErrorCode::PARSE_ERROR,
            format!("The message is not JSON: {error}."),
        ),
    }
}

fn refused(id: Option<RequestId>, code: ErrorCode, message: String) -> Incoming {
    let error = ErrorData::new(code, message, None);
    Incoming::Refused(Box::new(ServerJsonRpcMessage::error(error, id)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn answer(text: &str) -> Option<Value> {
        match read(&Line::Text(text.into())) {
            Incoming::Refused(answer) => Some(serde_json::to_value(answer).unwrap()),
            Incoming::Ignored => None,
            Incoming::Message(message) => panic!("{message:?}"),
        }
    }

    #[test]
    fn what_is_no_json_is_answered_as_such() {
        for text in ["hello", "{\"jsonrpc\":\"2.0\",", "{} {}", "\u{0}"] {
            let answer = answer(text).unwrap();
            assert_eq!(answer["error"]["code"], -32700, "{text}");
            assert!(answer["id"].is_null(), "{answer}");
        }
    }

    #[test]
    fn a_batch_is_refused() {
        assert_eq!(answer("[{}]").unwrap()["error"]["code"], -32600);
    }

    #[test]
    fn a_request_that_nests_too_deep_gets_its_answer() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"name":"list","arguments":{deep}}},"id":7}}"#
        );
        let answer = answer(&text).unwrap();
        assert_eq!(answer["id"], 7);
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("recursion limit"),
            "{answer}"
        );
    }

    #[test]
    fn empty_lines_and_broken_notifications_are_passed_over() {
        assert_eq!(answer(""), None);
        assert_eq!(answer(" \r"), None);
        assert_eq!(
            answer(r#"{"jsonrpc":"1.0","method":"notifications/x"}"#),
            None
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_answered() {
        let Incoming::Refused(answer) = read(&Line::TooLong) else {
            panic!("not refused");
        };
        let answer = serde_json::to_value(answer).unwrap();
        assert_eq!(answer["error"]["code"], json!(-32600));
    }

    #[test]
    fn a_message_is_one_whatever_surrounds_it() {
        for text in [
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
            " {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\r",
        ] {
            assert!(matches!(
                read(&Line::Text(text.into())),
                Incoming::Message(_)
            ));
        }
    }
}
