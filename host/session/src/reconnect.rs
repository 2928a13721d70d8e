//! When a failed model request is made again (decisions.md "The loop"), and in which words the loop gives up.

use std::time::Duration;

use floe_model::{ModelError, ModelErrorKind};

/// How often a request is made again.
pub(crate) const MAX_RECONNECTS: u32 = 5;
const FIRST_DELAY: Duration = Duration::from_secs(2);
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// The wait before reconnect `number`, from 1: two seconds, doubled each time, at most thirty.
fn delay(number: u32) -> Duration {
    FIRST_DELAY
        .saturating_mul(1 << number.saturating_sub(1).min(16))
        .min(LONGEST_DELAY)
}

/// The wait before the next attempt after `attempt` failed; none where there is no next one.
pub(crate) fn wait_after(attempt: u32, error: &ModelError) -> Option<Duration> {
    (error.is_retryable() && attempt <= MAX_RECONNECTS).then(|| delay(attempt))
}

/// Why the run ends, in the words of spec/environment.md 1.10.
pub(crate) fn reason_to_stop(error: &ModelError) -> String {
    let message = &error.message;
    if !error.is_retryable() {
        return format!("llm request error: {message}");
    }
    match error.kind {
        ModelErrorKind::Timeout => format!("reconnect failed after {MAX_RECONNECTS} retries"),
        ModelErrorKind::Malformed => {
            format!("malformed response failed after {MAX_RECONNECTS} retries")
        }
        _ => format!("llm request failed after {MAX_RECONNECTS} retries: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: ModelErrorKind) -> ModelError {
        ModelError::new(kind, "why")
    }

    #[test]
    fn five_reconnects_wait_from_two_seconds_doubling_to_thirty() {
        let timeout = error(ModelErrorKind::Timeout);
        let waits: Vec<Option<u64>> = (1..=6)
            .map(|attempt| wait_after(attempt, &timeout).map(|wait| wait.as_secs()))
            .collect();
        assert_eq!(waits, [Some(2), Some(4), Some(8), Some(16), Some(30), None]);
    }

    #[test]
    fn authentication_and_permanent_errors_are_not_tried_again() {
        assert_eq!(wait_after(1, &error(ModelErrorKind::Auth)), None);
        assert_eq!(
            wait_after(1, &error(ModelErrorKind::Failed).permanent()),
            None
        );
        assert!(wait_after(1, &error(ModelErrorKind::Failed)).is_some());
        assert!(wait_after(1, &error(ModelErrorKind::Malformed)).is_some());
    }

    #[test]
    fn the_loop_gives_up_in_the_words_of_the_contract() {
        for (error, words) in [
            (error(ModelErrorKind::Auth), "llm request error: why"),
            (
                error(ModelErrorKind::Timeout),
                "reconnect failed after 5 retries",
            ),
            (
                error(ModelErrorKind::Malformed),
                "malformed response failed after 5 retries",
            ),
            (
                error(ModelErrorKind::Failed),
                "llm request failed after 5 retries: why",
            ),
        ] {
            assert_eq!(reason_to_stop(&error), words);
        }
    }
}
