//! Recorded-shape streams of several services, replayed over the loopback interface: however the network cuts them, the messages are
//! the same, and a stream that breaks off never yields a wrong call.

mod loopback;

use floe_model::{ModelErrorKind, OpenAiDriver};
use floe_protocol::{ModelMsg, Phase, StopReason, TokenCount};
use loopback::{CHUNKED, CLOSED_AT_END, Reply, Service, ask_once, chunked};

struct Recording {
    name: &'static str,
    stream: &'static str,
    thinking: &'static str,
    text: &'static str,
    calls: &'static [(&'static str, &'static str)],
    total_tokens: Option<u64>,
}

const RECORDINGS: &[Recording] = &[
    Recording {
        name: "openai",
        stream: include_str!("recordings/openai.sse"),
        thinking: "",
        text: "Ich schaue nach: größer 🦀 ✓",
        calls: &[
            ("list", r#"{"path":"src"}"#),
            ("exec_command", r#"{"cmd": "echo \"ü\""}"#),
        ],
        total_tokens: Some(150),
    },
    Recording {
        name: "llama.cpp",
        stream: include_str!("recordings/llama-cpp.sse"),
        thinking: "The user wants a list.",
        text: "Looking.",
        calls: &[("list", r#"{"path":"."}"#)],
        total_tokens: Some(250),
    },
    Recording {
        name: "vllm",
        stream: include_str!("recordings/vllm.sse"),
        thinking: "First the files.",
        text: "",
        calls: &[
            ("file_read", r#"{"path": "a.txt"}"#),
            ("file_read", r#"{"path": "b.txt"}"#),
        ],
        total_tokens: Some(59),
    },
    Recording {
        name: "ollama",
        stream: include_str!("recordings/ollama.sse"),
        thinking: "Simple.",
        text: "On it.",
        calls: &[
            ("list", r#"{"path":"docs"}"#),
            ("list", r#"{"path":"src"}"#),
        ],
        total_tokens: Some(110),
    },
    Recording {
        name: "interleaved calls",
        stream: include_str!("recordings/interleaved.sse"),
        thinking: "",
        text: "",
        calls: &[
            ("list", r#"{"path":"x"}"#),
            ("file_read", r#"{"path":"y"}"#),
        ],
        total_tokens: None,
    },
    Recording {
        name: "neither index nor id",
        stream: include_str!("recordings/without-index.sse"),
        thinking: "",
        text: "",
        calls: &[
            ("list", r#"{"path":"a"}"#),
            ("list", r#"{"path":"b"}"#),
            ("file_read", r#"{"path":"c"}"#),
        ],
        total_tokens: None,
    },
    Recording {
        name: "one index for all",
        stream: include_str!("recordings/one-index.sse"),
        thinking: "",
        text: "",
        calls: &[("list", r#"{"path":"a"}"#), ("list", r#"{"path":"b"}"#)],
        total_tokens: None,
    },
    Recording {
        name: "a gateway",
        stream: include_str!("recordings/gateway.sse"),
        thinking: "",
        text: "Hm",
        calls: &[("list", r#"{"path": "."}"#)],
        total_tokens: None,
    },
];

/// Replaces the ids by numbers in order of appearance, since some are made up at random.
fn with_numbered_ids(mut messages: Vec<ModelMsg>) -> Vec<ModelMsg> {
    let mut known: Vec<String> = Vec::new();
    for message in &mut messages {
        if let ModelMsg::ToolCall { tool_call_id, .. }
        | ModelMsg::PartialToolCall { tool_call_id, .. } = message
        {
            let number = known
                .iter()
                .position(|id| id == tool_call_id)
                .unwrap_or_else(|| {
                    known.push(tool_call_id.clone());
                    known.len() - 1
                });
            *tool_call_id = number.to_string();
        }
    }
    messages
}

fn complete(messages: &[ModelMsg]) -> Vec<&ModelMsg> {
    messages.iter().filter(|m| !m.is_partial()).collect()
}

/// The whole calls that an answer handed over.
fn whole_calls(messages: &[ModelMsg]) -> Vec<(&str, &str)> {
    messages
        .iter()
        .filter_map(|message| match message {
            ModelMsg::ToolCall {
                name,
                arguments,
                stop_reason: StopReason::Completed,
                ..
            } => Some((name.as_str(), arguments.as_str())),
            _ => None,
        })
        .collect()
}

/// Checks start, delta*, stop, complete for every segment, and that the deltas are the complete message.
fn check_discipline(messages: &[ModelMsg]) {
    let mut open: Vec<(String, String)> = Vec::new();
    let mut stopped: Option<(String, String)> = None;
    for message in messages {
        let (key, phase, piece) = match message {
            ModelMsg::PartialText {
                event_type, text, ..
            } => ("text".to_owned(), Some(*event_type), text),
            ModelMsg::PartialThinking {
                event_type,
                thinking,
                ..
            } => ("thinking".to_owned(), Some(*event_type), thinking),
            ModelMsg::PartialToolCall {
                event_type,
                arguments,
                tool_call_id,
                ..
            } => (format!("call {tool_call_id}"), Some(*event_type), arguments),
            ModelMsg::Text { text, .. } => ("text".to_owned(), None, text),
            ModelMsg::Thinking { thinking, .. } => ("thinking".to_owned(), None, thinking),
            ModelMsg::ToolCall {
                arguments,
                tool_call_id,
                ..
            } => (format!("call {tool_call_id}"), None, arguments),
            other => panic!("{other:?}"),
        };
        if let Some((stopped_key, text)) = stopped.take() {
            assert_eq!(
                (&stopped_key, phase),
                (&key, None),
                "the complete message follows its stop"
            );
            assert_eq!(&text, piece, "the deltas are the complete message");
            continue;
        }
        let position = open.iter().position(|(open_key, _)| *open_key == key);
        match (phase, position) {
            (Some(Phase::Start), None) => open.push((key, String::new())),
            (Some(Phase::Delta), Some(position)) => open[position].1.push_str(piece),
            (Some(Phase::Stop), Some(position)) => stopped = Some(open.remove(position)),
            other => panic!("{key}: {other:?}"),
        }
    }
    assert!(
        open.is_empty() && stopped.is_none(),
        "all segments are closed"
    );
}

type Replayed = (
    Vec<ModelMsg>,
    Result<Option<TokenCount>, floe_model::ModelError>,
);

/// One service and one driver for all replays of a test.
struct Player {
    service: Service,
    driver: OpenAiDriver,
}

impl Player {
    async fn start() -> Player {
        let service = Service::start(vec![Reply::events("")]).await;
        let driver = service.driver();
        Player { service, driver }
    }

    async fn replay(&self, reply: Reply) -> Replayed {
        self.service.reply_with(reply);
        let (messages, result) = ask_once(&self.driver).await;
        check_discipline(&messages);
        (
            with_numbered_ids(messages),
            result.map(|answer| answer.usage),
        )
    }
}

#[tokio::test]
async fn each_services_stream_becomes_the_messages_that_it_means() {
    let player = Player::start().await;
    for recording in RECORDINGS {
        let (messages, result) = player.replay(Reply::events(recording.stream)).await;
        let mut thinking = String::new();
        let mut text = String::new();
        for message in complete(&messages) {
            match message {
                ModelMsg::Thinking { thinking: said, .. } => thinking.push_str(said),
                ModelMsg::Text { text: said, .. } => text.push_str(said),
                _ => {}
            }
        }
        assert_eq!(thinking, recording.thinking, "{}", recording.name);
        assert_eq!(text, recording.text, "{}", recording.name);
        assert_eq!(
            whole_calls(&messages),
            recording.calls,
            "{}",
            recording.name
        );
        let usage = result.unwrap_or_else(|error| panic!("{}: {error}", recording.name));
        assert_eq!(
            usage.map(|usage| usage.total),
            recording.total_tokens,
            "{}",
            recording.name
        );
    }
}

#[tokio::test]
async fn a_stream_cut_at_any_byte_into_two_writes_gives_the_same_messages() {
    let player = Player::start().await;
    for recording in RECORDINGS {
        let expected = player.replay(Reply::events(recording.stream)).await;
        let body = recording.stream.as_bytes();
        for cut in 1..body.len() {
            let mut first = CLOSED_AT_END.as_bytes().to_vec();
            first.extend_from_slice(&body[..cut]);
            let reply = Reply {
                pieces: vec![first, body[cut..].to_vec()],
                silent: false,
            };
            assert_eq!(
                player.replay(reply).await,
                expected,
                "{} cut at {cut}",
                recording.name
            );
        }
    }
}

#[tokio::test]
async fn a_stream_that_comes_byte_by_byte_gives_the_same_messages() {
    let player = Player::start().await;
    for recording in RECORDINGS {
        let expected = player.replay(Reply::events(recording.stream)).await;
        let mut pieces = vec![CLOSED_AT_END.as_bytes().to_vec()];
        pieces.extend(recording.stream.bytes().map(|byte| vec![byte]));
        let reply = Reply {
            pieces,
            silent: false,
        };
        assert_eq!(player.replay(reply).await, expected, "{}", recording.name);
        let mut framed = CHUNKED.as_bytes().to_vec();
        framed.extend(chunked(recording.stream.as_bytes(), 1));
        assert_eq!(
            player.replay(Reply::whole(framed)).await,
            expected,
            "{}",
            recording.name
        );
    }
}

#[tokio::test]
async fn a_connection_that_drops_at_any_byte_is_malformed_or_a_timeout_and_never_a_wrong_call() {
    let player = Player::start().await;
    for recording in RECORDINGS {
        let body = recording.stream.as_bytes();
        let (whole, _) = player.replay(Reply::events(recording.stream)).await;
        let mut in_chunks = CHUNKED.as_bytes().to_vec();
        in_chunks.extend(chunked(body, 97));
        let mut plain = CLOSED_AT_END.as_bytes().to_vec();
        plain.extend_from_slice(body);
        for (bytes, head) in [(&in_chunks, CHUNKED.len()), (&plain, CLOSED_AT_END.len())] {
            let mut survived = false;
            for end in 0..bytes.len() {
                let (messages, result) = player.replay(Reply::whole(&bytes[..end])).await;
                let place = format!("{} dropped at {end}", recording.name);
                match result {
                    Ok(_) => {
                        // Only an answer that the service had said to be whole may stand.
                        assert!(end > head, "{place}");
                        assert_eq!(messages, whole, "{place}");
                        survived = true;
                    }
                    Err(error) => {
                        assert!(
                            !survived,
                            "{place}: a longer stream is no less whole: {error}"
                        );
                        assert!(
                            matches!(
                                error.kind,
                                ModelErrorKind::Malformed | ModelErrorKind::Timeout
                            ),
                            "{place}: {error:?}"
                        );
                        assert!(error.is_retryable(), "{place}");
                        let calls = whole_calls(&messages);
                        assert!(
                            calls.iter().all(|call| recording.calls.contains(call)),
                            "{place}: {calls:?}"
                        );
                    }
                }
            }
        }
    }
}
