//! The question of a tool at the terminal: how it looks, and what counts as an answer. Nothing is answered by Enter alone: what the tool
//! suggests is marked and has to be typed like any other choice.

use std::fmt::Write as _;

use floe_protocol::AskedQuestion;
use floe_session::Reply;

use super::answer::{Line, Lines};
use super::card::{folded, quoted};
use crate::terminal::{Keep, Paint, Style, visible};

/// Above any number of choices, so that a slip of the finger is not taken for an answer in words.
const NO_CHOICE: usize = 100;

/// The question, without the line that waits for the answer, for a terminal of so many columns. No line of it is longer.
pub(super) fn render_question(
    question: &AskedQuestion,
    asked_by: &str,
    paint: Paint,
    columns: usize,
) -> String {
    let tool = paint.paint(Style::Name, visible(&question.tool, Keep::Nothing));
    let header = question.header.as_deref().map(|header| {
        let header = visible(header, Keep::Nothing);
        // One line, whatever it holds.
        folded(&header, columns, 4)[0].trim_end().to_owned()
    });
    let mut text = format!("\n{tool} asks you");
    // Writing to a String cannot fail.
    let _ = match header {
        Some(header) => writeln!(text, ":\n\n  | {header}\n  |"),
        None => writeln!(text, ":\n"),
    };
    text.push_str(&quoted(&question.text, paint, columns));
    text.push('\n');
    for (index, choice) in question.choices.iter().enumerate() {
        let number = format!("[{}] ", index + 1);
        let mut label = visible(&choice.label, Keep::Nothing);
        if question.suggested == Some(index) {
            label.push_str(" (suggested)");
        }
        let room = 2 + number.len();
        for (line, part) in folded(&label, columns, room).into_iter().enumerate() {
            let before = if line == 0 { number.as_str() } else { "" };
            let _ = writeln!(text, "  {before:width$}{part}", width = number.len());
        }
        let description = visible(
            choice.description.as_deref().unwrap_or_default().trim(),
            Keep::Nothing,
        );
        if !description.is_empty() {
            for part in folded(&description, columns, room) {
                let part = paint.paint(Style::Quiet, part);
                let _ = writeln!(text, "  {:width$}{part}", "", width = number.len());
            }
        }
    }
    if !question.choices.is_empty() {
        text.push('\n');
    }
    let asked_by = visible(&format!("asked by   {asked_by}"), Keep::Nothing);
    for part in folded(&asked_by, columns, 2) {
        let _ = writeln!(text, "  {}", paint.paint(Style::Quiet, part));
    }
    text
}

/// The line that waits for an answer.
fn prompt(question: &AskedQuestion) -> &'static str {
    match (
        question.choices.is_empty(),
        question.multiple,
        question.free_text,
    ) {
        (true, ..) => "\nType your answer, then Enter (Ctrl-C interrupts): ",
        (false, false, false) => "\nType a number, then Enter (Ctrl-C interrupts): ",
        (false, false, true) => {
            "\nType a number or an answer of your own, then Enter (Ctrl-C interrupts): "
        }
        (false, true, false) => {
            "\nType one or more numbers, such as 1,2, then Enter (Ctrl-C interrupts): "
        }
        (false, true, true) => {
            "\nType one or more numbers, such as 1,2, or an answer of your own, then Enter (Ctrl-C interrupts): "
        }
    }
}

/// Shows the question and asks until there is an answer. What was typed before the question appeared answers nothing.
pub(super) fn ask_question(
    text: &str,
    question: &AskedQuestion,
    lines: &mut impl Lines,
    mut show: impl FnMut(&str),
) -> Reply {
    show(text);
    lines.discard_typed();
    show(prompt(question));
    loop {
        match lines.next_line() {
            Line::Text(line) => match read(question, &line) {
                Ok(reply) => return reply,
                Err(again) => show(&again),
            },
            Line::Ended => {
                show("\nNo answer: the input ended.\n");
                return Reply::Unavailable("The person ended the input without an answer.".into());
            }
            Line::Closed => {
                show("\nNo answer.\n");
                return Reply::Unavailable("The question was closed without an answer.".into());
            }
        }
    }
}

/// A line as an answer, or what is said to it.
fn read(question: &AskedQuestion, line: &str) -> Result<Reply, String> {
    // Keys that are no text, such as arrows, arrive as control characters.
    let line: String = line.chars().filter(|key| !key.is_control()).collect();
    let line = line.trim();
    if line.is_empty() {
        return Err("Nothing is chosen by Enter alone. Your answer: ".into());
    }
    match chosen(question, line) {
        Chosen::These(selected) => Ok(Reply::Answered {
            text: None,
            selected,
        }),
        Chosen::TooMany => Err("Only one can be chosen. Your answer: ".into()),
        Chosen::Missing(number) => Err(format!("There is no choice {number}. Your answer: ")),
        Chosen::Words if question.free_text => Ok(Reply::Answered {
            text: Some(line.to_owned()),
            selected: vec![],
        }),
        Chosen::Words => Err(format!(
            "Please type a number from 1 to {}, then Enter: ",
            question.choices.len()
        )),
    }
}

/// What a line chooses.
enum Chosen {
    These(Vec<usize>),
    TooMany,
    /// A number that is none of a choice.
    Missing(usize),
    /// It is an answer in words.
    Words,
}

