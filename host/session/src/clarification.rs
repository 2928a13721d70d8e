//! What a tool asks the person. A question waits as long as it takes, or as long as approvals may; what is not answered is no answer,
//! and nothing is ever chosen for the person.
//!
//! Every question that somebody could be asked is an event, and so is what came of it. Whoever shows the text makes it visible.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use floe_environment::{MessageSink, Pending, PendingQuestion};
use floe_protocol::{
    AnswerSource, AskedQuestion, EventMsg, Keep, OmniMessage, QuestionAnswered, QuestionChoice,
    visible,
};
use floe_runtime::capability::Failure;
use floe_runtime::capability::interaction::{Answer, Interaction, Question};

use crate::message_queue::MessageQueue;

/// Choices of one question: more are no question but a list.
const MOST_CHOICES: usize = 16;
/// Characters of the text, of a label or header, and of a description.
const LONGEST_TEXT: usize = 4000;
const LONGEST_LABEL: usize = 200;
const LONGEST_DESCRIPTION: usize = 1000;

/// What came of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The person said this.
    Answered {
        /// What they wrote.
        text: Option<String>,
        /// Indices into the choices.
        selected: Vec<usize>,
    },
    /// The person could not be asked, or would not answer: why, for the model.
    Unavailable(String),
}

/// Puts the questions of tools to a person.
#[async_trait]
pub trait Clarifier: Send + Sync {
    /// Asks one question. Dropped when the call is interrupted or its time is up.
    async fn clarify(&self, question: &AskedQuestion) -> Reply;
}

/// Leaves every question to [`Session::answer_question`](crate::Session::answer_question).
#[derive(Clone, Copy, Debug, Default)]
pub struct ClarifyLater;

#[async_trait]
impl Clarifier for ClarifyLater {
    async fn clarify(&self, _question: &AskedQuestion) -> Reply {
        std::future::pending().await
    }
}

/// The questions of a Session.
pub(crate) struct Questions {
    pub(crate) clarifier: Option<Arc<dyn Clarifier>>,
    /// How long one waits; without an end where none.
    pub(crate) timeout: Option<Duration>,
    pub(crate) pending: Pending<AskedQuestion, Reply>,
    /// Weak: a call may outlive its Session by a moment.
    pub(crate) queue: Weak<MessageQueue>,
}

impl Questions {
    /// What the call of a tool asks through.
    pub(crate) fn for_call(self: &Arc<Questions>, tool_call_id: &str, tool: &str) -> CallQuestions {
        CallQuestions {
            questions: Arc::clone(self),
            tool_call_id: tool_call_id.to_owned(),
            tool: tool.to_owned(),
        }
    }

    /// The open questions, oldest first.
    pub(crate) fn open(&self) -> Vec<PendingQuestion<AskedQuestion>> {
        self.pending.list()
    }

    /// Asks. The error says where no answer came from.
    pub(crate) async fn ask(&self, asked: &Arc<AskedQuestion>) -> Result<Reply, AnswerSource> {
        let clarifier = self.clarifier.as_ref().ok_or(AnswerSource::Nobody)?;
        let mut place = self.pending.park(&asked.tool_call_id, Arc::clone(asked));
        let timeout = async {
            match self.timeout {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Ok(reply) = &mut place.answer => Ok(reply),
            reply = clarifier.clarify(asked) => Ok(reply),
            () = timeout => Err(AnswerSource::Timeout),
        }
    }

    fn emit(&self, event: EventMsg) {
        if let Some(queue) = self.queue.upgrade() {
            queue.emit(OmniMessage::event(event));
        }
    }
}

/// The questions of one call.
pub(crate) struct CallQuestions {
    questions: Arc<Questions>,
    tool_call_id: String,
    tool: String,
}

#[async_trait]
impl Interaction for CallQuestions {
    async fn ask(&self, question: Question) -> Result<Answer, Failure> {
        let asked = Arc::new(self.checked(question)?);
        if self.questions.clarifier.is_none() {
            return Err(nobody("Nobody can be asked in this Session."));
        }
        self.questions.emit(EventMsg::Question((*asked).clone()));
        let since = Instant::now();
        let end = match self.questions.ask(&asked).await {
            Ok(Reply::Answered { text, selected }) => said(&asked, text, selected),
            Ok(Reply::Unavailable(reason)) => Err((AnswerSource::Nobody, nobody(&reason))),
            Err(source) => Err((source, self.unanswered(source))),
        };
        let (source, answer, selected) = match &end {
            Ok(answer) => {
                let labels = answer.selected.iter().map(|index| *index as usize);
                let labels = labels.map(|index| asked.choices[index].label.clone());
                (AnswerSource::User, answer.text.clone(), labels.collect())
            }
            Err((source, _)) => (*source, None, Vec::new()),
        };
        self.questions
            .emit(EventMsg::QuestionAnswered(QuestionAnswered {
                tool_call_id: self.tool_call_id.clone(),
                source,
                answer,
                selected,
                waited_ms: u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX),
            }));
        end.map_err(|(_, failure)| failure)
    }
}

