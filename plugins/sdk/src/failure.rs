//! Why a host function did not do what was asked, or why a tool could not do its work at all.

pub use crate::bindings::floe::tool::types::Failure;

impl Failure {
    /// A failure with a code from the documented list (`not-found`, `denied`, `io`, ...) and a sentence for the model.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Failure {
        Failure {
            code: code.into(),
            message: message.into(),
            hint: None,
            retryable: false,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Says that the same call may succeed later.
    #[must_use]
    pub fn retryable(mut self) -> Failure {
        self.retryable = true;
        self
    }

    /// The message and, where there is one, the hint after it: what a tool shows to the model.
    pub fn explanation(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{} {hint}", self.message),
            None => self.message.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_is_the_message_and_then_the_hint() {
        let failure = Failure::new("not-found", "There is no a.txt.");
        assert_eq!(failure.explanation(), "There is no a.txt.");
        assert_eq!(
            failure.with_hint("Did you mean b.txt?").explanation(),
            "There is no a.txt. Did you mean b.txt?"
        );
    }
}
