//! What the driver makes of a service that refuses, fails, goes silent or speaks another dialect.

mod loopback;

use std::time::Duration;

use floe_model::{ApiKey, ModelErrorKind, ModelRequest, ModelSettings, OpenAiDriver};
use floe_protocol::{ModelMsg, Role, StopReason};
use loopback::{CLOSED_AT_END, Reply, Service, ask, ask_once};
use tokio_util::sync::CancellationToken;

const HELLO: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"}}]}\n\n";
const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

fn complete_texts(messages: &[ModelMsg]) -> Vec<(&str, StopReason)> {
    messages
        .iter()
        .filter_map(|message| match message {
            ModelMsg::Text {
                text,
                stop_reason: Some(reason),
                ..
            } => Some((text.as_str(), *reason)),
            _ => None,
        })
        .collect()
}

async fn error_of(reply: Reply) -> (Vec<ModelMsg>, floe_model::ModelError) {
    let service = Service::start(vec![reply]).await;
    let (messages, result) = ask_once(&service.driver()).await;
    (messages, result.unwrap_err())
}

#[tokio::test]
async fn a_refusal_has_the_class_of_its_status() {
    for (status, kind, retryable) in [
        (401, ModelErrorKind::Auth, false),
        (403, ModelErrorKind::Auth, false),
        (408, ModelErrorKind::Timeout, true),
        (429, ModelErrorKind::Timeout, true),
        (500, ModelErrorKind::Timeout, true),
        (503, ModelErrorKind::Timeout, true),
        (400, ModelErrorKind::Failed, false),
        (404, ModelErrorKind::Failed, false),
    ] {
        let (messages, error) =
            error_of(Reply::json(status, r#"{"error":{"message":"because"}}"#)).await;
        assert!(messages.is_empty());
        assert_eq!(
            (error.kind, error.is_retryable()),
            (kind, retryable),
            "{status}"
        );
        assert!(error.message.contains("because") && error.message.contains(&status.to_string()));
    }
}

#[tokio::test]
async fn a_service_that_is_not_there_is_a_timeout() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = ModelSettings {
        base_url: Some(format!("http://{}/v1", listener.local_addr().unwrap())),
        ..ModelSettings::default()
    };
    drop(listener);
    let (_, result) = ask_once(&OpenAiDriver::new("m", &settings).unwrap()).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Timeout);
    assert!(error.message.contains("cannot be reached"), "{error}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let reply = Reply::whole(
        "HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
    );
    let (_, error) = error_of(reply).await;
    assert_eq!(error.kind, ModelErrorKind::Failed);
    assert!(error.message.contains("redirects"), "{error}");
}

#[tokio::test]
async fn an_error_object_in_the_middle_of_a_stream_ends_it_with_its_class() {
    let stream =
        format!("{HELLO}data: {{\"error\":{{\"code\":429,\"message\":\"slow down\"}}}}\n\n{STOP}");
    let (messages, error) = error_of(Reply::events(&stream)).await;
    assert_eq!(error.kind, ModelErrorKind::Timeout);
    assert_eq!(complete_texts(&messages), [("hello", StopReason::Timeout)]);
}

#[tokio::test]
async fn the_limit_of_tokens_is_failed_and_a_call_that_it_cut_is_no_whole_call() {
    let stream = concat!(
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"list\",\"arguments\":\"{\\\"pa\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7}}\n\ndata: [DONE]\n\n",
    );
    let (messages, error) = error_of(Reply::events(stream)).await;
    assert_eq!(error.kind, ModelErrorKind::Failed);
    assert_eq!(error.usage.unwrap().total, 12);
    assert!(messages.iter().any(|message| matches!(
        message,
        ModelMsg::ToolCall { stop_reason: StopReason::Failed, arguments, .. } if arguments == "{\"pa"
    )));
}

#[tokio::test]
async fn an_event_that_is_not_json_is_malformed() {
    let (messages, error) = error_of(Reply::events(&format!("{HELLO}data: {{oops\n\n"))).await;
    assert_eq!(error.kind, ModelErrorKind::Malformed);
    assert_eq!(
        complete_texts(&messages),
        [("hello", StopReason::Malformed)]
    );
    let (_, error) = error_of(Reply::events("data: {\"choices\":7}\n\n")).await;
    assert_eq!(error.kind, ModelErrorKind::Malformed);
    let (_, error) = error_of(Reply::events("data: [DONE]\n\n")).await;
    assert_eq!(error.kind, ModelErrorKind::Malformed);
    let (_, error) = error_of(Reply::events("<html>no stream</html>\n\n")).await;
    assert_eq!(error.kind, ModelErrorKind::Malformed);
}