impl CallQuestions {
    /// The question, if it is one that a person can be shown: a tool may send anything.
    fn checked(&self, question: Question) -> Result<AskedQuestion, Failure> {
        let Question {
            header,
            text,
            choices,
            multiple,
            free_text,
            suggested,
        } = question;
        let invalid = |message: String| Failure::new("invalid", message);
        if text.trim().is_empty() {
            return Err(invalid("A question has a text.".into()));
        }
        if choices.len() > MOST_CHOICES {
            return Err(invalid(format!(
                "A question has at most {MOST_CHOICES} choices, not {}.",
                choices.len()
            )));
        }
        let short = |what: &str, text: &str, limit: usize| {
            let length = text.chars().count();
            match length > limit {
                true => Err(invalid(format!(
                    "The {what} of a question is too long: {length} characters (max {limit})."
                ))),
                false => Ok(()),
            }
        };
        short("text", &text, LONGEST_TEXT)?;
        short(
            "header",
            header.as_deref().unwrap_or_default(),
            LONGEST_LABEL,
        )?;
        let mut labels = HashSet::new();
        for choice in &choices {
            short("label", &choice.label, LONGEST_LABEL)?;
            let description = choice.description.as_deref().unwrap_or_default();
            short("description", description, LONGEST_DESCRIPTION)?;
            // As the person sees them: two that look the same could not be told apart.
            let label = visible(choice.label.trim(), Keep::Nothing);
            if label.is_empty() || !labels.insert(label) {
                return Err(invalid(
                    "Every choice of a question has a label of its own.".into(),
                ));
            }
        }
        let suggested = suggested.map(|index| index as usize);
        if suggested.is_some_and(|index| index >= choices.len()) {
            return Err(invalid("The suggestion is none of the choices.".into()));
        }
        Ok(AskedQuestion {
            tool_call_id: self.tool_call_id.clone(),
            tool: self.tool.clone(),
            header: header.filter(|header| !header.trim().is_empty()),
            text,
            free_text: free_text || choices.is_empty(),
            multiple: multiple && choices.len() > 1,
            choices: choices
                .into_iter()
                .map(|choice| QuestionChoice {
                    label: choice.label.trim().to_owned(),
                    description: choice.description,
                })
                .collect(),
            suggested,
        })
    }

    fn unanswered(&self, source: AnswerSource) -> Failure {
        match (source, self.questions.timeout) {
            (AnswerSource::Timeout, Some(limit)) => Failure::new(
                "timeout",
                format!("Nobody answered within {} s.", limit.as_secs_f64()),
            )
            .with_hint(
                "Nothing was chosen. Go on with what does not depend on the answer, or end your turn and say what you need to know.",
            ),
            _ => nobody("Nobody can be asked in this Session."),
        }
    }
}

/// There is no person to ask.
fn nobody(reason: &str) -> Failure {
    Failure::new("unsupported", reason)
        .with_hint("Make a reasonable assumption, say which, and go on.")
}

/// An answer as the tool gets it, if it is one to this question: surfaces are not believed either.
fn said(
    asked: &AskedQuestion,
    text: Option<String>,
    mut selected: Vec<usize>,
) -> Result<Answer, (AnswerSource, Failure)> {
    selected.sort_unstable();
    selected.dedup();
    let text = text
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty());
    let fits = selected.iter().all(|index| *index < asked.choices.len())
        && (asked.multiple || selected.len() <= 1)
        && (asked.free_text || text.is_none())
        && (text.is_some() || !selected.is_empty());
    if !fits {
        let failure = nobody("The person was asked, and what came back is no answer to this.");
        return Err((AnswerSource::Nobody, failure));
    }
    // At most MOST_CHOICES.
    let selected = selected
        .into_iter()
        .filter_map(|index| index.try_into().ok());
    Ok(Answer {
        text,
        selected: selected.collect(),
    })
}

#[cfg(test)]
mod tests {
    use floe_runtime::capability::interaction::Choice;

    use super::*;

    struct Says(Reply);

    #[async_trait]
    impl Clarifier for Says {
        async fn clarify(&self, _question: &AskedQuestion) -> Reply {
            self.0.clone()
        }
    }

