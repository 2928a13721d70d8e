//! The syntax of git's configuration files, as git reads it: sections with and without a second name, values over several
//! lines, quotes, escapes and comments.

use std::iter::Peekable;
use std::str::Chars;

/// One line of a configuration file, however many lines it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// In small letters.
    pub(crate) section: String,
    /// The second name of the section, as written.
    pub(crate) subsection: Option<String>,
    /// In small letters.
    pub(crate) key: String,
    pub(crate) value: String,
}

impl Setting {
    /// The name as git prints it, with the part that may hold anything quoted and bounded.
    pub(crate) fn name(&self) -> String {
        const LONGEST: usize = 60;
        let Setting {
            section,
            subsection,
            key,
            ..
        } = self;
        let bounded = |text: &str| text.chars().take(LONGEST).collect::<String>();
        match subsection {
            Some(subsection) => format!(
                "{}.{:?}.{}",
                bounded(section),
                bounded(subsection),
                bounded(key)
            ),
            None => format!("{}.{}", bounded(section), bounded(key)),
        }
    }
}

/// All settings of a file.
pub(super) fn settings(text: &str) -> Vec<Setting> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n");
    let mut reader = Reader {
        rest: text.chars().peekable(),
        section: String::new(),
        subsection: None,
    };
    let mut settings = Vec::new();
    while let Some(character) = reader.rest.next() {
        match character {
            '[' => reader.header(),
            '#' | ';' => reader.skip_line(),
            character if character.is_ascii_alphabetic() => {
                settings.push(reader.setting(character));
            }
            _ => {}
        }
    }
    settings
}

struct Reader<'t> {
    rest: Peekable<Chars<'t>>,
    section: String,
    subsection: Option<String>,
}

impl Reader<'_> {
    fn skip_line(&mut self) {
        while self.rest.next().is_some_and(|character| character != '\n') {}
    }

    fn header(&mut self) {
        let mut section = String::new();
        let mut subsection = None;
        while let Some(character) = self.rest.next() {
            match character {
                ']' | '\n' => break,
                '"' => subsection = Some(self.quoted_name()),
                character if character.is_whitespace() => {}
                character => section.push(character.to_ascii_lowercase()),
            }
        }
        // The old form: `[section.subsection]`.
        if subsection.is_none()
            && let Some((name, sub)) = section.split_once('.')
        {
            subsection = Some(sub.to_owned());
            section = name.to_owned();
        }
        (self.section, self.subsection) = (section, subsection);
    }

    fn quoted_name(&mut self) -> String {
        let mut name = String::new();
        while let Some(character) = self.rest.next() {
            match character {
                '"' | '\n' => break,
                '\\' => name.extend(self.rest.next()),
                other => name.push(other),
            }
        }
        name
    }

    fn setting(&mut self, first: char) -> Setting {
        let mut key = first.to_ascii_lowercase().to_string();
        let is_key = |character: &char| character.is_ascii_alphanumeric() || *character == '-';
        while let Some(character) = self.rest.next_if(is_key) {
            key.push(character.to_ascii_lowercase());
        }
        while self.rest.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
        // A key alone means true.
        let value = match self.rest.next_if_eq(&'=') {
            Some(_) => self.value(),
            None => "true".to_owned(),
        };
        Setting {
            section: self.section.clone(),
            subsection: self.subsection.clone(),
            key,
            value,
        }
    }

    fn value(&mut self) -> String {
        let mut value = String::new();
        let mut quoted = false;
        // How much of the value is more than white space at its end.
        let mut kept = 0;
        while let Some(character) = self.rest.next() {
            match character {
                '\n' => break,
                '"' => quoted = !quoted,
                '\\' => match self.rest.next() {
                    Some('\n') | None => {}
                    Some('n') => value.push('\n'),
                    Some('t') => value.push('\t'),
                    Some(other) => value.push(other),
                },
                '#' | ';' if !quoted => {
                    self.skip_line();
                    break;
                }
                ' ' | '\t' if !quoted && value.is_empty() => {}
                other => value.push(other),
            }
            if quoted || !value.ends_with([' ', '\t']) {
                kept = value.len();
            }
        }
        value.truncate(kept);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let settings = settings(text).into_iter();
        settings
            .map(|setting| format!("{}={:?}", setting.name(), setting.value))
            .collect()
    }

    #[test]
    fn files_are_read_as_git_reads_them() {
        let text = "\u{feff}; comment\n[a]\r\nx = 1\r\n  y\n[B \"c]\\\"d\"] Z-2 = \" p \" q # no\n[s.Sub]\nk = v \\\n  w\n# [no]\nl =\n";
        assert_eq!(
            all(text),
            [
                r#"a.x="1""#,
                r#"a.y="true""#,
                r#"b."c]\"d".z-2=" p  q""#,
                r#"s."sub".k="v   w""#,
                r#"s."sub".l="""#,
            ]
        );
    }

    #[test]
    fn what_is_no_configuration_is_read_without_end_or_panic() {
        for odd in [
            "[",
            "[\"",
            "a=\\",
            "a=\"",
            "[a\nb=c",
            "\\\"]=",
            "é=è\n[ü]k=ß",
        ] {
            let _ = all(odd);
        }
    }
}
