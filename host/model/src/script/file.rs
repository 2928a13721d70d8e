//! The format of a script (design.md 6): YAML, and so JSON as well. Everything that the driver could trip over later is refused
//! here, with file, line and field.

use std::fmt;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};

/// A whole script.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What the model answers, request by request.
    pub(crate) turns: Vec<Turn>,
    /// The scripts of the child Sessions, in the order in which they are started.
    #[serde(default)]
    pub(crate) subagents: Vec<Script>,
}

/// One answer of the model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Turn {
    /// What it says.
    pub(crate) text: Option<String>,
    /// What it calls, after the text.
    #[serde(default)]
    pub(crate) tool_calls: Vec<Call>,
    /// What the outputs of the turn before must match, by position; null for anything.
    #[serde(default)]
    pub(crate) expect: Vec<Option<Pattern>>,
}

/// One tool call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    /// The tool.
    pub(crate) name: String,
    /// The argument text, exactly as it is sent.
    #[serde(default)]
    pub(crate) arguments: Arguments,
}

/// Written as a mapping, which becomes a JSON object, or as a string, which is sent as it is, valid or not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Arguments(pub(crate) String);

impl Default for Arguments {
    fn default() -> Self {
        Arguments("{}".into())
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Arguments, D::Error> {
        deserializer.deserialize_any(ArgumentsVisitor)
    }
}

struct ArgumentsVisitor;

impl<'de> Visitor<'de> for ArgumentsVisitor {
    type Value = Arguments;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping, or a string that is sent as it is")
    }

    fn visit_str<E: de::Error>(self, raw: &str) -> Result<Arguments, E> {
        Ok(Arguments(raw.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mapping: A) -> Result<Arguments, A::Error> {
        let object = serde_json::Map::deserialize(MapAccessDeserializer::new(mapping))?;
        Ok(Arguments(serde_json::Value::Object(object).to_string()))
    }
}

/// A regular expression that an output must contain a match of.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(pub(crate) Regex);

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pattern, D::Error> {
        deserializer.deserialize_str(PatternVisitor)
    }
}

/// Compiles inside the visitor, where an error gets its line.
struct PatternVisitor;

impl Visitor<'_> for PatternVisitor {
    type Value = Pattern;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a regular expression or null")
    }

    fn visit_str<E: de::Error>(self, pattern: &str) -> Result<Pattern, E> {
        Regex::new(pattern).map(Pattern).map_err(|error| {
            let reason = error.to_string();
            let last = reason.lines().last().unwrap_or_default();
            let last = last
                .trim_start_matches("error:")
                .trim()
                .trim_end_matches('.');
            E::custom(format!("`{pattern}` is no regular expression: {last}"))
        })
    }
}

/// A script that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {reason}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct ScriptError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
    /// The field and what is wrong with it.
    pub reason: String,
}

impl Script {
    /// Parses the text of a script; `path` is only for the message.
    ///
    /// # Errors
    ///
    /// A [`ScriptError`] that names file, line and field.
    pub fn parse(text: &str, path: &Path) -> Result<Script, ScriptError> {
        serde_yaml::from_str(text).map_err(|error| {
            let message = error.to_string();
            // The line stands before the message already.
            let reason = match message.rsplit_once(" at line ") {
                Some((reason, _)) if error.location().is_some() => reason.to_owned(),
                _ => message,
            };
            ScriptError {
                path: path.to_owned(),
                line: error.location().map(|location| location.line()),
                reason,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(text: &str) -> String {
        Script::parse(text, Path::new("demo.yaml"))
            .map(|_| ())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_script_is_turns_with_text_calls_and_expectations() {
        let script = Script::parse(
            "turns:\n\
             - text: Look first.\n  tool_calls:\n  - name: list\n    arguments: {path: src, depth: 2}\n  - name: exec_command\n    arguments: '{broken'\n  - name: list\n\
             - expect: ['main\\.rs', null]\n  text: Done.\n",
            Path::new("demo.yaml"),
        )
        .unwrap();
        let calls = &script.turns[0].tool_calls;
        assert_eq!(calls[0].arguments.0, r#"{"path":"src","depth":2}"#);
        assert_eq!(calls[1].arguments.0, "{broken");
        assert_eq!(calls[2].arguments.0, "{}");
        assert!(script.turns[1].expect[0].is_some() && script.turns[1].expect[1].is_none());
    }

    #[test]
    fn json_is_yaml_too() {
        let script = Script::parse(
            "{\n\t\"turns\": [{\"text\": \"hi\"}],\n\t\"subagents\": [{\"turns\": []}]\n}",
            Path::new("demo.json"),
        )
        .unwrap();
        assert_eq!(script.turns[0].text.as_deref(), Some("hi"));
        assert_eq!(script.subagents.len(), 1);
    }

    #[test]
    fn an_unknown_field_is_refused_with_file_line_and_field() {
        let message = refuse("turns:\n- text: a\n- txt: b\n");
        assert!(message.starts_with("demo.yaml:3: "), "{message}");
        assert!(
            message.contains("turns[1]") && message.contains("txt"),
            "{message}"
        );
        let message = refuse("turns: []\nturn: []\n");
        assert!(
            message.starts_with("demo.yaml:2: ") && message.contains("turn"),
            "{message}"
        );
    }

    #[test]
    fn a_field_of_a_wrong_type_is_refused_with_file_line_and_field() {
        let message = refuse("turns:\n- tool_calls:\n  - name: list\n    arguments: [1]\n");
        assert!(message.starts_with("demo.yaml:4: "), "{message}");
        assert!(
            message.contains("turns[0].tool_calls[0].arguments"),
            "{message}"
        );
        let message = refuse("turns:\n- text: [a]\n");
        assert!(message.contains("turns[0].text"), "{message}");
    }

    #[test]
    fn a_pattern_that_is_no_regular_expression_is_refused_with_file_line_and_field() {
        let message = refuse("turns:\n- text: a\n- expect:\n  - null\n  - 'a('\n");
        assert!(message.starts_with("demo.yaml:5: "), "{message}");
        assert!(
            message.contains("expect[1]") && message.contains("`a(`"),
            "{message}"
        );
    }

    #[test]
    fn a_call_without_a_name_and_a_file_without_turns_are_refused() {
        assert!(refuse("turns:\n- tool_calls: [{arguments: {}}]\n").contains("name"));
        assert!(refuse("subagents: []\n").contains("turns"));
        assert!(refuse("").contains("demo.yaml"));
        assert!(refuse("turns: [\n").starts_with("demo.yaml:"));
    }
}
