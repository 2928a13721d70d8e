//! Whether what a tool writes is, byte for byte, the text of one command. If so, the whole output of a call that is cut is
//! what that command printed; else it is the tool's own text.

use std::sync::Arc;

use floe_runtime::capability::commands::Recording;

/// Text that was handed to a tool and not written yet is held up to this length; a tool that hoards more does not pass it on.
const LONGEST_HELD: usize = 4 << 20;

/// What is known of a tool's text so far.
#[derive(Debug, Default)]
pub(crate) enum Verbatim {
    /// There is none.
    #[default]
    Nothing,
    /// It is the text of this command.
    Command {
        recording: Arc<dyn Recording>,
        /// What was handed to the tool: what it has not written yet, behind some of what it has.
        held: Vec<u8>,
        /// The length of what it has.
        written: usize,
    },
    /// It is the tool's own.
    Not,
}

impl Verbatim {
    /// The tool was handed text of a command.
    pub(crate) fn handed(&mut self, from: &Arc<dyn Recording>, text: &[u8]) {
        match self {
            Verbatim::Nothing => {
                *self = Verbatim::Command {
                    recording: Arc::clone(from),
                    held: text.to_vec(),
                    written: 0,
                }
            }
            Verbatim::Command {
                recording,
                held,
                written,
            } if Arc::ptr_eq(recording, from)
                && held.len() - *written + text.len() <= LONGEST_HELD =>
            {
                held.extend_from_slice(text);
            }
            _ => *self = Verbatim::Not,
        }
    }

    /// The tool wrote text.
    pub(crate) fn wrote(&mut self, text: &[u8]) {
        match self {
            _ if text.is_empty() => {}
            Verbatim::Command { held, written, .. } if held[*written..].starts_with(text) => {
                *written += text.len();
                // Rarely, so that a tool that writes byte by byte does not have megabytes moved for each.
                if *written > held.len() / 2 {
                    held.drain(..*written);
                    *written = 0;
                }
            }
            _ => *self = Verbatim::Not,
        }
    }

    /// The text of the command that the tool had not passed on; it will not any more.
    pub(crate) fn take_held(&mut self) -> Vec<u8> {
        match self {
            Verbatim::Command { held, written, .. } => {
                held.drain(..std::mem::take(written));
                std::mem::take(held)
            }
            Verbatim::Nothing | Verbatim::Not => Vec::new(),
        }
    }

    /// The bytes behind the text, where it is a command's.
    pub(crate) fn recording(&self) -> Option<Arc<dyn Recording>> {
        match self {
            Verbatim::Command { recording, .. } => Some(Arc::clone(recording)),
            Verbatim::Nothing | Verbatim::Not => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Nowhere;

    impl Recording for Nowhere {
        fn bytes(&self, _bytes: &[u8]) {}

        fn publish(&self, _name: &str) -> Result<String, String> {
            Err("nowhere".into())
        }
    }

    fn command() -> Arc<dyn Recording> {
        Arc::new(Nowhere)
    }

    #[test]
    fn text_that_is_passed_on_in_other_pieces_is_the_commands() {
        let mut verbatim = Verbatim::default();
        let command = command();
        verbatim.handed(&command, b"one two ");
        verbatim.handed(&command, b"three");
        for piece in [&b"one"[..], b"", b" two th", b"ree"] {
            verbatim.wrote(piece);
            assert!(verbatim.recording().is_some());
        }
    }

    #[test]
    fn what_was_not_passed_on_is_what_is_left() {
        let text: Vec<u8> = (0..200).collect();
        for passed_on in 0..text.len() {
            let mut verbatim = Verbatim::default();
            verbatim.handed(&command(), &text);
            text[..passed_on]
                .iter()
                .for_each(|byte| verbatim.wrote(&[*byte]));
            assert_eq!(verbatim.take_held(), text[passed_on..]);
            assert_eq!(verbatim.take_held(), b"");
        }
    }

    #[test]
    fn a_word_of_the_tools_own_another_command_and_a_change_make_it_the_tools() {
        let own_word = |verbatim: &mut Verbatim| verbatim.wrote(b"summary: ");
        let other_command = |verbatim: &mut Verbatim| verbatim.handed(&command(), b"text");
        let change = |verbatim: &mut Verbatim| verbatim.wrote(b"TEXT");
        let hoard = |verbatim: &mut Verbatim| {
            let Some(command) = verbatim.recording() else {
                panic!("it has a command");
            };
            verbatim.handed(&command, &vec![b'x'; LONGEST_HELD]);
        };
        for deviate in [own_word, other_command, change, hoard] as [fn(&mut Verbatim); 4] {
            let mut verbatim = Verbatim::default();
            verbatim.handed(&command(), b"text");
            deviate(&mut verbatim);
            assert!(verbatim.recording().is_none());
        }
        let mut verbatim = Verbatim::default();
        verbatim.wrote(b"first");
        verbatim.handed(&command(), b"text");
        assert!(verbatim.recording().is_none());
    }
}
