//! Reads the answer: `y`, `n`, or `s` where that is offered; nothing else counts. Enter alone never allows; the end of the
//! input and Ctrl-C mean no.

use floe_environment::Answer;

/// Where answers come from.
pub(crate) trait Lines {
    /// Throws away what was typed before now.
    fn discard_typed(&mut self);

    /// The next line, or why there is none.
    fn next_line(&mut self) -> Line;
}

/// A line of input, or what came instead of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line.
    Text(String),
    /// The input ended, or cannot be read.
    Ended,
    /// The question was closed: by Ctrl-C, or because nobody waits for its answer any more.
    Closed,
}

/// What may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Yes, once, or no.
    Once,
    /// The same call for the rest of the Session as well.
    OnceOrSession,
    /// What one call may reach beyond the sandbox, or no.
    Widening,
    /// The same or less for the rest of the Session as well.
    WideningOrSession,
}

impl Offer {
    /// What may be answered to a question about a call or, with `widening`, about what it reaches. `lasting` says whether an answer
    /// for the whole Session makes sense.
    pub(crate) fn of(widening: bool, lasting: bool) -> Offer {
        match (widening, lasting) {
            (false, false) => Offer::Once,
            (false, true) => Offer::OnceOrSession,
            (true, false) => Offer::Widening,
            (true, true) => Offer::WideningOrSession,
        }
    }

    fn lasts(self) -> bool {
        matches!(self, Offer::OnceOrSession | Offer::WideningOrSession)
    }

    /// The line that waits for an answer.
    fn prompt(self) -> &'static str {
        match self {
            Offer::Once => "\nAllow it? [y] yes  [n] no: ",
            Offer::OnceOrSession => {
                "\nAllow it? [y] yes, once  [s] yes, this very call for the whole Session  [n] no: "
            }
            Offer::Widening => "\nLet it? [y] yes, this once  [n] no: ",
            Offer::WideningOrSession => {
                "\nLet it? [y] yes, this once  [s] yes, for this Session  [n] no: "
            }
        }
    }

    /// What is said to anything else.
    fn again(self) -> &'static str {
        match self {
            Offer::Once | Offer::Widening => "Please type y or n, then Enter: ",
            Offer::OnceOrSession | Offer::WideningOrSession => {
                "Please type y, s or n, then Enter: "
            }
        }
    }
}

/// Shows `question` and asks until there is an answer. What was typed before the question appeared answers nothing.
pub(crate) fn ask(
    question: &str,
    offer: Offer,
    lines: &mut impl Lines,
    mut show: impl FnMut(&str),
) -> Answer {
    show(question);
    // Only now: a long question takes a while to be shown, and nobody has read it before.
    lines.discard_typed();
    show(offer.prompt());
    loop {
        match lines.next_line() {
            Line::Text(line) => match line.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => return Answer::Allow,
                "s" | "session" if offer.lasts() => return Answer::AllowForSession,
                "n" | "no" => return Answer::Deny,
                _ => show(offer.again()),
            },
            Line::Ended => {
                show("\nDenied: the input ended.\n");
                return Answer::Deny;
            }
            Line::Closed => {
                show("\nDenied.\n");
                return Answer::Deny;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A person who had typed `typed` before the question, and answers with `answers`.
    struct Typist {
        typed: Vec<Line>,
        answers: VecDeque<Line>,
    }

    impl Lines for Typist {
        fn discard_typed(&mut self) {
            self.typed.clear();
        }

        fn next_line(&mut self) -> Line {
            if self.typed.is_empty() {
                self.answers.pop_front().unwrap_or(Line::Ended)
            } else {
                self.typed.remove(0)
            }
        }
    }

    fn answer(offer: Offer, answers: &[&str]) -> (Answer, String) {
        let mut typist = Typist {
            typed: Vec::new(),
            answers: answers
                .iter()
                .map(|line| Line::Text((*line).into()))
                .collect(),
        };
        let mut shown = String::new();
        let answer = ask("Q", offer, &mut typist, |text| shown.push_str(text));
        (answer, shown)
    }

    #[test]
    fn y_and_yes_in_any_case_allow_once() {
        for word in ["y\n", "Y", "yes", " YES "] {
            assert_eq!(
                answer(Offer::OnceOrSession, &[word]).0,
                Answer::Allow,
                "{word:?}"
            );
        }
    }

    #[test]
    fn n_and_no_deny() {
        for word in ["n", "No"] {
            assert_eq!(answer(Offer::Once, &[word]).0, Answer::Deny, "{word:?}");
        }
    }

    #[test]
    fn s_allows_for_the_session_only_where_it_is_offered() {
        assert_eq!(
            answer(Offer::OnceOrSession, &["s"]).0,
            Answer::AllowForSession
        );
        assert_eq!(answer(Offer::Once, &["s", "session", "n"]).0, Answer::Deny);
    }

    #[test]
    fn enter_alone_and_other_words_ask_again() {
        for offer in [Offer::Once, Offer::Widening] {
            let (answer, shown) = answer(offer, &["\n", "  ", "ok", "yy", "n"]);
            assert_eq!(answer, Answer::Deny);
            assert_eq!(shown.matches("Please type y or n").count(), 4);
        }
    }

    #[test]
    fn a_widening_lasts_only_where_that_is_offered() {
        let offer = |lasting| Offer::of(true, lasting);
        assert_eq!(answer(offer(true), &["s"]).0, Answer::AllowForSession);
        assert_eq!(answer(offer(false), &["s", "y"]).0, Answer::Allow);
        assert_eq!(answer(offer(true), &["\n", "n"]).0, Answer::Deny);
    }

    #[test]
    fn the_end_of_the_input_denies() {
        assert_eq!(answer(Offer::Once, &[]).0, Answer::Deny);
        assert_eq!(answer(Offer::Once, &["", ""]).0, Answer::Deny);
    }

    #[test]
    fn a_question_that_is_closed_denies() {
        let mut typist = Typist {
            typed: Vec::new(),
            answers: VecDeque::from([Line::Closed]),
        };
        assert_eq!(ask("Q", Offer::Once, &mut typist, |_| {}), Answer::Deny);
    }

    #[test]
    fn what_was_typed_before_the_question_answers_nothing() {
        let mut typist = Typist {
            typed: vec![Line::Text("y".into())],
            answers: VecDeque::from([Line::Text("n".into())]),
        };
        assert_eq!(ask("Q", Offer::Once, &mut typist, |_| {}), Answer::Deny);
    }
}
