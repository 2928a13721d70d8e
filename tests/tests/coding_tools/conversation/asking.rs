//! `ask_clarification`: the call waits for the person, and nothing but the person answers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use floe_protocol::{AnswerSource, AskedQuestion, Body, EventMsg, Permission, QuestionAnswered};
use floe_session::{Clarifier, ClarifyLater, Reply, SessionOptions};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::rig::{Answer, LONG, Rig, definition};

const TOOL: &str = "ask_clarification";

/// A person who is quick to answer.
struct Says(Reply);

#[async_trait]
impl Clarifier for Says {
    async fn clarify(&self, _question: &AskedQuestion) -> Reply {
        self.0.clone()
    }
}

fn saying(text: Option<&str>, selected: &[usize]) -> impl FnOnce(&mut SessionOptions) {
    let reply = Reply::Answered {
        text: text.map(str::to_owned),
        selected: selected.to_vec(),
    };
    |options| options.clarifier = Some(Arc::new(Says(reply)))
}

fn later(options: &mut SessionOptions) {
    options.clarifier = Some(Arc::new(ClarifyLater));
}

fn which() -> Value {
    json!({
        "question": "Which database?",
        "options": [{"label": "sqlite", "description": "in memory"}, {"label": "postgres"}],
        "default": "sqlite",
    })
}

fn structured(answer: &Answer) -> &Value {
    answer.facts.structured.as_ref().unwrap()
}

/// What was told of the question in the stream, and of its end.
fn told(rig: &Rig) -> (Vec<AskedQuestion>, Vec<QuestionAnswered>) {
    let (mut asked, mut answered) = (vec![], vec![]);
    for message in rig.messages() {
        match message.body {
            Body::EventMsg(EventMsg::Question(question)) => asked.push(question),
            Body::EventMsg(EventMsg::QuestionAnswered(answer)) => answered.push(answer),
            _ => {}
        }
    }
    (asked, answered)
}

