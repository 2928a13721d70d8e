//! Colour, where there is a terminal that shows it and nobody asked for none.

use std::ffi::OsString;
use std::fmt::Display;

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Nothing special.
    Plain,
    /// The name of something.
    Name,
    /// What is said beside the matter.
    Quiet,
    /// It went well.
    Good,
    /// It did not.
    Bad,
    /// It needs a look.
    Warning,
}

/// Whether text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint {
    coloured: bool,
}

impl Paint {
    /// No colour at all.
    pub(crate) const PLAIN: Paint = Paint { coloured: false };

    /// Colour where `is_terminal` and neither `NO_COLOR` nor a dumb terminal forbids it.
    pub(crate) fn for_stream(is_terminal: bool) -> Paint {
        Paint::choose(is_terminal, |name| std::env::var_os(name))
    }

    fn choose(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> Paint {
        let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = variable("TERM").is_some_and(|value| value == "dumb");
        Paint {
            coloured: is_terminal && !refused && !dumb,
        }
    }

    /// `text` in the colour of `style`. The text must be safe to show already.
    pub(crate) fn paint(self, style: Style, text: impl Display) -> String {
        if !self.coloured || style == Style::Plain {
            return text.to_string();
        }
        let code = match style {
            Style::Plain => "0",
            Style::Name => "1",
            Style::Quiet => "2",
            Style::Good => "32",
            Style::Bad => "31",
            Style::Warning => "33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coloured(is_terminal: bool, variables: &[(&str, &str)]) -> bool {
        let variable = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| OsString::from(value))
        };
        Paint::choose(is_terminal, variable).coloured
    }

    #[test]
    fn colour_is_only_for_a_terminal_that_wants_it() {
        assert!(coloured(true, &[]));
        assert!(!coloured(false, &[]));
        assert!(!coloured(true, &[("NO_COLOR", "1")]));
        assert!(coloured(true, &[("NO_COLOR", "")]));
        assert!(!coloured(true, &[("TERM", "dumb")]));
    }

    #[test]
    fn plain_text_is_left_alone() {
        assert_eq!(Paint::PLAIN.paint(Style::Bad, "x"), "x");
    }
}
