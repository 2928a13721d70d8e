//! Reads one YAML file into a type. Faults of syntax, unknown keys and wrong types come back with file, line and key;
//! a file is taken whole or not at all.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_yaml::Value;

use super::{ConfigFault, ConfigFaults, REFERENCE, locate};

/// More than a configuration ever needs; a larger file is a mistake.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024;
/// The same for a project's file, which is anyone's: the reader's time grows with the square of how deep a text nests.
pub(crate) const MAX_PROJECT_BYTES: u64 = 64 * 1024;
/// Faults of one file that are named; who has more looks at the first ones first.
pub(super) const MOST_FAULTS: usize = 20;

/// The text of a configuration file, with the name that messages give it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Document<'a> {
    pub(crate) file: &'a Path,
    pub(crate) text: &'a str,
    /// Where its keys are described.
    pub(crate) help: &'static str,
}

/// The help for the person's and the project's file.
pub(crate) const REFERENCE_HELP: &str = "`floe config` prints every key with its values.";

impl Document<'_> {
    /// The keys and values as they stand, every key one that the reference has.
    pub(crate) fn parse<T: DeserializeOwned + Default>(&self) -> Result<T, ConfigFaults> {
        let value: Value = self.read()?;
        if value.is_null() {
            return Ok(T::default());
        }
        self.refuse_without_keys(&value)?;
        let reference: Value = serde_yaml::from_str(REFERENCE).unwrap_or_default();
        let mut faults = Vec::new();
        self.refuse_unknown(&value, &reference, &mut Vec::new(), &mut faults);
        if !faults.is_empty() {
            faults.sort_by_key(|fault| fault.line);
            return Err(ConfigFaults(faults));
        }
        self.read()
    }

    /// The text as a `T`, which knows its own keys.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigFaults> {
        serde_yaml::from_str(self.text).map_err(|error| self.typed(&error))
    }

    /// A fault of `key`, with its line.
    pub(crate) fn fault(
        &self,
        key: &[&str],
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> ConfigFault {
        ConfigFault {
            file: self.file.to_owned(),
            line: locate::line_of(self.text, key),
            key: key.join("."),
            reason: reason.into(),
            remedy: remedy.into(),
        }
    }

    /// A file holds keys with values, and nothing else.
    pub(crate) fn refuse_without_keys(&self, value: &Value) -> Result<(), ConfigFaults> {
        if value.is_mapping() {
            return Ok(());
        }
        let reason = "holds no keys with values.";
        Err(ConfigFault {
            line: Some(1),
            ..self.fault(&[], reason, "Write `key: value`, one a line.")
        }
        .into())
    }

    fn refuse_unknown<'v>(
        &self,
        value: &'v Value,
        reference: &Value,
        path: &mut Vec<&'v str>,
        faults: &mut Vec<ConfigFault>,
    ) {
        let (Value::Mapping(keys), Value::Mapping(known)) = (value, reference) else {
            // A value where a mapping belongs, or the other way round, is a fault of type; it has its own message.
            return;
        };
        if known.is_empty() && !path.is_empty() {
            // Its keys are names that the person chooses.
            return;
        }
        for (key, child) in keys {
            if faults.len() == MOST_FAULTS {
                return;
            }
            let Some(name) = key.as_str() else {
                let reason = format!("holds a key that is no text: {}", inline(key));
                faults.push(self.fault(path, reason, "Keys are words."));
                continue;
            };
            path.push(name);
            match known.get(name) {
                Some(known) => self.refuse_unknown(child, known, path, faults),
                None => {
                    let names: Vec<&str> = known.keys().filter_map(Value::as_str).collect();
                    faults.push(self.fault(
                        path,
                        "is no key of the configuration.",
                        suggestion(name, &names),
                    ));
                }
            }
            path.pop();
        }
    }

    /// A fault that the YAML reader found.
    fn typed(&self, error: &serde_yaml::Error) -> ConfigFaults {
        let location = error.location();
        let text = error.to_string();
        // The reader appends the place, which the fault names in its own way.
        let text = match &location {
            Some(place) => text
                .replace(
                    &format!(" at line {} column {}", place.line(), place.column()),
                    "",
                )
                .trim_end()
                .to_owned(),
            None => text,
        };
        if let Some(key) = text.split("duplicate entry with key ").nth(1) {
            let key = key.trim_matches('"').to_owned();
            return ConfigFault {
                file: self.file.to_owned(),
                line: locate::last_line_of(self.text, &key),
                key,
                reason: "stands there twice.".into(),
                remedy: "Keep one of the two.".into(),
            }
            .into();
        }
        let (key, reason) = match text.split_once(": ") {
            Some((key, reason)) if !key.contains(' ') => (key.to_owned(), reason.to_owned()),
            _ => (String::new(), text),
        };
        let line = location
            .as_ref()
            .map(serde_yaml::Location::line)
            .or_else(|| {
                let path: Vec<&str> = key.split('.').collect();
                locate::line_of(self.text, &path)
            });
        ConfigFault {
            file: self.file.to_owned(),
            line,
            reason: if key.is_empty() {
                reason
            } else {
                format!("is not understood: {reason}")
            },
            key,
            remedy: self.help.into(),
        }
        .into()
    }
}

