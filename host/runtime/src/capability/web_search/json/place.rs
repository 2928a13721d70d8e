//! Finds what stands at a place in JSON of somebody else's making without building the rest of it: a few million brackets are many
//! times their size once they are values. Nothing here recurses. Pure.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The value at a place, which is names of members and numbers of entries with dots between them; the whole for an empty one.
pub(super) fn at<'v>(value: &'v RawValue, place: &str) -> Option<&'v RawValue> {
    let mut names = place.split('.').filter(|name| !name.is_empty());
    names.try_fold(value, |value, name| read(value, Member(name))?)
}

/// The first entries of a list, at most so many; none where it is no list.
pub(super) fn entries(value: &RawValue, most: usize) -> Option<Vec<&RawValue>> {
    read(value, Entries(most))?
}

/// A text, or a number as it is written.
pub(super) fn text(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok(),
        b'-' | b'0'..=b'9' => Some(value.get().to_owned()),
        _ => None,
    }
}

fn read<'v, V: Visitor<'v>>(value: &'v RawValue, visitor: V) -> Option<V::Value> {
    // Only these two are looked into.
    let opens = |text: &str| text.starts_with(['{', '[']);
    let mut reader = serde_json::Deserializer::from_str(value.get());
    opens(value.get())
        .then(|| reader.deserialize_any(visitor).ok())
        .flatten()
}

/// A name, as it is read where it holds nothing to be decoded.
#[derive(serde::Deserialize)]
struct Name<'v>(#[serde(borrow)] Cow<'v, str>);

/// Looks for the member of that name, or the entry of that number.
struct Member<'n>(&'n str);

impl<'v> Visitor<'v> for Member<'_> {
    type Value = Option<&'v RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_map<M: MapAccess<'v>>(self, mut members: M) -> Result<Self::Value, M::Error> {
        let mut found = None;
        while let Some(Name(name)) = members.next_key()? {
            if name == self.0 {
                found = Some(members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<S: SeqAccess<'v>>(self, mut entries: S) -> Result<Self::Value, S::Error> {
        let wanted: Option<usize> = self.0.parse().ok();
        let (mut found, mut number) = (None, 0);
        loop {
            if Some(number) == wanted {
                found = entries.next_element()?;
            } else if entries.next_element::<IgnoredAny>()?.is_none() {
                return Ok(found);
            }
            number += 1;
        }
    }
}

/// Takes the first entries.
struct Entries(usize);

impl<'v> Visitor<'v> for Entries {
    type Value = Option<Vec<&'v RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<M: MapAccess<'v>>(self, mut members: M) -> Result<Self::Value, M::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_seq<S: SeqAccess<'v>>(self, mut entries: S) -> Result<Self::Value, S::Error> {
        let mut first = Vec::new();
        while first.len() < self.0 {
            match entries.next_element()? {
                Some(entry) => first.push(entry),
                None => return Ok(Some(first)),
            }
        }
        while entries.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: impl Into<String>) -> Box<RawValue> {
        RawValue::from_string(text.into()).unwrap()
    }

    fn found(answer: &str, place: &str) -> Option<String> {
        at(&raw(answer), place).map(|value| value.get().to_owned())
    }

    #[test]
    fn a_value_is_found_by_names_and_numbers() {
        let answer = r#" {"a": {"b": [1, {"c": "x"}]}, "\u0064": 2, "e": 3, "e": 4} "#;
        for (place, value) in [
            ("a.b.0", Some("1")),
            ("a.b.1.c", Some("\"x\"")),
            ("a..b.1", Some("{\"c\": \"x\"}")),
            ("d", Some("2")),
            ("e", Some("4")),
            ("a.b.2", None),
            ("a.b.x", None),
            ("a.b.0.c", None),
            ("f", None),
        ] {
            assert_eq!(found(answer, place).as_deref(), value, "{place}");
        }
        assert_eq!(found("7", ""), Some("7".into()));
    }

    #[test]
    fn a_text_is_decoded_and_a_number_is_as_it_is_written() {
        for (value, expected) in [
            (r#""a\n\u00e9""#, Some("a\né")),
            ("-1.50", Some("-1.50")),
            ("1e999", Some("1e999")),
            ("null", None),
            ("true", None),
            ("[]", None),
            ("{}", None),
            // Half of a character.
            (r#""\ud800""#, None),
        ] {
            assert_eq!(text(&raw(value)).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn entries_are_taken_from_a_list_alone_and_no_more_than_asked_for() {
        assert_eq!(entries(&raw("[1, 2, 3]"), 2).unwrap().len(), 2);
        assert_eq!(entries(&raw("[]"), 2).unwrap().len(), 0);
        for none in ["{\"a\": 1}", "1", "null", "\"[]\""] {
            assert!(entries(&raw(none), 2).is_none(), "{none}");
        }
    }

    #[test]
    fn nests_of_any_depth_are_passed_over_and_looked_through() {
        let depth = 500_000;
        let nest = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let answer = format!("{{\"deep\": {nest}, \"results\": [{nest}, 1]}}");
        assert_eq!(found(&answer, "results.1").as_deref(), Some("1"));
        let objects = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(found(&objects, "a.a.a").is_some());
    }
}
