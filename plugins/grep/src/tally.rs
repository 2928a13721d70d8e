//! What was passed over, and why. Pure.

/// Files that were not searched, by reason.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) binary: u64,
    pub(crate) too_large: u64,
    pub(crate) not_text: u64,
    pub(crate) hidden: u64,
    pub(crate) special: u64,
    pub(crate) unreadable: u64,
}

impl Tally {
    /// Counts what the host could not hand over, by its code.
    pub(crate) fn add_failure(&mut self, code: &str) {
        match code {
            "too-large" => self.too_large += 1,
            "denied" => self.hidden += 1,
            "not-a-file" => self.special += 1,
            _ => self.unreadable += 1,
        }
    }

    /// `[skipped: 2 binary, 1 larger than 5 MiB]`; none where nothing was.
    pub(crate) fn note(&self) -> Option<String> {
        let counts = [
            (self.binary, "binary"),
            (self.too_large, "larger than 5 MiB"),
            (self.not_text, "not UTF-8"),
            (self.hidden, "not allowed to be read"),
            (self.special, "no regular file"),
            (self.unreadable, "unreadable"),
        ];
        let told: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, reason)| format!("{count} {reason}"))
            .collect();
        (!told.is_empty()).then(|| format!("[skipped: {}]", told.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_and_nothing_is_said_of_nothing() {
        let mut tally = Tally::default();
        assert_eq!(tally.note(), None);
        tally.binary = 2;
        for code in ["too-large", "denied", "not-a-file", "io", "not-found"] {
            tally.add_failure(code);
        }
        assert_eq!(
            tally.note().unwrap(),
            "[skipped: 2 binary, 1 larger than 5 MiB, 1 not allowed to be read, 1 no regular file, 2 unreadable]"
        );
    }
}
