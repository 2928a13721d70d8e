//! Which programs are language servers, and for which files: what the operator says, and what is known without it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The servers by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings(pub BTreeMap<String, ServerSetting>);

/// One server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSetting {
    /// Whether it may be used.
    pub enabled: bool,
    /// The program, a name that is looked for on PATH or an absolute path, and its arguments.
    pub command: Vec<String>,
    /// The languages as the protocol names them, each with how its files' names end, without the dot.
    pub languages: BTreeMap<String, Vec<String>>,
    /// Files that stand in the root of a project of this kind. The nearest folder above a file that holds one is told to the server.
    pub root_markers: Vec<String>,
    /// What the server is told when it asks how it is set up: keys with dots, as its manual names them, and their values.
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// How long it runs without a question; the default of all servers where none.
    pub idle: Option<Duration>,
}

/// What the operator says of a server by its name: whatever is not said stays as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerEntry {
    /// As [`ServerSetting::enabled`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// As [`ServerSetting::command`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// As [`ServerSetting::languages`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub languages: Option<BTreeMap<String, Vec<String>>>,
    /// As [`ServerSetting::root_markers`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_markers: Option<Vec<String>>,
    /// As [`ServerSetting::settings`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<serde_json::Map<String, serde_json::Value>>,
    /// Seconds after which a server that nobody asks is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<u64>,
}

impl ServerSetting {
    fn known(
        command: &[&str],
        languages: &[(&str, &[&str])],
        root_markers: &[&str],
    ) -> ServerSetting {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let languages = languages.iter();
        ServerSetting {
            enabled: true,
            command: texts(command),
            languages: languages
                .map(|(language, endings)| ((*language).to_owned(), texts(endings)))
                .collect(),
            root_markers: texts(root_markers),
            settings: serde_json::Map::new(),
            idle: None,
        }
    }

    /// Takes over what is said of it.
    ///
    /// # Errors
    ///
    /// It then could not be started, or is a server for nothing.
    fn apply(&mut self, entry: &ServerEntry) -> Result<(), &'static str> {
        fn set<T: Clone>(place: &mut T, said: &Option<T>) {
            if let Some(said) = said {
                place.clone_from(said);
            }
        }
        set(&mut self.enabled, &entry.enabled);
        set(&mut self.command, &entry.command);
        set(&mut self.languages, &entry.languages);
        set(&mut self.root_markers, &entry.root_markers);
        set(&mut self.settings, &entry.settings);
        self.idle = entry.idle_s.map(Duration::from_secs).or(self.idle);
        let program = self.program();
        let is_place = program.contains('/');
        let endings = self.languages.values().flatten();
        match () {
            () if program.is_empty() => Err("names no `command`."),
            () if is_place && !program.starts_with('/') => {
                Err("has a `command` that is neither a name nor an absolute path.")
            }
            () if self.languages.is_empty() => Err("is for no `languages`."),
            () if { endings }.any(|ending| ending.is_empty() || ending.starts_with('.')) => {
                Err("has an ending of names that is empty or starts with a dot.")
            }
            () => Ok(()),
        }
    }

    /// The program that is looked for.
    pub(crate) fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    /// The language of a file with this name; the longest ending wins.
    fn language_of(&self, name: &str) -> Option<(&str, usize)> {
        let languages = self.languages.iter();
        languages
            .flat_map(|(language, endings)| endings.iter().map(move |ending| (language, ending)))
            .filter(|(_, ending)| {
                let stem = name.strip_suffix(ending.as_str());
                stem.is_some_and(|stem| stem.ends_with('.') && stem.len() > 1)
            })
            .map(|(language, ending)| (language.as_str(), ending.len()))
            .max_by_key(|(_, length)| *length)
    }

    /// The value of a section such as `python.analysis`: what stands there, or the keys below it.
    pub(crate) fn section(&self, section: &str) -> serde_json::Value {
        use serde_json::{Map, Value};
        if let Some(value) = self.settings.get(section) {
            return value.clone();
        }
        let prefix = if section.is_empty() {
            String::new()
        } else {
            format!("{section}.")
        };
        let mut found = Map::new();
        for (key, value) in &self.settings {
            let Some(rest) = key.strip_prefix(&prefix) else {
                continue;
            };
            let mut place = &mut found;
            let mut parts: Vec<&str> = rest.split('.').collect();
            let last = parts.pop().unwrap_or_default();
            for part in parts {
                let next = place
                    .entry(part)
                    .or_insert_with(|| Value::Object(Map::new()));
                if !next.is_object() {
                    *next = Value::Object(Map::new());
                }
                match next {
                    Value::Object(next) => place = next,
                    _ => return Value::Null,
                }
            }
            place.insert(last.to_owned(), value.clone());
        }
        match found.is_empty() {
            true => Value::Null,
            false => Value::Object(found),
        }
    }
}