/// Waits until a call asks, and gives its id.
async fn asked(rig: &Rig) -> String {
    let waiting = async {
        loop {
            if let Some(open) = rig.session.questions().first() {
                return open.question.tool_call_id.clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.unwrap()
}

#[test]
fn ask_clarification_has_a_name_a_description_an_object_schema_and_needs_no_permission() {
    let definition = definition(TOOL);
    assert_eq!(definition.name, TOOL);
    assert!(!definition.description.is_empty());
    assert_eq!(definition.parameters["type"], "object");
    assert_eq!(definition.parameters["required"], json!(["question"]));
    assert_eq!(definition.permission, Permission::None);
    assert_eq!(
        definition.timeout_ms, 0,
        "a person takes as long as it takes"
    );
}

#[tokio::test]
async fn its_other_names_mean_the_same_tool() {
    let rig = Rig::with(saying(Some("yes"), &[]));
    for name in ["question", "ask_user_clarification", TOOL] {
        let answer = rig.call(name, json!({"question": "Well?"})).await;
        assert_eq!(answer.completed(), "The person answered: yes", "{name}");
    }
}

#[tokio::test]
async fn the_question_is_in_the_output_and_the_options_are_listed_where_nobody_answered() {
    let answer = Rig::new().call(TOOL, which()).await;
    assert!(
        answer
            .failed()
            .starts_with("[CLARIFICATION NEEDED] Which database?\n\nOptions: sqlite, postgres\n\n"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_blank_question_asks_could_you_clarify() {
    let rig = Rig::with(saying(Some("yes"), &[]));
    rig.call(TOOL, json!({"question": "  "})).await.completed();
    assert_eq!(told(&rig).0[0].text, "Could you clarify?");
    let missing = rig.call(TOOL, json!({})).await;
    assert!(
        missing
            .failed()
            .contains("Missing required argument \"question\"")
    );
}

#[tokio::test]
async fn the_call_waits_until_somebody_answers_and_other_calls_do_not() {
    let rig = Rig::with(later);
    let cancel = CancellationToken::new();
    let arguments = which().to_string();
    let call = rig.session.call(TOOL, &arguments, &cancel);
    let answering = async {
        let id = asked(&rig).await;
        rig.call("todowrite", json!({"todos": []}))
            .await
            .completed();
        assert!(told(&rig).1.is_empty(), "nothing was chosen meanwhile");
        assert!(
            !rig.session
                .answer_question("another", Reply::Unavailable(String::new()))
        );
        let reply = Reply::Answered {
            text: None,
            selected: vec![1],
        };
        assert!(rig.session.answer_question(&id, reply));
    };
    let (output, ()) = tokio::time::timeout(LONG, async { tokio::join!(call, answering) })
        .await
        .unwrap();
    let answer = Answer::from(output);
    assert_eq!(answer.completed(), "The person chose: postgres");
    assert!(rig.session.questions().is_empty());
}

#[tokio::test]
async fn the_answer_comes_back_as_text_and_as_structure_and_both_ends_are_events() {
    let rig = Rig::with(saying(Some("but small"), &[0]));
    let answer = rig.call(TOOL, which()).await;
    assert_eq!(
        answer.completed(),
        "The person chose: sqlite\nThe person answered: but small"
    );
    assert_eq!(
        structured(&answer),
        &json!({"answer": "but small", "selected": ["sqlite"], "source": "user"})
    );
    let (asked, answered) = told(&rig);
    assert_eq!((asked.len(), answered.len()), (1, 1));
    assert_eq!(asked[0].tool, TOOL);
    assert_eq!(asked[0].choices.len(), 2);
    assert_eq!(asked[0].suggested, Some(0));
    assert_eq!(answered[0].tool_call_id, asked[0].tool_call_id);
    assert_eq!(answered[0].source, AnswerSource::User);
    assert_eq!(answered[0].selected, ["sqlite"]);
    assert_eq!(answered[0].answer.as_deref(), Some("but small"));
}

#[tokio::test]
async fn several_can_be_chosen_where_the_question_says_so() {
    let rig = Rig::with(saying(None, &[1, 0]));
    let mut question = which();
    question["multi_select"] = json!(true);
    let answer = rig.call(TOOL, question).await;
    assert_eq!(answer.completed(), "The person chose: sqlite, postgres");
    let refused = rig.call(TOOL, which()).await;
    assert!(
        refused.failed().contains("no answer to this"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn words_answer_only_where_they_may() {
    let rig = Rig::with(saying(Some("mysql"), &[]));
    let answer = rig.call(TOOL, which()).await;
    assert_eq!(answer.completed(), "The person answered: mysql");
    let mut closed = which();
    closed["allow_free_text"] = json!(false);
    rig.call(TOOL, closed).await.failed();
}

#[tokio::test]
async fn a_question_nobody_answers_in_time_fails_closed_and_chooses_nothing() {
    let rig = Rig::with(|options| {
        later(options);
        options.approval_timeout = Some(Duration::from_millis(50));
    });
    let answer = rig.call(TOOL, which()).await;
    assert!(answer.failed().contains("Nobody answered within 0.05 s."));
    assert!(answer.failed().contains("Nothing was chosen."));
    assert_eq!(
        structured(&answer),
        &json!({"answer": null, "selected": [], "source": "timeout"})
    );
    let (_, answered) = told(&rig);
    assert_eq!(answered[0].source, AnswerSource::Timeout);
    assert!(answered[0].selected.is_empty() && answered[0].waited_ms >= 50);
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_model_is_told_at_once_to_state_an_assumption() {
    let rig = Rig::new();
    let answer = rig.call(TOOL, which()).await;
    assert!(
        answer.failed().ends_with(
            "Nobody can be asked in this Session. Make a reasonable assumption, say which, and go on."
        ),
        "{answer:?}"
    );
    assert_eq!(structured(&answer)["source"], "nobody");
    assert!(told(&rig).0.is_empty(), "nobody was asked");
}

#[tokio::test]
async fn an_interrupt_ends_the_call_that_waits_and_takes_the_question_back() {
    let rig = Rig::with(later);
    let cancel = CancellationToken::new();
    let arguments = which().to_string();
    let call = rig.session.call(TOOL, &arguments, &cancel);
    let interrupting = async {
        asked(&rig).await;
        cancel.cancel();
    };
    let (output, ()) = tokio::time::timeout(LONG, async { tokio::join!(call, interrupting) })
        .await
        .unwrap();
    Answer::from(output).aborted();
    let taken_back = async {
        while !rig.session.questions().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, taken_back).await.unwrap();
    assert!(told(&rig).1.is_empty(), "there is no answer");
}

#[tokio::test]
async fn questions_that_could_not_be_told_apart_or_answered_are_refused() {
    let rig = Rig::with(saying(Some("yes"), &[]));
    let option = |label: &str| json!({"label": label});
    for (options, words) in [
        (json!([option("a")]), "options"),
        (
            json!([option("a"), option("a ")]),
            "two options have the label",
        ),
        (json!([option("a"), option(" ")]), "no label"),
        (json!(vec![option("a"); 7]), "options"),
    ] {
        let answer = rig
            .call(TOOL, json!({"question": "Which?", "options": options}))
            .await;
        assert!(answer.failed().contains(words), "{answer:?}");
    }
    let answer = rig
        .call(
            TOOL,
            json!({"question": "Which?", "options": [option("a"), option("b")], "default": "c"}),
        )
        .await;
    assert!(answer.failed().contains("none of the options"));
    let long = "é".repeat(4001);
    let answer = rig.call(TOOL, json!({"question": long})).await;
    assert!(
        answer.failed().contains("too long: 4001 characters"),
        "{answer:?}"
    );
    assert!(told(&rig).0.is_empty(), "nobody saw any of them");
}
