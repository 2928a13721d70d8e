//! Finds the line of a key in a YAML text, for messages. It knows block style; in flow style, or where a key hides behind
//! an anchor, it answers with the nearest parent that it can see. It never decides anything.

/// The 1-based line of the key at `path`, or of its deepest parent that was found.
pub(crate) fn line_of(text: &str, path: &[&str]) -> Option<usize> {
    let mut found = None;
    let mut depth = 0;
    if path.is_empty() {
        return None;
    }
    // The indentation of the keys that are children of the last one found.
    let mut parents: Vec<usize> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let content = line.trim_start();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let indentation = line.len() - content.len();
        if parents.last().is_some_and(|parent| indentation <= *parent) {
            // The parent ended without the key.
            break;
        }
        let is_child = match parents.last() {
            None => indentation == 0,
            Some(_) => true,
        };
        if is_child && key_of(content) == Some(path[depth]) {
            found = Some(index + 1);
            depth += 1;
            parents.push(indentation);
            if depth == path.len() {
                break;
            }
        }
    }
    found
}

/// The 1-based line of the last key of that name, wherever it belongs.
pub(crate) fn last_line_of(text: &str, key: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().collect();
    lines
        .iter()
        .rposition(|line| key_of(line.trim_start()) == Some(key))
        .map(|index| index + 1)
}

/// The key that a line of block style starts with.
fn key_of(content: &str) -> Option<&str> {
    let content = content.strip_prefix("- ").unwrap_or(content).trim_start();
    let (key, _) = content.split_once(':')?;
    Some(key.trim().trim_matches(['"', '\'']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# a comment: x\nmodel: null\nshell:\n  mode: read-only\n\n  limits:\n    pids: 3\nopenai: {base_url: x}\n";

    #[test]
    fn a_nested_key_is_found_below_its_parents() {
        assert_eq!(line_of(TEXT, &["model"]), Some(2));
        assert_eq!(line_of(TEXT, &["shell", "mode"]), Some(4));
        assert_eq!(line_of(TEXT, &["shell", "limits", "pids"]), Some(7));
    }

    #[test]
    fn a_key_in_flow_style_is_answered_with_its_parent() {
        assert_eq!(line_of(TEXT, &["openai", "base_url"]), Some(8));
    }

    #[test]
    fn a_key_of_another_parent_is_not_taken() {
        assert_eq!(
            line_of("a:\n  x: 1\nb:\n  mode: 2\n", &["a", "mode"]),
            Some(1)
        );
    }

    #[test]
    fn what_is_nowhere_has_no_line() {
        assert_eq!(line_of(TEXT, &["nothing"]), None);
    }
}
