//! The name and e-mail of the person's git configuration, for commits that a command makes. The files are read here
//! rather than asked of `git`, so that nothing runs as the person outside the sandbox; `include` directives are
//! therefore not followed.

use std::path::Path;

/// A configuration file of more bytes is none.
const LONGEST_FILE: u64 = 1024 * 1024;

/// The variables that tell git who commits, from the configuration below `home`. Empty where it names nobody.
pub(super) fn read(home: &Path) -> Vec<(String, String)> {
    let mut identity = Identity::default();
    // Git reads both and the second wins.
    for file in [home.join(".config/git/config"), home.join(".gitconfig")] {
        let readable = std::fs::metadata(&file)
            .is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LONGEST_FILE);
        if readable && let Ok(text) = std::fs::read_to_string(&file) {
            identity.read(&text);
        }
    }
    identity.variables()
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Identity {
    name: Option<String>,
    email: Option<String>,
}

impl Identity {
    fn read(&mut self, text: &str) {
        let mut in_user = false;
        for line in text.lines() {
            let mut line = line.trim();
            if let Some(rest) = line.strip_prefix('[') {
                let Some((section, after)) = rest.split_once(']') else {
                    continue;
                };
                in_user = section.trim().eq_ignore_ascii_case("user");
                line = after.trim();
            }
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let wanted = match key.trim().to_ascii_lowercase().as_str() {
                "name" if in_user => &mut self.name,
                "email" if in_user => &mut self.email,
                _ => continue,
            };
            *wanted = value_of(value);
        }
    }

    fn variables(self) -> Vec<(String, String)> {
        let of = |value: Option<String>, names: [&str; 2]| {
            value.map(|value| names.map(|name| (name.to_owned(), value.clone())))
        };
        [
            of(self.name, ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"]),
            of(self.email, ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"]),
        ]
        .into_iter()
        .flatten()
        .flatten()
        .collect()
    }
}

/// A value as git reads it: quotes and escapes resolved, comments and outer blanks taken off. `None` where it is empty
/// or broken.
fn value_of(text: &str) -> Option<String> {
    let mut value = String::new();
    // What is kept at least: trailing blanks count only in quotes.
    let mut solid = 0;
    let mut quoted = false;
    let mut characters = text.trim_start().chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => value.push(match characters.next()? {
                'n' => '\n',
                't' => '\t',
                escaped @ ('"' | '\\') => escaped,
                _ => return None,
            }),
            _ => value.push(character),
        }
        if quoted || !character.is_whitespace() {
            solid = value.len();
        }
    }
    value.truncate(solid);
    (!quoted && !value.is_empty() && !value.contains(['\0', '\n'])).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(text: &str) -> (Option<String>, Option<String>) {
        let mut identity = Identity::default();
        identity.read(text);
        (identity.name, identity.email)
    }

    fn both(name: &str, email: &str) -> (Option<String>, Option<String>) {
        (Some(name.into()), Some(email.into()))
    }

    #[test]
    fn name_and_email_are_found_in_the_user_section() {
        let text = "[core]\n\tname = no\n[user]\n\tname = Ada Lovelace\n\temail = ada@example.org\n[alias]\n name = no\n";
        assert_eq!(identity(text), both("Ada Lovelace", "ada@example.org"));
    }

    #[test]
    fn quotes_comments_and_case_are_read_as_git_reads_them() {
        let text = "[USER]\nName = \"Ada \\\"the\\\" # one\" ; comment\nEMAIL=a@b # c\n";
        assert_eq!(identity(text), both("Ada \"the\" # one", "a@b"));
        assert_eq!(identity("[user] name = Ada\nemail = e"), both("Ada", "e"));
        assert_eq!(
            identity("[user]\nname = \" padded \"  \nemail=x"),
            both(" padded ", "x")
        );
    }

    #[test]
    fn a_subsection_is_another_section() {
        assert_eq!(identity("[user \"work\"]\nname = W"), (None, None));
    }

    #[test]
    fn an_empty_or_broken_value_is_none() {
        assert_eq!(identity("[user]\nname =\nemail = \"open"), (None, None));
    }

    #[test]
    fn the_later_file_wins_and_both_roles_are_set() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".config/git")).unwrap();
        std::fs::write(
            home.path().join(".config/git/config"),
            "[user]\nname=Old\nemail=o@x",
        )
        .unwrap();
        std::fs::write(home.path().join(".gitconfig"), "[user]\nname=New").unwrap();
        let wanted = [
            ("GIT_AUTHOR_NAME", "New"),
            ("GIT_COMMITTER_NAME", "New"),
            ("GIT_AUTHOR_EMAIL", "o@x"),
            ("GIT_COMMITTER_EMAIL", "o@x"),
        ];
        assert_eq!(
            read(home.path()),
            wanted.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!(read(&home.path().join("nobody")), vec![]);
    }
}
