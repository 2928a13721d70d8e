use floe_protocol::StopReason;

use super::*;

fn assistant(text: &str) -> ModelMsg {
    ModelMsg::Text {
        role: Role::Assistant,
        text: text.into(),
        sender: None,
        stop_reason: Some(StopReason::Completed),
        fidelity: None,
    }
}

fn call(id: &str) -> ModelMsg {
    ModelMsg::ToolCall {
        name: "list".into(),
        arguments: "{\"path\": \".\"}".into(),
        tool_call_id: id.into(),
        stop_reason: StopReason::Completed,
        fidelity: None,
    }
}

fn output(id: &str, text: &str, images: &[&str]) -> ModelMsg {
    ModelMsg::ToolCallOutput {
        role: Role::User,
        output: text.into(),
        images: (!images.is_empty()).then(|| images.iter().map(|url| (*url).into()).collect()),
        tool_call_id: id.into(),
        stop_reason: StopReason::Completed,
        facts: None,
    }
}

#[test]
fn the_system_prompt_is_the_first_message_and_tools_are_left_out_where_there_are_none() {
    let request = ModelRequest {
        system_prompt: "Be brief.".into(),
        history: vec![ModelMsg::user_text("hi")],
        ..ModelRequest::default()
    };
    assert_eq!(
        body("m", &request, ResultImages::InToolMessage),
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hi"},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn tools_and_the_limit_of_tokens_are_sent_and_tool_choice_never() {
    let request = ModelRequest {
        tools: vec![ToolOffer {
            name: "list".into(),
            description: "Lists.".into(),
            parameters: json!({"type": "object"}),
        }],
        max_tokens: Some(512),
        ..ModelRequest::default()
    };
    let body = body("m", &request, ResultImages::InToolMessage);
    assert_eq!(body["max_completion_tokens"], 512);
    assert!(body.get("max_tokens").is_none() && body.get("tool_choice").is_none());
    assert_eq!(
        body["tools"],
        json!([{"type": "function", "function": {"name": "list", "description": "Lists.", "parameters": {"type": "object"}}}])
    );
}

#[test]
fn a_turn_is_one_assistant_message_and_one_tool_message_for_each_result() {
    let history = [
        ModelMsg::user_text("a"),
        ModelMsg::user_text("b"),
        assistant("Let me "),
        assistant("look."),
        call("x"),
        call("x#2"),
        output("x", "one", &[]),
        output("x#2", "two", &[]),
        assistant("Done."),
    ];
    let function = json!({"name": "list", "arguments": "{\"path\": \".\"}"});
    assert_eq!(
        Value::from(messages("", &history, ResultImages::InToolMessage)),
        json!([
            {"role": "user", "content": "a\n\nb"},
            {"role": "assistant", "content": "Let me look.", "tool_calls": [
                {"id": "x", "type": "function", "function": function},
                {"id": "x", "type": "function", "function": function},
            ]},
            {"role": "tool", "tool_call_id": "x", "content": "one"},
            {"role": "tool", "tool_call_id": "x", "content": "two"},
            {"role": "assistant", "content": "Done."},
        ])
    );
}

#[test]
fn images_of_results_are_parts_of_the_tool_message_or_wait_for_a_user_message() {
    let history = [
        call("a"),
        call("b"),
        output("a", "seen", &["data:image/png;base64,AA=="]),
        output("b", "plain", &[]),
        ModelMsg::user_text("go on"),
    ];
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    let inline = messages("", &history, ResultImages::InToolMessage);
    assert_eq!(
        inline[1]["content"],
        json!([{"type": "text", "text": "seen"}, picture])
    );
    let moved = messages("", &history, ResultImages::InUserMessage);
    assert_eq!(moved[1]["content"], "seen");
    assert_eq!(moved[2]["content"], "plain");
    assert_eq!(
        moved[3],
        json!({"role": "user", "content": [
            {"type": "text", "text": MOVED_IMAGES},
            picture,
            {"type": "text", "text": "go on"},
        ]})
    );
    assert_eq!(moved.len(), 4);
}

#[test]
fn moved_images_stand_before_the_next_answer_of_the_model() {
    let history = [
        call("a"),
        output("a", "seen", &["data:image/png;base64,AA=="]),
        assistant("A cat."),
    ];
    let roles: Vec<Value> = messages("", &history, ResultImages::InUserMessage)
        .into_iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(roles, ["assistant", "tool", "user", "assistant"]);
}

#[test]
fn thinking_goes_back_in_the_field_it_came_in() {
    let thinking = |field: &str| ModelMsg::Thinking {
        thinking: "hm".into(),
        stop_reason: None,
        fidelity: Some(
            [(THINKING_FIELD.to_owned(), field.into())]
                .into_iter()
                .collect(),
        ),
    };
    for field in ["reasoning", "reasoning_content"] {
        let sent = messages(
            "",
            &[thinking(field), call("a")],
            ResultImages::InToolMessage,
        );
        assert_eq!(sent[0][field], "hm");
        assert_eq!(sent[0]["content"], Value::Null);
    }
}

#[test]
fn only_a_trailing_number_sign_with_digits_is_stripped() {
    for (id, sent) in [
        ("a#2", "a"),
        ("a#2#3", "a#2"),
        ("a#", "a#"),
        ("a#x", "a#x"),
        ("#2", "#2"),
        ("a", "a"),
    ] {
        assert_eq!(outbound_id(id), sent);
    }
}
