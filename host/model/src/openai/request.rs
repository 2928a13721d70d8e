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
mod tests;
