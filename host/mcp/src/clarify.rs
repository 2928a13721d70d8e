//! The question of a tool as a form of the protocol, and the answer in it. The form has no default: what the tool suggests is named in
//! the text, and accepting the form as it stands answers nothing.

use std::fmt::Write as _;

use floe_protocol::{AskedQuestion, Keep, visible};
use floe_session::Reply;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    EnumSchema, InputResponses, PrimitiveSchemaDefinition, StringSchema,
};
use serde_json::Value;

const CHOICE: &str = "choice";
const ANSWER: &str = "answer";

/// The name of the question in a result that asks for it.
pub(crate) const QUESTION: &str = "clarification";

/// Asks.
pub(crate) fn form(question: &AskedQuestion) -> ElicitRequest {
    let mut fields = std::collections::BTreeMap::new();
    if !question.choices.is_empty() {
        fields.insert(CHOICE.to_owned(), choice(question));
    }
    if question.free_text {
        let answer = StringSchema::new()
            .title("Answer")
            .description("In words of your own");
        fields.insert(ANSWER.to_owned(), PrimitiveSchemaDefinition::String(answer));
    }
    // With one field it has to be filled in; with two, either.
    let only = match fields.len() {
        1 => fields.keys().next().cloned(),
        _ => None,
    };
    let mut schema = ElicitationSchema::new(fields);
    schema.required = only.map(|field| vec![field]);
    ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: text(question),
        requested_schema: schema,
    })
}

fn choice(question: &AskedQuestion) -> PrimitiveSchemaDefinition {
    let builder = EnumSchema::builder(labels(question)).title("Choice");
    PrimitiveSchemaDefinition::Enum(match question.multiple {
        true => builder.multiselect().build(),
        false => builder.build(),
    })
}

/// The labels as the person sees them.
fn labels(question: &AskedQuestion) -> Vec<String> {
    let labels = question.choices.iter();
    labels
        .map(|choice| visible(&choice.label, Keep::Nothing))
        .collect()
}