#[tokio::test]
async fn a_call_that_never_gets_a_name_is_malformed() {
    let stream = concat!(
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"\",\"arguments\":\"{}\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    );
    let (messages, error) = error_of(Reply::events(stream)).await;
    assert_eq!(error.kind, ModelErrorKind::Malformed);
    assert!(messages.is_empty());
}

#[tokio::test]
async fn arguments_that_are_not_json_are_handed_over_as_the_model_wrote_them() {
    let stream = concat!(
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"list\",\"arguments\":\"{oops\"}}]}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
    );
    let service = Service::start(vec![Reply::events(stream)]).await;
    let (messages, result) = ask_once(&service.driver()).await;
    result.unwrap();
    assert!(messages.iter().any(|message| matches!(
        message,
        ModelMsg::ToolCall { stop_reason: StopReason::Completed, arguments, .. } if arguments == "{oops"
    )));
}

#[tokio::test]
async fn a_service_that_does_not_stream_is_understood() {
    let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"a","type":"function","function":{"name":"list","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
    let service = Service::start(vec![Reply::json(200, body)]).await;
    let (messages, result) = ask_once(&service.driver()).await;
    assert_eq!(result.unwrap().usage.unwrap().total, 2);
    assert_eq!(messages.iter().filter(|m| !m.is_partial()).count(), 2);
    let (_, error) = error_of(Reply::json(200, r#"{"object":"error","message":"no"}"#)).await;
    assert_eq!(error.kind, ModelErrorKind::Malformed);
}

#[tokio::test]
async fn silence_longer_than_the_idle_timeout_is_a_timeout() {
    for pieces in [
        vec![],
        vec![CLOSED_AT_END.as_bytes().to_vec()],
        vec![format!("{CLOSED_AT_END}{HELLO}").into_bytes()],
    ] {
        let reply = Reply {
            pieces,
            silent: true,
        };
        let service = Service::start(vec![reply]).await;
        let settings = ModelSettings {
            idle_timeout: Duration::from_millis(80),
            ..service.settings()
        };
        let (messages, result) = ask_once(&OpenAiDriver::new("m", &settings).unwrap()).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Timeout);
        assert!(error.message.contains("silent"), "{error}");
        for (text, reason) in complete_texts(&messages) {
            assert_eq!((text, reason), ("hello", StopReason::Timeout));
        }
    }
}

#[tokio::test]
async fn a_cancel_ends_the_request_at_once_and_closes_what_is_open() {
    let reply = Reply {
        pieces: vec![format!("{CLOSED_AT_END}{HELLO}").into_bytes()],
        silent: true,
    };
    let service = Service::start(vec![reply]).await;
    let driver = service.driver();
    let cancel = CancellationToken::new();
    let mut messages = Vec::new();
    let mut emit = |message: ModelMsg| {
        if matches!(message, ModelMsg::PartialText { .. }) {
            cancel.cancel();
        }
        messages.push(message);
    };
    let result =
        floe_model::ModelDriver::stream(&driver, &ModelRequest::default(), &mut emit, &cancel)
            .await;
    assert_eq!(result.unwrap_err().kind, ModelErrorKind::Aborted);
    assert_eq!(complete_texts(&messages), [("hello", StopReason::Aborted)]);
}

#[tokio::test]
async fn the_key_is_sent_as_a_bearer_and_never_shown() {
    let service = Service::start(vec![Reply::json(401, r#"{"error":"bad key sk-s3cret"}"#)]).await;
    let settings = ModelSettings {
        api_key: Some(ApiKey::new("sk-s3cret")),
        ..service.settings()
    };
    let (_, result) = ask_once(&OpenAiDriver::new("m", &settings).unwrap()).await;
    let error = result.unwrap_err();
    assert!(!error.message.contains("s3cret"), "{error}");
    assert!(
        error.message.contains("[redacted:OPENAI_API_KEY]"),
        "{error}"
    );
    let request = &service.requests()[0];
    assert!(request.head.contains("authorization: bearer sk-s3cret"));
    assert!(request.head.starts_with("post /v1/chat/completions "));
    assert_eq!(request.body["model"], "m");
}

#[tokio::test]
async fn a_service_that_refuses_images_in_a_tool_message_gets_them_in_a_user_message() {
    let good = Reply::events(&format!("{HELLO}{STOP}data: [DONE]\n\n"));
    let service = Service::start(vec![
        Reply::json(400, r#"{"error":"tool messages take no images"}"#),
        good.clone(),
        good,
    ])
    .await;
    let driver = service.driver();
    let request = ModelRequest {
        history: vec![
            ModelMsg::ToolCall {
                name: "read_image".into(),
                arguments: "{}".into(),
                tool_call_id: "a".into(),
                stop_reason: StopReason::Completed,
                fidelity: None,
            },
            ModelMsg::ToolCallOutput {
                role: Role::User,
                output: "a picture".into(),
                images: Some(vec!["data:image/png;base64,AA==".into()]),
                tool_call_id: "a".into(),
                stop_reason: StopReason::Completed,
                facts: None,
            },
        ],
        ..ModelRequest::default()
    };
    for _ in 0..2 {
        ask(&driver, &request, &CancellationToken::new())
            .await
            .1
            .unwrap();
    }
    let bodies: Vec<String> = service
        .requests()
        .iter()
        .map(|request| request.body["messages"].to_string())
        .collect();
    assert_eq!(bodies.len(), 3, "the second request knows");
    assert!(!bodies[0].contains("\"role\":\"user\""));
    assert!(bodies[1].contains("\"role\":\"user\""));
    assert_eq!(bodies[1], bodies[2]);
}
