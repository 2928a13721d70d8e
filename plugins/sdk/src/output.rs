//! The text that the model reads. Write it as it is produced: what was written survives a timeout and an interrupt.

use crate::bindings::floe::tool::output as host;

/// Appends text to the output of this call.
///
/// Returns how many more characters will be kept, so that a tool with endless output can stop early.
pub fn write(text: &str) -> u32 {
    host::write(text)
}

/// Appends `text` to `line` with its control characters written out (`\n`), so that a name cannot break its line.
pub fn push_on_one_line(text: &str, line: &mut String) {
    for character in text.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
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
