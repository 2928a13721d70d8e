//! Patterns as they are given, to patterns over the path below the start. Pure.

/// A pattern without what names the start: `/workspace/`, `./`, and the start itself.
pub(crate) fn below<'p>(pattern: &'p str, root: &str) -> &'p str {
    let rest = pattern.strip_prefix("/workspace/").unwrap_or(pattern);
    let rest = rest.strip_prefix("./").unwrap_or(rest);
    if rest.len() == pattern.len() {
        return pattern;
    }
    let root = root.strip_prefix("/workspace").unwrap_or(root);
    let root = root.trim_matches('/');
    match rest
        .strip_prefix(root)
        .and_then(|rest| rest.strip_prefix('/'))
    {
        Some(below) if !root.is_empty() && pattern.starts_with('/') => below,
        _ => rest,
    }
}

/// The same pattern without regard to case: each letter becomes a class of both its forms.
pub(crate) fn without_case(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() * 4);
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                out.push('\\');
                out.extend(characters.next());
            }
            '[' => {
                out.push('[');
                let mut class = String::new();
                for inner in characters.by_ref() {
                    let is_first = class.is_empty() || class == "!" || class == "^";
                    if inner == ']' && !is_first {
                        break;
                    }
                    class.push(inner);
                }
                let negation = class
                    .find(|c| c != '!' && c != '^')
                    .unwrap_or(class.len())
                    .min(1);
                let (negation, class) = class.split_at(negation);
                out.push_str(negation);
                out.push_str(class);
                if class.chars().any(char::is_alphabetic) {
                    out.push_str(&swapped(class));
                }
                out.push(']');
            }
            letter if letter.is_alphabetic() => {
                out.push('[');
                out.push(letter);
                out.push_str(&swapped(&letter.to_string()));
                out.push(']');
            }
            other => out.push(other),
        }
    }
    out
}

fn swapped(text: &str) -> String {
    let swap = |letter: char| -> char {
        let mut forms: Vec<char> = if letter.is_lowercase() {
            letter.to_uppercase().collect()
        } else {
            letter.to_lowercase().collect()
        };
        match (forms.pop(), forms.is_empty()) {
            (Some(form), true) => form,
            _ => letter,
        }
    };
    text.chars().map(swap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_the_start_is_taken_off() {
        for (pattern, root, expected) in [
            ("src/*.rs", "", "src/*.rs"),
            ("./src/*.rs", "", "src/*.rs"),
            ("/workspace/src/*.rs", "", "src/*.rs"),
            ("/workspace/src/*.rs", "src", "*.rs"),
            ("/workspace/src/*.rs", "/workspace/src/", "*.rs"),
            ("src/*.rs", "src", "src/*.rs"),
            ("/etc/*", "", "/etc/*"),
        ] {
            assert_eq!(below(pattern, root), expected, "{pattern} in {root:?}");
        }
    }

    #[test]
    fn letters_lose_their_case_within_classes_and_without() {
        assert_eq!(without_case("a*.R1"), "[aA]*.[Rr]1");
        assert_eq!(without_case("[a-c]x"), "[a-cA-C][xX]");
        assert_eq!(without_case("[!a]"), "[!aA]");
        assert_eq!(without_case("[]a]"), "[]a]A]");
        assert_eq!(without_case("{a,b}"), "{[aA],[bB]}");
        assert_eq!(without_case("\\a"), "\\a");
    }
}
