//! Services that misbehave: each ends in an error of its class, soon, and in bounded memory.

mod loopback;

use std::time::{Duration, Instant};

use floe_model::{ModelErrorKind, OpenAiDriver};
use floe_protocol::{ModelMsg, StopReason};
use loopback::{CLOSED_AT_END, Reply, Service, ask_once};

/// Asks a service that answers with these bytes, and looks at the clock.
async fn ask(reply: impl Into<Vec<u8>>) -> (Vec<ModelMsg>, Option<(ModelErrorKind, String)>) {
    let service = Service::start(vec![Reply::whole(reply)]).await;
    let start = Instant::now();
    let (messages, result) = ask_once(&service.driver()).await;
    assert!(start.elapsed() < Duration::from_secs(60), "{result:?}");
    let error = result.err().map(|error| (error.kind, error.message));
    (messages, error)
}

fn kind(error: Option<(ModelErrorKind, String)>) -> ModelErrorKind {
    let (kind, message) = error.expect("an error");
    assert!(message.len() < 1000, "{}", message.len());
    kind
}

#[tokio::test]
async fn a_head_without_an_end_is_refused() {
    let mut head = "HTTP/1.1 200 OK\r\n".to_owned();
    for number in 0..200_000 {
        head.push_str(&format!("x-{number}: 1\r\n"));
    }
    let (messages, error) = ask(head).await;
    assert!(messages.is_empty());
    assert_eq!(kind(error), ModelErrorKind::Timeout);
}

#[tokio::test]
async fn a_line_without_an_end_is_malformed_at_the_limit_of_an_answer() {
    let mut body = format!("{CLOSED_AT_END}data: ").into_bytes();
    body.resize(body.len() + (65 << 20), b'x');
    let (messages, error) = ask(body).await;
    assert!(messages.is_empty());
    assert_eq!(kind(error), ModelErrorKind::Malformed);
}

#[tokio::test]
async fn a_compressed_answer_that_nobody_asked_for_is_malformed() {
    let head = CLOSED_AT_END.replace("connection", "content-encoding: gzip\r\nconnection");
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x49\x2c\x49\xb4\x52\0\0";
    let (_, error) = ask([head.as_bytes(), gzip].concat()).await;
    assert_eq!(kind(error), ModelErrorKind::Malformed);
}

#[tokio::test]
async fn a_million_tool_calls_end_at_the_limit_and_none_is_left_open() {
    let call = r#"{"id":"a","function":{"name":"f","arguments":"{}"}}"#;
    let many = vec![call; 1_000_000].join(",");
    let body = format!(
        "{CLOSED_AT_END}data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{many}]}}}}]}}\n\n"
    );
    let (messages, error) = ask(body).await;
    assert_eq!(kind(error), ModelErrorKind::Malformed);
    let ids: Vec<&str> = messages
        .iter()
        .filter_map(|message| match message {
            ModelMsg::ToolCall { tool_call_id, .. } => Some(tool_call_id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids.len(), 256);
    assert_eq!((ids[0], ids[1]), ("a", "a#2"));
}

#[tokio::test]
async fn arguments_of_ten_megabytes_arrive_whole_however_they_are_cut() {
    let text = "}".repeat(10 << 20);
    let event = |arguments: &str| {
        let arguments = serde_json::to_string(arguments).unwrap();
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"a\",\"function\":{{\"name\":\"f\",\"arguments\":{arguments}}}}}]}}}}]}}\n\n"
        )
    };
    let mut body = CLOSED_AT_END.to_owned() + &event("{\"a\":\"");
    for piece in text.as_bytes().chunks(1000) {
        body.push_str(&event(std::str::from_utf8(piece).unwrap()));
    }
    body.push_str(&event("\"}"));
    body.push_str(
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
    );
    let (messages, error) = ask(body).await;
    assert_eq!(error, None);
    assert!(matches!(
        messages.last(),
        Some(ModelMsg::ToolCall { arguments, stop_reason: StopReason::Completed, .. }) if arguments.len() == text.len() + 8
    ));
}

#[tokio::test]
async fn a_service_that_takes_the_request_and_never_answers_is_a_timeout() {
    let service = Service::start(vec![Reply {
        pieces: vec![],
        silent: true,
    }])
    .await;
    let mut settings = service.settings();
    settings.idle_timeout = Duration::from_millis(200);
    let driver = OpenAiDriver::new("m", &settings).unwrap();
    let (_, result) = ask_once(&driver).await;
    assert_eq!(result.unwrap_err().kind, ModelErrorKind::Timeout);
}
