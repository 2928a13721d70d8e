//! From an answer to what the model reads.

use floe_tool::Outcome;
use floe_tool::language_server::{Location, QueryAnswer};

use crate::question::Kind;

/// The places a line each, or the text.
pub(crate) fn outcome(kind: Kind, answer: &QueryAnswer) -> Outcome {
    let is_text = matches!(kind, Kind::Hover | Kind::Completion);
    let (text, note) = match &answer.text {
        Some(text) if is_text => (text.clone(), None),
        note => (places(&answer.locations), note.as_ref()),
    };
    let text = if text.is_empty() {
        nothing(kind).to_owned()
    } else {
        text
    };
    let outcome = Outcome::text(text);
    match note {
        Some(note) => outcome.with_note(format!("[{note}]")),
        None => outcome,
    }
}

fn places(locations: &[Location]) -> String {
    let lines: Vec<String> = locations.iter().map(place).collect();
    lines.join("\n")
}

fn place(location: &Location) -> String {
    let start = &location.start;
    let place = format!("{}:{}:{}", location.path, start.line, start.character);
    match &location.text {
        Some(text) => format!("{place}: {text}"),
        None => place,
    }
}

/// What an empty answer means.
fn nothing(kind: Kind) -> &'static str {
    match kind {
        Kind::Definition => "No definition found.",
        Kind::References => "No references found.",
        Kind::Hover => "Nothing is known about this.",
        Kind::Completion => "Nothing to complete here.",
        Kind::DocumentSymbols => "The file defines nothing.",
        Kind::WorkspaceSymbols => "No such symbol found.",
        Kind::Diagnostics => "No problems found.",
    }
}

#[cfg(test)]
mod tests {
    use floe_tool::language_server::Position;

    use super::*;

    fn location(path: &str, text: Option<&str>) -> Location {
        let position = Position {
            line: 3,
            character: 9,
        };
        Location {
            path: path.into(),
            start: position,
            end: position,
            text: text.map(Into::into),
        }
    }

    #[test]
    fn places_are_lines_with_what_stands_there() {
        let answer = QueryAnswer {
            locations: vec![
                location("a.c", Some("int x;")),
                location("b.h (outside the Workspace)", None),
            ],
            text: Some("the first 2 of 9 places".into()),
        };
        let outcome = outcome(Kind::References, &answer);
        assert_eq!(
            outcome.last_text(),
            Some("a.c:3:9: int x;\nb.h (outside the Workspace):3:9")
        );
        assert_eq!(outcome.note(), Some("[the first 2 of 9 places]"));
    }

    #[test]
    fn a_hover_is_its_text_and_an_empty_answer_says_so() {
        let hover = QueryAnswer {
            locations: Vec::new(),
            text: Some("int x".into()),
        };
        assert_eq!(outcome(Kind::Hover, &hover).last_text(), Some("int x"));
        let none = QueryAnswer {
            locations: Vec::new(),
            text: None,
        };
        let said = outcome(Kind::Diagnostics, &none);
        assert_eq!(said.last_text(), Some("No problems found."));
        assert!(said.is_completed() && said.note().is_none());
    }
}
