//! Builds the body of a Chat Completions request from a conversation (spec/environment.md 5.2 and 5.3).

use floe_protocol::{Fidelity, ModelMsg, Role};
use serde_json::{Map, Value, json};

use crate::segments::THINKING_FIELD;
use crate::{ModelRequest, ToolOffer};

/// Where the images of a tool's result go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultImages {
    /// Into the tool message, after its text.
    InToolMessage,
    /// Into a user message after the tool messages, for services that take no images in a tool message.
    InUserMessage,
}

/// The text before images that were moved out of their tool message.
const MOVED_IMAGES: &str = "Images of the tool results above:";

/// The whole body. `tools` is left out where there are none, and `tool_choice` is never set.
pub(super) fn body(model: &str, request: &ModelRequest, images: ResultImages) -> Value {
    let mut body = json!({
        "model": model,
        "messages": messages(&request.system_prompt, &request.history, images),
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if let Some(max_tokens) = request.max_tokens {
        body["max_completion_tokens"] = max_tokens.into();
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    body
}

/// True where a tool's result carries an image.
pub(super) fn has_result_images(history: &[ModelMsg]) -> bool {
    history.iter().any(|message| {
        matches!(message, ModelMsg::ToolCallOutput { images: Some(images), .. } if !images.is_empty())
    })
}

fn tool(offer: &ToolOffer) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": offer.name,
            "description": offer.description,
            "parameters": offer.parameters,
        },
    })
}

/// The id as the service knows it: without the `#n` that made it unique within the Session.
fn outbound_id(id: &str) -> &str {
    match id.rsplit_once('#') {
        Some((given, number))
            if !given.is_empty()
                && !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            given
        }
        _ => id,
    }
}

fn messages(system_prompt: &str, history: &[ModelMsg], images: ResultImages) -> Vec<Value> {
    let mut conversation = Conversation {
        messages: Vec::new(),
        open: None,
        moved_images: Vec::new(),
        images,
    };
    if !system_prompt.is_empty() {
        conversation
            .messages
            .push(json!({"role": "system", "content": system_prompt}));
    }
    for message in history {
        conversation.add(message);
    }
    conversation.close();
    conversation.messages
}

/// A message that is still being merged from its parts.
enum Open {
    User(Vec<Value>),
    Assistant {
        content: String,
        thinking: Map<String, Value>,
        calls: Vec<Value>,
    },
}

struct Conversation {
    messages: Vec<Value>,
    open: Option<Open>,
    moved_images: Vec<Value>,
    images: ResultImages,
}

impl Conversation {
    fn add(&mut self, message: &ModelMsg) {
        match message {
            ModelMsg::Text {
                role: Role::User,
                text,
                ..
            } => self.user_part(json!({"type": "text", "text": text})),
            ModelMsg::Text {
                role: Role::Assistant,
                text,
                ..
            } => self.assistant(|content, _, _| content.push_str(text)),
            ModelMsg::Thinking {
                thinking, fidelity, ..
            } => {
                let field = thinking_field(fidelity.as_ref());
                self.assistant(|_, fields, _| {
                    let said = fields.entry(field).or_insert_with(|| "".into());
                    *said = format!("{}{thinking}", said.as_str().unwrap_or_default()).into();
                });
            }
            ModelMsg::ToolCall {
                name,
                arguments,
                tool_call_id,
                ..
            } => {
                let call = json!({
                    "id": outbound_id(tool_call_id),
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                });
                self.assistant(|_, _, calls| calls.push(call));
            }
            ModelMsg::ToolCallOutput {
                output,
                images,
                tool_call_id,
                ..
            } => self.tool_result(output, images.as_deref().unwrap_or_default(), tool_call_id),
            ModelMsg::ImageUrl { image_url, .. } => self.user_part(image(image_url)),
            ModelMsg::InlineData {
                role: Role::User,
                data,
                mime_type,
                ..
            } if mime_type.starts_with("image/") => {
                self.user_part(image(&format!("data:{mime_type};base64,{data}")));
            }
            // What this protocol has no place for, and fragments, which no history holds.
            ModelMsg::InlineData { .. }
            | ModelMsg::PartialText { .. }
            | ModelMsg::PartialThinking { .. }
            | ModelMsg::PartialToolCall { .. }
            | ModelMsg::PartialToolCallOutput { .. } => {}
        }
    }

    fn user_part(&mut self, part: Value) {
        self.flush_moved_images();
        if let Some(Open::User(parts)) = &mut self.open {
            parts.push(part);
        } else {
            self.close();
            self.open = Some(Open::User(vec![part]));
        }
    }

    fn assistant(
        &mut self,
        change: impl FnOnce(&mut String, &mut Map<String, Value>, &mut Vec<Value>),
    ) {
        if !matches!(self.open, Some(Open::Assistant { .. })) {
            self.close();
            self.open = Some(Open::Assistant {
                content: String::new(),
                thinking: Map::new(),
                calls: Vec::new(),
            });
        }
        if let Some(Open::Assistant {
            content,
            thinking,
            calls,
        }) = &mut self.open
        {
            change(content, thinking, calls);
        }
    }

    /// Tool messages follow the assistant's at once, so images that may not be in them wait until the last one.
    fn tool_result(&mut self, output: &str, images: &[String], id: &str) {
        self.close_open();
        let images = images.iter().map(|url| image(url));
        let mut content = Value::from(output);
        match self.images {
            ResultImages::InToolMessage => {
                let mut parts = vec![json!({"type": "text", "text": output})];
                parts.extend(images);
                if parts.len() > 1 {
                    content = parts.into();
                }
            }
            ResultImages::InUserMessage => self.moved_images.extend(images),
        }
        self.messages.push(json!({
            "role": "tool",
            "tool_call_id": outbound_id(id),
            "content": content,
        }));
    }

    fn flush_moved_images(&mut self) {
        if !self.moved_images.is_empty() {
            self.close_open();
            let mut parts = vec![json!({"type": "text", "text": MOVED_IMAGES})];
            parts.append(&mut self.moved_images);
            self.open = Some(Open::User(parts));
        }
    }

    fn close(&mut self) {
        self.close_open();
        self.flush_moved_images();
        self.close_open();
    }

    fn close_open(&mut self) {
        match self.open.take() {
            None => {}
            Some(Open::User(parts)) => self
                .messages
                .push(json!({"role": "user", "content": user_content(parts)})),
            Some(Open::Assistant {
                content,
                thinking,
                calls,
            }) => {
                let mut message = Map::new();
                message.insert("role".into(), "assistant".into());
                let content = if content.is_empty() && !calls.is_empty() {
                    Value::Null
                } else {
                    content.into()
                };
                message.insert("content".into(), content);
                message.extend(thinking);
                if !calls.is_empty() {
                    message.insert("tool_calls".into(), calls.into());
                }
                self.messages.push(message.into());
            }
        }
    }
}

/// A lone run of texts is sent as one string, which every service takes; texts of several messages are set apart by an empty line.
fn user_content(parts: Vec<Value>) -> Value {
    let texts: Option<Vec<&str>> = parts.iter().map(|part| part["text"].as_str()).collect();
    match texts {
        Some(texts) => texts.join("\n\n").into(),
        None => parts.into(),
    }
}

fn image(url: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}})
}

fn thinking_field(fidelity: Option<&Fidelity>) -> &'static str {
    let field = fidelity.and_then(|object| object.get(THINKING_FIELD)?.as_str());
    match field {
        Some("reasoning") => "reasoning",
        _ => "reasoning_content",
    }
}

#[cfg(test)]
mod tests {
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
        let picture =
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
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
}