impl Default for ServerSettings {
    /// The servers that are known without a word of the operator.
    fn default() -> ServerSettings {
        let known = ServerSetting::known;
        let script: &[(&str, &[&str])] = &[
            ("javascript", &["js", "mjs", "cjs"]),
            ("javascriptreact", &["jsx"]),
            ("typescript", &["ts", "mts", "cts"]),
            ("typescriptreact", &["tsx"]),
        ];
        let families: &[(&str, &[&str])] = &[
            ("c", &["c", "h"]),
            ("cpp", &["cc", "cpp", "cxx", "hh", "hpp", "hxx", "ipp"]),
            ("objective-c", &["m"]),
            ("objective-cpp", &["mm"]),
        ];
        let servers = [
            (
                "clangd",
                known(
                    &["clangd", "--log=error"],
                    families,
                    &["compile_commands.json", "compile_flags.txt", ".clangd"],
                ),
            ),
            (
                "gopls",
                known(&["gopls"], &[("go", &["go"])], &["go.work", "go.mod"]),
            ),
            (
                "pyright",
                known(
                    &["pyright-langserver", "--stdio"],
                    &[("python", &["py", "pyi"])],
                    &[
                        "pyrightconfig.json",
                        "pyproject.toml",
                        "setup.py",
                        "setup.cfg",
                    ],
                ),
            ),
            (
                "rust-analyzer",
                known(
                    &["rust-analyzer"],
                    &[("rust", &["rs"])],
                    &["Cargo.toml", "rust-project.json"],
                ),
            ),
            (
                "typescript-language-server",
                known(
                    &["typescript-language-server", "--stdio"],
                    script,
                    &["tsconfig.json", "jsconfig.json", "package.json"],
                ),
            ),
        ];
        let servers = servers.into_iter();
        ServerSettings(servers.map(|(name, one)| (name.to_owned(), one)).collect())
    }
}

/// A server that can be asked about a file, and the language that the file has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) name: String,
    pub(crate) language: String,
}

impl ServerSettings {
    /// The known servers as the operator changes them, and further ones.
    ///
    /// # Errors
    ///
    /// The name of an entry that makes no server, and why.
    pub fn with(
        entries: &BTreeMap<String, ServerEntry>,
    ) -> Result<ServerSettings, (String, String)> {
        let mut settings = ServerSettings::default();
        for (name, entry) in entries {
            let fault = |reason: &str| (name.clone(), reason.to_owned());
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if name.is_empty() || name.starts_with('.') || !name.chars().all(is_name) {
                return Err(fault("is no name: use letters, digits, `-`, `_` and `.`."));
            }
            let known = settings.0.entry(name.clone());
            let setting = known.or_insert_with(|| ServerSetting {
                enabled: true,
                ..ServerSetting::default()
            });
            setting.apply(entry).map_err(fault)?;
        }
        Ok(settings)
    }

    /// The servers for a file, in the order of their names: those of `language` where it is given, else those that the end of the file's
    /// name leads to.
    pub(crate) fn choose(&self, file: &str, language: Option<&str>) -> Vec<Chosen> {
        let name = file.rsplit('/').next().unwrap_or(file);
        let servers = self.0.iter().filter(|(_, server)| server.enabled);
        let mut found: Vec<(usize, Chosen)> = servers
            .filter_map(|(server, setting)| {
                let (language, length) = match language {
                    Some(language) => setting
                        .languages
                        .keys()
                        .find(|known| known.eq_ignore_ascii_case(language))
                        .map(|known| (known.as_str(), 0))?,
                    None => setting.language_of(name)?,
                };
                let chosen = Chosen {
                    name: server.clone(),
                    language: language.to_owned(),
                };
                Some((length, chosen))
            })
            .collect();
        found.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        found.into_iter().map(|(_, chosen)| chosen).collect()
    }

