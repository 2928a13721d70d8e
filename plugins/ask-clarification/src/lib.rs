//! The tool `ask_clarification`: a question to the person, whose answer the call waits for.

use floe_tool::interaction::{self, Answer, Choice, Question};
use floe_tool::{Context, Definition, Failure, Outcome, Permission, Tool};

#[derive(Debug, Default, serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// The question, with what the person needs to know to decide.
    question: String,
    /// A word or two above it.
    header: Option<String>,
    /// Two to six answers to choose from.
    #[schemars(length(min = 2, max = 6))]
    options: Option<Vec<Choosable>>,
    /// Several may be chosen. Default false.
    multi_select: Option<bool>,
    /// The person may also write an answer. Default true.
    allow_free_text: Option<bool>,
    /// The label of the option that is suggested.
    default: Option<String>,
}

#[derive(Debug, Clone, serde::Deserialize, schemars::JsonSchema)]
#[schemars(inline)]
struct Choosable {
    /// A few words.
    label: String,
    /// What it means.
    description: Option<String>,
}

/// What is asked where the model left the question blank.
const FALLBACK: &str = "Could you clarify?";

struct AskClarification;

impl Tool for AskClarification {
    type Arguments = Arguments;

    fn definition() -> Definition {
        Definition::new(
            "ask_clarification",
            "Asks the person a question and waits for the answer. For what only they can decide; where a reasonable assumption will do, make it and \
             say so.",
        )
        .alias("question")
        .alias("ask_user_clarification")
        .permission(Permission::None)
        .timeout_ms(0)
        .max_output_length(16_000)
    }

    fn run(arguments: Arguments, _context: &Context) -> Result<Outcome, Failure> {
        let question = match question(&arguments) {
            Ok(question) => question,
            Err(message) => return Ok(Outcome::failed(message)),
        };
        match interaction::ask(&question) {
            Ok(answer) => {
                let (text, structured) = told(&question.choices, &answer);
                Ok(Outcome::text(text).with_structured(&structured))
            }
            Err(failure) => {
                let source = match failure.code.as_str() {
                    "timeout" => "timeout",
                    "unsupported" => "nobody",
                    _ => return Ok(Outcome::failed(failure.explanation())),
                };
                let structured = Structured {
                    answer: None,
                    selected: Vec::new(),
                    source,
                };
                let text = unanswered(&question, &failure.explanation());
                Ok(Outcome::failed(text).with_structured(&structured))
            }
        }
    }
}

floe_tool::export!(AskClarification);

fn question(arguments: &Arguments) -> Result<Question, String> {
    let text = match arguments.question.trim() {
        "" => FALLBACK,
        text => text,
    };
    let options = arguments.options.as_deref().unwrap_or_default();
    let choices: Vec<Choice> = options
        .iter()
        .map(|option| Choice {
            label: option.label.trim().to_owned(),
            description: option.description.clone(),
        })
        .collect();
    if choices.iter().any(|choice| choice.label.is_empty()) {
        return Err("an option has no label".to_owned());
    }
    for (index, choice) in choices.iter().enumerate() {
        if choices[..index]
            .iter()
            .any(|earlier| earlier.label == choice.label)
        {
            return Err(format!("two options have the label {:?}", choice.label));
        }
    }
    let suggested = match &arguments.default {
        None => None,
        Some(default) => {
            let at = choices
                .iter()
                .position(|choice| choice.label == default.trim());
            let at = at.ok_or_else(|| format!("`default` is none of the options: {default}"))?;
            u32::try_from(at).ok()
        }
    };
    Ok(Question {
        header: arguments.header.clone(),
        text: text.to_owned(),
        free_text: choices.is_empty() || arguments.allow_free_text.unwrap_or(true),
        multiple: arguments.multi_select.unwrap_or(false),
        choices,
        suggested,
    })
}