/// The question with everything escaped that comes from a tool, behind a bar where it may have several lines.
fn text(question: &AskedQuestion) -> String {
    let mut text = format!("{} asks you", visible(&question.tool, Keep::Nothing));
    if let Some(header) = &question.header {
        // Writing to a String cannot fail.
        let _ = write!(text, " about: {}", visible(header, Keep::Nothing));
    }
    text.push_str("\n\n");
    for line in question.text.split('\n') {
        let _ = writeln!(text, "| {}", visible(line, Keep::Nothing));
    }
    for (index, label) in labels(question).into_iter().enumerate() {
        let choice = &question.choices[index];
        let before = if index == 0 { "\n- " } else { "- " };
        let suggested = match question.suggested == Some(index) {
            true => " (suggested)",
            false => "",
        };
        let _ = write!(text, "{before}{label}{suggested}");
        if let Some(description) = &choice.description {
            let _ = write!(text, ": {}", visible(description, Keep::Nothing));
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

/// What the person said. Whether it answers the question is judged where the question was asked.
pub(crate) fn reply(result: &ElicitResult, question: &AskedQuestion) -> Reply {
    let unavailable = |reason: &str| Reply::Unavailable(reason.to_owned());
    match result.action {
        ElicitationAction::Accept => {}
        ElicitationAction::Decline => {
            return unavailable("The person was asked and declined to answer.");
        }
        _ => return unavailable("The person was asked and dismissed the question."),
    }
    let field = |name: &str| result.content.as_ref()?.get(name);
    let labels = labels(question);
    let chosen = match field(CHOICE) {
        None | Some(Value::Null) => vec![],
        Some(Value::Array(items)) => items.iter().collect(),
        Some(one) => vec![one],
    };
    let selected: Option<Vec<usize>> = chosen
        .into_iter()
        .map(|label| labels.iter().position(|known| label == known.as_str()))
        .collect();
    match selected {
        Some(selected) => Reply::Answered {
            text: field(ANSWER).and_then(Value::as_str).map(str::to_owned),
            selected,
        },
        None => unavailable("The client answered with what is none of the choices."),
    }
}

/// The reply among those that came with a repeated call; none where it has none.
pub(crate) fn reply_in(
    responses: Option<&InputResponses>,
    question: &AskedQuestion,
) -> Option<Reply> {
    let response = responses?.get(QUESTION)?;
    Some(match serde_json::from_value(response.clone()) {
        Ok(result) => reply(&result, question),
        Err(_) => Reply::Unavailable("The client's answer is none of the protocol.".into()),
    })
}

#[cfg(test)]
mod tests {
    use floe_protocol::QuestionChoice;
    use serde_json::json;

    use super::*;

    fn question(labels: &[&str], multiple: bool, free_text: bool) -> AskedQuestion {
        AskedQuestion {
            tool_call_id: "c1".into(),
            tool: "ask_clarification".into(),
            header: Some("Database".into()),
            text: "Which?\n\u{202e}evil".into(),
            choices: labels
                .iter()
                .map(|label| QuestionChoice {
                    label: (*label).into(),
                    description: Some(format!("about {label}")),
                })
                .collect(),
            multiple,
            free_text,
            suggested: (!labels.is_empty()).then_some(0),
        }
    }

    fn params(question: &AskedQuestion) -> Value {
        serde_json::to_value(form(question)).unwrap()["params"].take()
    }

    fn said(result: Value, question: &AskedQuestion) -> Reply {
        reply(&serde_json::from_value(result).unwrap(), question)
    }

    #[test]
    fn the_text_holds_the_question_and_its_choices_with_nothing_that_hides() {
        let params = params(&question(&["a", "b\u{1b}"], false, true));
        assert_eq!(
            params["message"],
            "ask_clarification asks you about: Database\n\n| Which?\n| \\u{202e}evil\n\n- a (suggested): about a\n- b\\x1b: about b\\x1b"
        );
    }

    #[test]
    fn a_form_has_a_field_for_each_way_to_answer_and_no_default() {
        let both = params(&question(&["a", "b"], false, true))["requestedSchema"].take();
        assert_eq!(both["properties"]["choice"]["enum"], json!(["a", "b"]));
        assert_eq!(both["properties"]["answer"]["type"], "string");
        assert!(both["required"].is_null(), "{both}");
        let several = params(&question(&["a", "b"], true, false))["requestedSchema"].take();
        assert_eq!(several["properties"]["choice"]["type"], "array");
        assert_eq!(
            several["properties"]["choice"]["items"]["enum"],
            json!(["a", "b"])
        );
        assert_eq!(several["required"], json!(["choice"]));
        let words = params(&question(&[], false, true))["requestedSchema"].take();
        assert_eq!(words["required"], json!(["answer"]));
        for schema in [both, several, words] {
            assert!(!schema.to_string().contains("default"), "{schema}");
        }
    }

    #[test]
    fn what_was_chosen_and_written_comes_back() {
        let asked = question(&["a", "b\u{1b}"], true, true);
        let accept = |content: Value| said(json!({"action": "accept", "content": content}), &asked);
        assert_eq!(
            accept(json!({"choice": ["b\\x1b", "a"], "answer": "x"})),
            Reply::Answered {
                text: Some("x".into()),
                selected: vec![1, 0]
            }
        );
        assert_eq!(
            accept(json!({"choice": "a"})),
            Reply::Answered {
                text: None,
                selected: vec![0]
            }
        );
    }

    #[test]
    fn a_form_that_was_not_filled_in_chooses_nothing() {
        let asked = question(&["a", "b"], false, true);
        for content in [json!({}), Value::Null, json!({"choice": null, "other": 1})] {
            assert_eq!(
                said(json!({"action": "accept", "content": content}), &asked),
                Reply::Answered {
                    text: None,
                    selected: vec![]
                }
            );
        }
        for result in [
            json!({"action": "decline", "content": {"choice": "a"}}),
            json!({"action": "cancel"}),
            json!({"action": "accept", "content": {"choice": "c"}}),
            json!({"action": "accept", "content": {"choice": [0]}}),
        ] {
            assert!(
                matches!(said(result.clone(), &asked), Reply::Unavailable(_)),
                "{result}"
            );
        }
    }

    #[test]
    fn a_reply_is_found_where_it_was_asked_for() {
        let asked = question(&[], false, true);
        let responses = |name: &str, value: Value| InputResponses::from([(name.to_owned(), value)]);
        let accept = json!({"action": "accept", "content": {"answer": "x"}});
        assert_eq!(reply_in(None, &asked), None);
        assert_eq!(
            reply_in(Some(&responses("approval", accept.clone())), &asked),
            None
        );
        assert!(matches!(
            reply_in(Some(&responses(QUESTION, accept)), &asked),
            Some(Reply::Answered { .. })
        ));
        assert!(matches!(
            reply_in(Some(&responses(QUESTION, json!(true))), &asked),
            Some(Reply::Unavailable(_))
        ));
    }
}
