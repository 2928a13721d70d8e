//! Values that no output and no record may hold: API keys, and what a vault gives to commands. Each is replaced by
//! `[redacted:NAME]` where text enters: in the output of a call before it is cut, kept and streamed, and in every message before it is
//! recorded. It never decides what a tool may read; it only keeps a value from being repeated.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use memchr::memmem;
use serde_json::Value;

/// Characters below which a value is too common to be a secret: `none` as the key of a local server would redact half of all text.
const SHORTEST: usize = 8;
/// Bytes that are looked through at a time when a file is copied.
const COPIED_AT_ONCE: u64 = 256 << 10;

/// The secrets of a host by name.
#[derive(Clone, Default)]
pub struct Secrets(Vec<Secret>);

#[derive(Clone)]
struct Secret {
    value: String,
    shown: String,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|secret| &secret.shown))
            .finish()
    }
}

impl Secrets {
    /// Keeps `value` out, under `name`. A value shorter than 8 characters is no secret.
    pub fn insert(&mut self, name: &str, value: &str) {
        if value.chars().count() < SHORTEST {
            return;
        }
        let escaped = Value::from(value).to_string();
        let escaped = &escaped[1..escaped.len() - 1];
        // In arguments and in programs' output a value may stand as JSON writes it.
        for form in [value, escaped] {
            if !self.0.iter().any(|secret| secret.value == form) {
                self.0.push(Secret {
                    value: form.to_owned(),
                    shown: format!("[redacted:{name}]"),
                });
            }
        }
        // Of two that begin alike the longer one is looked for first.
        self.0
            .sort_by_key(|secret| std::cmp::Reverse(secret.value.len()));
    }

