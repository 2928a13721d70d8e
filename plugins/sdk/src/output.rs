//! The text that the model reads. Write it as it is produced: what was written survives a timeout and an interrupt.

use crate::bindings::floe::tool::output as host;

/// Appends text to the output of this call.
///
/// Returns how many more characters will be kept, so that a tool with endless output can stop early.
pub fn write(text: &str) -> u32 {
    host::write(text)
}

/// Appends `text` to `line` with its control characters written out (`\n`), so that a name cannot break its line. The backslashes of such a
/// text are doubled, so that [`from_one_line`] can tell them apart; any other text stays as it is.
pub fn push_on_one_line(text: &str, line: &mut String) {
    if !text.contains(char::is_control) {
        line.push_str(text);
        return;
    }
    for character in text.chars() {
        if character.is_control() || character == '\\' {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
}

/// The text that [`push_on_one_line`] has written out as `line`; none where nothing in it is written out.
pub fn from_one_line(line: &str) -> Option<String> {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    let mut has_control = false;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let mut characters = after.chars();
        let control = match characters.next()? {
            '\\' => None,
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'u' => {
                let (code, behind) = characters.as_str().strip_prefix('{')?.split_once('}')?;
                characters = behind.chars();
                let code = u32::from_str_radix(code, 16).ok()?;
                Some(char::from_u32(code).filter(|character| character.is_control())?)
            }
            _ => return None,
        };
        has_control |= control.is_some();
        text.push(control.unwrap_or('\\'));
        rest = characters.as_str();
    }
    text.push_str(rest);
    has_control.then_some(text)
}

/// The output of this call as a writer, for `write!` and `writeln!`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Output;

impl std::fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        host::write(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_one_line(text: &str) -> String {
        let mut line = String::new();
        push_on_one_line(text, &mut line);
        line
    }

    #[test]
    fn a_name_with_control_characters_is_written_out_and_read_back() {
        for (name, line) in [
            ("a\nfile\tb", "a\\nfile\\tb"),
            ("é\u{1b}[2J\u{9b}", "é\\u{1b}[2J\\u{9b}"),
            ("back\\slash\n", "back\\\\slash\\n"),
        ] {
            assert_eq!(on_one_line(name), line);
            assert_eq!(from_one_line(line).as_deref(), Some(name));
        }
    }

    #[test]
    fn any_other_name_is_itself_and_stands_for_no_other() {
        for name in [
            "plain",
            "back\\slash",
            "quote'\"",
            "",
            "\\",
            "a\\u{41}",
            "漢 字",
            "\\u{zz}",
        ] {
            assert_eq!(on_one_line(name), name);
            assert_eq!(from_one_line(name), None, "{name}");
        }
    }
}