/// What to write instead of a key that nobody knows.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> String {
    match near(name, known) {
        Some(near) => format!("Did you mean `{near}`?"),
        None => format!("Known here: {}.", known.join(", ")),
    }
}

/// The one of `known` that is written most like `name`, where one is like it at all.
pub(crate) fn near<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    known
        .iter()
        .map(|known| (strsim::normalized_damerau_levenshtein(name, known), *known))
        .filter(|(likeness, _)| *likeness >= 0.5)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, known)| known)
}

fn inline(value: &Value) -> String {
    serde_yaml::to_string(value)
        .unwrap_or_default()
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::{Expect, expect};

    use super::*;
    use crate::config::Config;

    fn faults(text: &str, expected: Expect) {
        let document = Document {
            file: Path::new("/home/ann/floe/config.yaml"),
            text,
            help: REFERENCE_HELP,
        };
        expected.assert_eq(&document.parse::<Config>().unwrap_err().to_string());
    }

    #[test]
    fn an_empty_file_is_the_default() {
        for text in ["", "# nothing\n", "---\n"] {
            let document = Document {
                file: Path::new("c"),
                text,
                help: REFERENCE_HELP,
            };
            assert_eq!(document.parse::<Config>().unwrap(), Config::default());
        }
    }

    #[test]
    fn an_unknown_key_names_line_and_near_name() {
        faults(
            "toolset: all\nshell:\n  limits:\n    pid: 3\nmodle: x\n",
            expect![[r#"
                /home/ann/floe/config.yaml:4: `shell.limits.pid` is no key of the configuration.
                  Did you mean `pids`?
                /home/ann/floe/config.yaml:5: `modle` is no key of the configuration.
                  Did you mean `model`?"#]],
        );
    }

    #[test]
    fn a_word_that_is_no_value_names_key_line_and_the_values() {
        faults(
            "\napprove: sometimes\n",
            expect![[r#"
            /home/ann/floe/config.yaml:2: `approve` is not understood: unknown variant `sometimes`, expected one of `allow-all`, `deny-all`, `read-only`, `always-ask`
              `floe config` prints every key with its values."#]],
        );
    }

    #[test]
    fn a_value_of_a_wrong_type_names_key_and_line() {
        faults(
            "shell:\n  limits:\n    pids: many\n",
            expect![[r#"
            /home/ann/floe/config.yaml:3: `shell.limits.pids` is not understood: invalid type: string "many", expected u32
              `floe config` prints every key with its values."#]],
        );
    }

    #[test]
    fn broken_yaml_names_the_line() {
        faults(
            "shell: [a\nmodel: x\n",
            expect![[r#"
            /home/ann/floe/config.yaml:2: did not find expected ',' or ']', while parsing a flow sequence at line 1 column 8
              `floe config` prints every key with its values."#]],
        );
    }

    #[test]
    fn a_key_that_stands_twice_is_refused() {
        faults(
            "max_turns: 1\nmax_turns: 2\n",
            expect![[r#"
            /home/ann/floe/config.yaml:2: `max_turns` stands there twice.
              Keep one of the two."#]],
        );
    }

    #[test]
    fn of_many_faults_the_first_twenty_are_named() {
        let mut text = String::new();
        for number in 0..4000 {
            text.push_str(&format!("key{number}: 1\n"));
        }
        let document = Document {
            file: Path::new("c"),
            text: &text,
            help: REFERENCE_HELP,
        };
        let ConfigFaults(faults) = document.parse::<Config>().unwrap_err();
        let lines: Vec<usize> = faults.iter().filter_map(|fault| fault.line).collect();
        assert_eq!(lines, (1..=MOST_FAULTS).collect::<Vec<_>>());
    }

    #[test]
    fn a_list_where_keys_belong_is_refused() {
        faults(
            "- model\n",
            expect![[r#"
                /home/ann/floe/config.yaml:1: holds no keys with values.
                  Write `key: value`, one a line."#]],
        );
    }
}