fn chosen(question: &AskedQuestion, line: &str) -> Chosen {
    let choices = &question.choices;
    let label = |word: &str| {
        choices
            .iter()
            .position(|choice| choice.label.to_lowercase() == word.to_lowercase())
    };
    // A label may hold commas and spaces.
    if let Some(index) = label(line) {
        return Chosen::These(vec![index]);
    }
    let words = line
        .split(|character: char| character == ',' || character.is_whitespace())
        .filter(|word| !word.is_empty());
    let mut selected = Vec::new();
    for word in words {
        match word.parse::<usize>() {
            Ok(number) if (1..=choices.len()).contains(&number) => selected.push(number - 1),
            Ok(number) if number < NO_CHOICE && !choices.is_empty() => {
                return Chosen::Missing(number);
            }
            _ => match label(word) {
                Some(index) => selected.push(index),
                None => return Chosen::Words,
            },
        }
    }
    selected.sort_unstable();
    selected.dedup();
    match selected.len() {
        0 => Chosen::Words,
        2.. if !question.multiple => Chosen::TooMany,
        _ => Chosen::These(selected),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use expect_test::expect;
    use floe_protocol::QuestionChoice;

    use super::*;

    struct Typist(VecDeque<&'static str>);

    impl Lines for Typist {
        fn discard_typed(&mut self) {}

        fn next_line(&mut self) -> Line {
            self.0
                .pop_front()
                .map_or(Line::Ended, |line| Line::Text(line.into()))
        }
    }

    fn question(labels: &[&str]) -> AskedQuestion {
        AskedQuestion {
            tool_call_id: "c1".into(),
            tool: "ask_clarification".into(),
            header: None,
            text: "Which?".into(),
            choices: labels
                .iter()
                .map(|label| QuestionChoice {
                    label: (*label).into(),
                    description: None,
                })
                .collect(),
            multiple: false,
            free_text: false,
            suggested: None,
        }
    }

    fn answer(question: &AskedQuestion, lines: &[&'static str]) -> (Reply, String) {
        let mut typist = Typist(lines.iter().copied().collect());
        let mut shown = String::new();
        let reply = ask_question("Q", question, &mut typist, |text| shown.push_str(text));
        (reply, shown)
    }

    fn these(selected: &[usize]) -> Reply {
        Reply::Answered {
            text: None,
            selected: selected.to_vec(),
        }
    }

    fn words(text: &str) -> Reply {
        Reply::Answered {
            text: Some(text.into()),
            selected: vec![],
        }
    }

    #[test]
    fn a_number_or_a_label_chooses() {
        let two = question(&["SQLite", "A, B"]);
        assert_eq!(answer(&two, &["2\n"]).0, these(&[1]));
        assert_eq!(answer(&two, &["sqlite\n"]).0, these(&[0]));
        assert_eq!(answer(&two, &["a, b\n"]).0, these(&[1]));
    }

    #[test]
    fn enter_alone_chooses_nothing_not_even_what_is_suggested() {
        let suggesting = AskedQuestion {
            suggested: Some(0),
            free_text: true,
            ..question(&["a", "b"])
        };
        let (reply, shown) = answer(&suggesting, &["\n", "  \n", "\u{1b}\n", "2\n"]);
        assert_eq!(reply, these(&[1]));
        assert_eq!(shown.matches("Enter alone").count(), 3);
    }

    #[test]
    fn several_are_chosen_only_where_that_is_asked() {
        let several = AskedQuestion {
            multiple: true,
            ..question(&["a", "b", "c"])
        };
        assert_eq!(answer(&several, &["3, 1 1\n"]).0, these(&[0, 2]));
        let (reply, shown) = answer(&question(&["a", "b"]), &["1,2\n", "1\n"]);
        assert_eq!(reply, these(&[0]));
        assert!(shown.contains("Only one"));
    }

    #[test]
    fn words_answer_only_where_they_may() {
        let free = AskedQuestion {
            free_text: true,
            ..question(&["a", "b"])
        };
        assert_eq!(
            answer(&free, &["neither of them\n"]).0,
            words("neither of them")
        );
        assert_eq!(answer(&free, &["8080\n"]).0, words("8080"));
        let (reply, shown) = answer(&free, &["3\n", "1\n"]);
        assert_eq!(reply, these(&[0]));
        assert!(shown.contains("no choice 3"));
        let (reply, shown) = answer(&question(&["a", "b"]), &["neither\n", "1\n"]);
        assert_eq!(reply, these(&[0]));
        assert!(shown.contains("from 1 to 2"));
        let open = AskedQuestion {
            free_text: true,
            ..question(&[])
        };
        assert_eq!(answer(&open, &["3\n"]).0, words("3"));
    }

    #[test]
    fn the_end_of_the_input_is_no_answer() {
        let (reply, shown) = answer(&question(&["a", "b"]), &["\n"]);
        assert!(matches!(reply, Reply::Unavailable(_)));
        assert!(shown.ends_with("No answer: the input ended.\n"));
    }

    #[test]
    fn a_question_is_shown_whole_and_nothing_in_it_can_draw_on_the_card() {
        let mut asked = AskedQuestion {
            header: Some("Data\u{1b}[2Jbase".into()),
            text: "Which one?\n\n  [1] fake\u{202e}".into(),
            suggested: Some(1),
            free_text: true,
            ..question(&[
                "sqlite",
                "postgres\r\u{200b}",
                "a label that is longer than its whole line",
            ])
        };
        asked.choices[0].description = Some("In memory,\nno server, and nothing to set up".into());
        expect![[r#"

            ask_clarification asks you:

              | Data\x1b[2Jbase
              |
              | Which one?
              | 
              |   [1] fake\u{202e}

              [1] sqlite
                  In memory,\nno server, and nothing 
                  to set up
              [2] postgres\r\u{200b} (suggested)
              [3] a label that is longer than its 
                  whole line

              asked by   the model openai:x
        "#]]
        .assert_eq(&render_question(
            &asked,
            "the model openai:x",
            Paint::PLAIN,
            44,
        ));
    }
}