    /// True where there is nothing to keep out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `text` without secrets.
    pub fn redact<'text>(&self, text: &'text str) -> Cow<'text, str> {
        let mut redacted = String::new();
        let mut rest = text;
        while let Some((at, secret)) = self.first_in(rest) {
            redacted.push_str(&rest[..at]);
            redacted.push_str(&secret.shown);
            rest = &rest[at + secret.value.len()..];
        }
        if redacted.is_empty() {
            return Cow::Borrowed(text);
        }
        redacted.push_str(rest);
        Cow::Owned(redacted)
    }

    /// Redacts every string of a JSON value, names of properties too. True where there was one to redact.
    pub fn redact_json(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => match self.redact(text) {
                Cow::Borrowed(_) => false,
                Cow::Owned(redacted) => {
                    *text = redacted;
                    true
                }
            },
            Value::Array(items) => items
                .iter_mut()
                .fold(false, |any, item| self.redact_json(item) | any),
            Value::Object(properties) => {
                let mut any = false;
                let mut redacted = serde_json::Map::new();
                for (name, mut value) in std::mem::take(properties) {
                    any |= self.redact_json(&mut value);
                    let shown = self.redact(&name);
                    any |= matches!(shown, Cow::Owned(_));
                    redacted.insert(shown.into_owned(), value);
                }
                *properties = redacted;
                any
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Copies bytes, which may be no text, without secrets. A read is as long as it pleases.
    pub(crate) fn copy_redacted(
        &self,
        mut from: impl Read,
        into: &mut impl Write,
    ) -> io::Result<()> {
        let longest = self.0.first().map_or(0, |secret| secret.value.len());
        let finders: Vec<_> = self
            .0
            .iter()
            .map(|secret| (memmem::Finder::new(&secret.value), secret))
            .collect();
        let mut held = Vec::new();
        loop {
            let before = held.len();
            (&mut from).take(COPIED_AT_ONCE).read_to_end(&mut held)?;
            let at_end = held.len() == before;
            let mut rest = &held[..];
            // Before this nothing can come that changes what is found.
            let settled = |rest: &[u8]| match at_end {
                true => rest.len(),
                false => (rest.len() + 1).saturating_sub(longest),
            };
            while let Some((at, secret)) = finders
                .iter()
                .filter_map(|(finder, secret)| Some((finder.find(rest)?, secret)))
                .min_by_key(|(at, _)| *at)
                .filter(|(at, _)| *at < settled(rest))
            {
                into.write_all(&rest[..at])?;
                into.write_all(secret.shown.as_bytes())?;
                rest = &rest[at + secret.value.len()..];
            }
            let settled = settled(rest).min(rest.len());
            into.write_all(&rest[..settled])?;
            let rest = held.len() - rest.len() + settled;
            held.drain(..rest);
            if at_end {
                return Ok(());
            }
        }
    }

    /// The secret that begins first, of those the longest.
    fn first_in(&self, text: &str) -> Option<(usize, &Secret)> {
        self.0
            .iter()
            .filter_map(|secret| Some((text.find(&secret.value)?, secret)))
            .min_by_key(|(at, _)| *at)
    }

    /// Where the end of `text` begins that may be the beginning of a secret.
    fn unfinished_from(&self, text: &str) -> usize {
        let longest = self.0.first().map_or(0, |secret| secret.value.len() - 1);
        let from = text.ceil_char_boundary(text.len().saturating_sub(longest));
        text[from..]
            .char_indices()
            .map(|(at, _)| from + at)
            .find(|at| {
                let end = &text[*at..];
                self.0.iter().any(|secret| secret.value.starts_with(end))
            })
            .unwrap_or(text.len())
    }
}

/// Redacts text that arrives in pieces: a secret is found wherever the pieces part it, and everything else goes on at once, but for an
/// end that may be the beginning of a secret, which waits for the piece after it.
#[derive(Debug)]
pub(crate) struct Redactor {
    secrets: Secrets,
    held: String,
}

impl Redactor {
    pub(crate) fn new(secrets: Secrets) -> Redactor {
        Redactor {
            secrets,
            held: String::new(),
        }
    }

    /// What of the text so far can go on.
    pub(crate) fn push<'text>(&mut self, text: &'text str) -> Cow<'text, str> {
        let secrets = &self.secrets;
        let settled =
            secrets.first_in(text).is_none() && secrets.unfinished_from(text) == text.len();
        if self.held.is_empty() && settled {
            return Cow::Borrowed(text);
        }
        let joined = std::mem::take(&mut self.held) + text;
        let (mut rest, mut redacted) = (joined.as_str(), String::new());
        loop {
            let unfinished = secrets.unfinished_from(rest);
            match secrets.first_in(rest) {
                // A longer one may begin where the text is unfinished; before that nothing can come that changes what is found.
                Some((at, secret)) if at < unfinished => {
                    redacted.push_str(&rest[..at]);
                    redacted.push_str(&secret.shown);
                    rest = &rest[at + secret.value.len()..];
                }
                _ => {
                    redacted.push_str(&rest[..unfinished]);
                    rest[unfinished..].clone_into(&mut self.held);
                    return Cow::Owned(redacted);
                }
            }
        }
    }

    /// What waits; it goes on where nothing comes after it.
    pub(crate) fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.secrets.redact(&held).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secrets() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.insert("KEY", "sk-aab-aabc");
        secrets.insert("LONGER", "sk-aab-aabcdef");
        secrets.insert("SHORT", "none");
        secrets.insert("QUOTED", "pass\"word");
        secrets
    }

    fn in_pieces(pieces: &[&str]) -> String {
        let mut redactor = Redactor::new(secrets());
        let mut text: String = pieces
            .iter()
            .map(|piece| redactor.push(piece).into_owned())
            .collect();
        text.push_str(&redactor.finish());
        text
    }

    #[test]
    fn a_secret_is_replaced_by_its_name_and_the_longer_of_two_wins() {
        assert_eq!(
            secrets().redact("a sk-aab-aabc b sk-aab-aabcdef"),
            "a [redacted:KEY] b [redacted:LONGER]"
        );
        assert!(matches!(secrets().redact("nothing"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_short_value_is_no_secret() {
        assert_eq!(secrets().redact("none"), "none");
    }

    #[test]
    fn a_secret_is_found_as_json_writes_it_and_in_every_string_of_a_value() {
        assert_eq!(
            secrets().redact(r#"{"p":"pass\"word"}"#),
            r#"{"p":"[redacted:QUOTED]"}"#
        );
        let mut value = serde_json::json!({"a": ["x", {"sk-aab-aabc": "pass\"word"}], "n": 1});
        assert!(secrets().redact_json(&mut value));
        assert_eq!(
            value,
            serde_json::json!({"a": ["x", {"[redacted:KEY]": "[redacted:QUOTED]"}], "n": 1})
        );
        assert!(!secrets().redact_json(&mut value));
    }

    #[test]
    fn a_secret_is_found_wherever_two_pieces_part_it() {
        let text = "é sk-aab-sk-aab-aabcdef sk-aab-aab";
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(
                in_pieces(&[&text[..at], &text[at..]]),
                "é sk-aab-[redacted:LONGER] sk-aab-aab",
                "at {at}"
            );
        }
    }

    #[test]
    fn text_that_cannot_become_a_secret_goes_on_at_once() {
        let mut redactor = Redactor::new(secrets());
        assert_eq!(redactor.push("line 1\n"), "line 1\n");
        assert_eq!(redactor.push("a sk"), "a ");
        assert_eq!(redactor.push("y"), "sky");
    }

    #[test]
    fn no_name_is_shown_with_its_value() {
        let shown = format!("{:?}", secrets());
        assert!(shown.contains("KEY") && !shown.contains("aab"), "{shown}");
    }

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_gives(pieces in prop::collection::vec("[sk\\-abcdef]{0,6}|sk-aab-aabc|sk-aab-", 0..12)) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let whole = pieces.concat();
            let joined = in_pieces(&pieces);
            prop_assert!(!joined.contains("sk-aab-aabc"), "{joined}");
            prop_assert_eq!(joined, secrets().redact(&whole).into_owned());
        }
    }
}