/// What the model reads where no answer came: the question stays in sight, for whoever reads on.
fn unanswered(question: &Question, why: &str) -> String {
    let mut text = format!("[CLARIFICATION NEEDED] {}\n\n", question.text);
    if !question.choices.is_empty() {
        let labels: Vec<&str> = question
            .choices
            .iter()
            .map(|choice| choice.label.as_str())
            .collect();
        text.push_str(&format!("Options: {}\n\n", labels.join(", ")));
    }
    text + why
}

/// What the model reads, and the same for programs.
fn told(choices: &[Choice], answer: &Answer) -> (String, Structured) {
    let selected: Vec<String> = answer
        .selected
        .iter()
        .filter_map(|index| choices.get(*index as usize))
        .map(|choice| choice.label.clone())
        .collect();
    let mut lines = Vec::new();
    if !selected.is_empty() {
        lines.push(format!("The person chose: {}", selected.join(", ")));
    }
    if let Some(text) = answer
        .text
        .as_deref()
        .filter(|text| !text.trim().is_empty())
    {
        lines.push(format!("The person answered: {}", text.trim()));
    }
    if lines.is_empty() {
        lines.push("The person gave an empty answer.".to_owned());
    }
    let structured = Structured {
        answer: answer.text.clone(),
        selected,
        source: "user",
    };
    (lines.join("\n"), structured)
}

#[derive(Debug, PartialEq, Eq, serde::Serialize)]
struct Structured {
    answer: Option<String>,
    selected: Vec<String>,
    source: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(labels: &[&str], default: Option<&str>) -> Arguments {
        let option = |label: &&str| Choosable {
            label: (*label).into(),
            description: None,
        };
        Arguments {
            question: " Which? ".into(),
            options: (!labels.is_empty()).then(|| labels.iter().map(option).collect()),
            default: default.map(str::to_owned),
            ..Arguments::default()
        }
    }

    #[test]
    fn a_question_without_options_is_answered_freely() {
        let asked = question(&arguments(&[], None)).unwrap();
        assert_eq!((asked.text.as_str(), asked.free_text), ("Which?", true));
        let closed = Arguments {
            allow_free_text: Some(false),
            ..arguments(&["a", "b"], Some("b"))
        };
        let asked = question(&closed).unwrap();
        assert_eq!((asked.free_text, asked.suggested), (false, Some(1)));
    }

    #[test]
    fn a_blank_question_asks_for_clarification() {
        let blank = Arguments {
            question: " ".into(),
            ..arguments(&[], None)
        };
        assert_eq!(question(&blank).unwrap().text, "Could you clarify?");
    }

    #[test]
    fn what_nobody_answered_keeps_the_question_and_its_options_in_sight() {
        let asked = question(&arguments(&["a", "b"], None)).unwrap();
        assert_eq!(
            unanswered(&asked, "Nobody is there."),
            "[CLARIFICATION NEEDED] Which?\n\nOptions: a, b\n\nNobody is there."
        );
    }

    #[test]
    fn options_that_cannot_be_told_apart_and_a_default_that_is_none_are_refused() {
        assert!(
            question(&arguments(&["a", "b"], Some("c")))
                .unwrap_err()
                .contains("none of the options")
        );
        assert!(question(&arguments(&["a", " "], None)).is_err());
        assert_eq!(
            question(&arguments(&["a", "a "], None)).unwrap_err(),
            r#"two options have the label "a""#
        );
    }

    #[test]
    fn what_was_chosen_and_what_was_written_are_both_told() {
        let choices = question(&arguments(&["a", "b"], None)).unwrap().choices;
        let answer = |text: Option<&str>, selected: &[u32]| Answer {
            text: text.map(str::to_owned),
            selected: selected.to_vec(),
        };
        let text = |text, selected: &[u32]| told(&choices, &answer(text, selected)).0;
        assert_eq!(text(None, &[1]), "The person chose: b");
        assert_eq!(
            text(Some("but later"), &[0, 1]),
            "The person chose: a, b\nThe person answered: but later"
        );
        assert_eq!(text(Some(" "), &[9]), "The person gave an empty answer.");
        let (_, structured) = told(&choices, &answer(None, &[0]));
        assert_eq!(
            (structured.selected, structured.source),
            (vec!["a".to_owned()], "user")
        );
    }
}