    /// All languages of servers that may be used, sorted.
    pub(crate) fn languages(&self) -> Vec<&str> {
        let servers = self.0.values().filter(|server| server.enabled);
        let mut languages: Vec<&str> = servers
            .flat_map(|server| server.languages.keys().map(String::as_str))
            .collect();
        languages.sort_unstable();
        languages.dedup();
        languages
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chosen(file: &str, language: Option<&str>) -> Vec<String> {
        let found = ServerSettings::default().choose(file, language);
        let words = found.into_iter();
        words
            .map(|chosen| format!("{} {}", chosen.name, chosen.language))
            .collect()
    }

    #[test]
    fn a_file_leads_to_its_server_by_the_end_of_its_name() {
        for (file, expected) in [
            ("src/main.rs", "rust-analyzer rust"),
            ("a/b.tsx", "typescript-language-server typescriptreact"),
            ("x.h", "clangd c"),
            ("x.hpp", "clangd cpp"),
            ("pkg/types.pyi", "pyright python"),
            ("main.go", "gopls go"),
        ] {
            assert_eq!(chosen(file, None), [expected], "{file}");
        }
        for file in ["rs", ".rs", "README", "a.b/rs", "a.zig"] {
            assert!(chosen(file, None).is_empty(), "{file}");
        }
    }

    #[test]
    fn a_language_that_is_named_wins_over_the_name_of_the_file() {
        assert_eq!(chosen("script", Some("Python")), ["pyright python"]);
        assert_eq!(chosen("x.h", Some("cpp")), ["clangd cpp"]);
        assert!(chosen("x.rs", Some("zig")).is_empty());
    }

    #[test]
    fn a_server_that_is_switched_off_is_not_chosen() {
        let mut settings = ServerSettings::default();
        settings.0.get_mut("gopls").unwrap().enabled = false;
        assert!(settings.choose("main.go", None).is_empty());
        assert!(!settings.languages().contains(&"go"));
    }

    #[test]
    fn what_is_said_of_a_server_changes_that_alone_and_a_new_one_needs_all() {
        let with = |text: &str| {
            let entries = serde_json::from_str(text).unwrap();
            ServerSettings::with(&entries).map_err(|(name, reason)| format!("{name} {reason}"))
        };
        let settings = with(
            r#"{"gopls": {"enabled": false}, "pyright": {"command": ["/opt/p", "x"], "idle_s": 9},
                "zls": {"command": ["zls"], "languages": {"zig": ["zig"]}}}"#,
        )
        .unwrap();
        assert!(settings.choose("a.go", None).is_empty());
        assert_eq!(settings.choose("a.zig", None)[0].name, "zls");
        let pyright = &settings.0["pyright"];
        assert_eq!(pyright.program(), "/opt/p");
        assert_eq!(pyright.idle, Some(Duration::from_secs(9)));
        assert_eq!(settings.choose("a.py", None)[0].name, "pyright");
        for (text, fault) in [
            (
                r#"{"zls": {"languages": {"zig": ["zig"]}}}"#,
                "zls names no `command`.",
            ),
            (
                r#"{"zls": {"command": ["zls"]}}"#,
                "zls is for no `languages`.",
            ),
            (
                r#"{"gopls": {"command": ["./gopls"]}}"#,
                "gopls has a `command` that is neither a name nor an absolute path.",
            ),
            (
                r#"{"../x": {"enabled": false}}"#,
                "../x is no name: use letters, digits, `-`, `_` and `.`.",
            ),
            (
                r#"{"gopls": {"languages": {"go": [".go"]}}}"#,
                "gopls has an ending of names that is empty or starts with a dot.",
            ),
        ] {
            assert_eq!(with(text).unwrap_err(), fault);
        }
    }

    #[test]
    fn a_server_is_told_of_its_settings_by_their_sections() {
        let setting = ServerSetting {
            settings: serde_json::from_value(json!({
                "python.analysis.typeCheckingMode": "strict", "python.pythonPath": "x", "other": 1,
            }))
            .unwrap(),
            ..ServerSetting::default()
        };
        assert_eq!(
            setting.section("python"),
            json!({"analysis": {"typeCheckingMode": "strict"}, "pythonPath": "x"})
        );
        assert_eq!(
            setting.section("python.analysis"),
            json!({"typeCheckingMode": "strict"})
        );
        assert_eq!(setting.section("other"), json!(1));
        assert_eq!(setting.section("nothing"), json!(null));
        assert!(setting.section("").is_object());
    }
}
