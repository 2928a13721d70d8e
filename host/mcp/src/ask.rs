//! A question about a call as a form of the protocol, and the answer in it. The form's default is no, and an answer that does not
//! say a word of the form is no answer: accepting a form without having chosen never allows.

use floe_environment::Answer;
use floe_protocol::AskedQuestion;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    EnumSchema, InputRequest, InputRequests, InputRequiredResult, InputResponses,
    PrimitiveSchemaDefinition,
};

use crate::clarify;

const FIELD: &str = "decision";
const DENY: &str = "deny";
const ONCE: &str = "allow once";
const SESSION: &str = "allow for this connection";

/// The name of the question in a result that asks for it.
const QUESTION: &str = "approval";

/// A question that the request which made the call is answered with.
#[derive(Clone, Debug)]
pub(crate) enum OpenQuestion {
    /// Whether the call may run, as its text.
    Approval(String),
    /// What the call wants to know.
    Clarification(AskedQuestion),
}

/// Asks with `text`, which holds nothing unescaped.
pub(crate) fn form(text: String) -> ElicitRequest {
    let choice = EnumSchema::builder([DENY, ONCE, SESSION].map(String::from).to_vec())
        .title("Decision")
        .description(
            "The same call is not asked about again where it is allowed for this connection",
        )
        .with_default(DENY)
        .map(|choice| PrimitiveSchemaDefinition::Enum(choice.build()));
    let mut schema = ElicitationSchema::new(
        choice
            .into_iter()
            .map(|choice| (FIELD.to_owned(), choice))
            .collect(),
    );
    schema.required = Some(vec![FIELD.to_owned()]);
    ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: text,
        requested_schema: schema,
    })
}

/// What the person said. Dismissing a question is no for this call; only a deliberate no is remembered.
pub(crate) fn answer(result: &ElicitResult) -> Answer {
    if result.action == ElicitationAction::Cancel {
        return Answer::Unavailable("the question was dismissed".into());
    }
    let chosen = match (&result.action, &result.content) {
        (ElicitationAction::Accept, Some(content)) => {
            content.get(FIELD).and_then(|word| word.as_str())
        }
        _ => None,
    };
    match chosen {
        Some(ONCE) => Answer::Allow,
        Some(SESSION) => Answer::AllowForSession,
        _ => Answer::Deny,
    }
}

/// The result of a call that waits: the client asks and calls again with the same `state`.
pub(crate) fn input_required(open: OpenQuestion, state: &str) -> InputRequiredResult {
    let (name, form) = match open {
        OpenQuestion::Approval(text) => (QUESTION, form(text)),
        OpenQuestion::Clarification(question) => (clarify::QUESTION, clarify::form(&question)),
    };
    let mut requests = InputRequests::new();
    requests.insert(name.to_owned(), InputRequest::Elicitation(form));
    InputRequiredResult::new(Some(requests), Some(state.to_owned()))
}

/// The answer among those that came with a repeated call; none where it has none.
pub(crate) fn answer_in(responses: Option<&InputResponses>) -> Option<Answer> {
    let response = responses?.get(QUESTION)?;
    // What is no answer of the protocol allows nothing.
    Some(serde_json::from_value(response.clone()).map_or(Answer::Deny, |result| answer(&result)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(result: Value) -> Answer {
        answer(&serde_json::from_value(result).unwrap())
    }

    #[test]
    fn the_form_is_one_choice_whose_default_is_no() {
        let form = serde_json::to_value(form("Text".into())).unwrap();
        assert_eq!(form["method"], "elicitation/create");
        assert_eq!(form["params"]["message"], "Text");
        let schema = &form["params"]["requestedSchema"];
        assert_eq!(schema["required"], json!([FIELD]));
        assert_eq!(
            schema["properties"][FIELD]["enum"],
            json!([DENY, ONCE, SESSION])
        );
        assert_eq!(schema["properties"][FIELD]["default"], DENY);
    }

    #[test]
    fn only_a_word_that_allows_allows() {
        let accept = |content: Value| said(json!({"action": "accept", "content": content}));
        assert_eq!(accept(json!({"decision": ONCE})), Answer::Allow);
        assert_eq!(
            accept(json!({"decision": SESSION})),
            Answer::AllowForSession
        );
        for content in [
            json!({"decision": DENY}),
            json!({"decision": true}),
            json!({"decision": ["allow once"]}),
            json!({"allow": true}),
            json!({}),
            json!("allow once"),
            Value::Null,
        ] {
            assert_eq!(accept(content.clone()), Answer::Deny, "{content}");
        }
        assert_eq!(said(json!({"action": "accept"})), Answer::Deny);
        assert_eq!(
            said(json!({"action": "decline", "content": {"decision": ONCE}})),
            Answer::Deny
        );
        assert!(matches!(
            said(json!({"action": "cancel", "content": {"decision": ONCE}})),
            Answer::Unavailable(_)
        ));
    }

    #[test]
    fn an_answer_is_found_where_it_was_asked_for() {
        let responses = |name: &str, value: Value| InputResponses::from([(name.to_owned(), value)]);
        let allow = json!({"action": "accept", "content": {"decision": ONCE}});
        assert_eq!(answer_in(None), None);
        assert_eq!(answer_in(Some(&responses("other", allow.clone()))), None);
        assert_eq!(
            answer_in(Some(&responses(QUESTION, allow))),
            Some(Answer::Allow)
        );
        assert_eq!(
            answer_in(Some(&responses(QUESTION, json!(true)))),
            Some(Answer::Deny)
        );
        let open = OpenQuestion::Approval("Text".into());
        let required = serde_json::to_value(input_required(open, "call")).unwrap();
        assert_eq!(required["resultType"], "input_required");
        assert_eq!(required["requestState"], "call");
        assert_eq!(
            required["inputRequests"][QUESTION]["method"],
            "elicitation/create"
        );
    }
}