    fn call(clarifier: Option<Arc<dyn Clarifier>>, timeout: Option<Duration>) -> CallQuestions {
        let questions = Questions {
            clarifier,
            timeout,
            pending: Pending::default(),
            queue: Weak::new(),
        };
        Arc::new(questions).for_call("c1", "ask_clarification")
    }

    fn question(labels: &[&str]) -> Question {
        Question {
            header: None,
            text: "Which?".into(),
            choices: labels
                .iter()
                .map(|label| Choice {
                    label: (*label).into(),
                    description: None,
                })
                .collect(),
            multiple: false,
            free_text: false,
            suggested: None,
        }
    }

    async fn ask(reply: Reply, question: Question) -> Result<(Option<String>, Vec<u32>), String> {
        let answer = call(Some(Arc::new(Says(reply))), None).ask(question).await;
        answer
            .map(|answer| (answer.text, answer.selected))
            .map_err(|failure| failure.code)
    }

    fn chosen(selected: &[usize]) -> Reply {
        Reply::Answered {
            text: None,
            selected: selected.to_vec(),
        }
    }

    fn written(text: &str) -> Reply {
        Reply::Answered {
            text: Some(text.into()),
            selected: vec![],
        }
    }

    #[tokio::test]
    async fn an_answer_that_fits_the_question_comes_back() {
        let two = || question(&["a", "b"]);
        assert_eq!(ask(chosen(&[1]), two()).await, Ok((None, vec![1])));
        let several = Question {
            multiple: true,
            ..two()
        };
        assert_eq!(
            ask(chosen(&[1, 0, 1]), several).await,
            Ok((None, vec![0, 1]))
        );
        assert_eq!(
            ask(written(" x "), question(&[])).await,
            Ok((Some("x".into()), vec![]))
        );
    }

    #[tokio::test]
    async fn what_does_not_fit_is_no_answer() {
        for reply in [
            chosen(&[2]),
            chosen(&[0, 1]),
            chosen(&[]),
            written("c"),
            written(" "),
        ] {
            let answer = ask(reply.clone(), question(&["a", "b"])).await;
            assert_eq!(answer, Err("unsupported".into()), "{reply:?}");
        }
    }

    #[tokio::test]
    async fn a_question_that_cannot_be_shown_is_refused_before_anybody_is_asked() {
        let blank = Question {
            text: " ".into(),
            ..question(&[])
        };
        let suggested = Question {
            suggested: Some(2),
            ..question(&["a", "b"])
        };
        let long = Question {
            text: "é".repeat(LONGEST_TEXT + 1),
            ..question(&[])
        };
        // An escape, and the same written out.
        let alike = question(&["\u{1b}", "\\x1b"]);
        let many = question(&["x"; 17]);
        for question in [blank, suggested, long, alike, many, question(&["a", "a "])] {
            assert_eq!(ask(chosen(&[0]), question).await, Err("invalid".into()));
        }
    }

    #[tokio::test]
    async fn where_nobody_can_be_asked_the_tool_is_told_to_state_an_assumption() {
        let failure = call(None, None).ask(question(&[])).await.unwrap_err();
        assert_eq!(failure.code, "unsupported");
        assert!(failure.hint.unwrap().contains("assumption"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_waits_for_ever_or_fails_closed_when_its_time_is_up() {
        let later: Arc<dyn Clarifier> = Arc::new(ClarifyLater);
        let call_without_end = call(Some(Arc::clone(&later)), None);
        let waiting = call_without_end.ask(question(&["a", "b"]));
        let month = Duration::from_secs(30 * 24 * 3600);
        assert!(tokio::time::timeout(month, waiting).await.is_err());
        let failure = call(Some(later), Some(Duration::from_secs(60)))
            .ask(question(&["a", "b"]))
            .await
            .unwrap_err();
        assert_eq!(failure.code, "timeout");
        assert_eq!(failure.message, "Nobody answered within 60 s.");
    }

    #[tokio::test]
    async fn whoever_knows_the_call_may_answer() {
        let call = Arc::new(call(Some(Arc::new(ClarifyLater)), None));
        let asking = Arc::clone(&call);
        let asked = tokio::spawn(async move { asking.ask(question(&["a", "b"])).await });
        while call.questions.open().is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(!call.questions.pending.answer("c2", chosen(&[0])));
        assert!(call.questions.pending.answer("c1", chosen(&[1])));
        assert_eq!(asked.await.unwrap().unwrap().selected, [1]);
        assert!(call.questions.open().is_empty());
    }
}
