//! Every message as one line of JSON on standard output, fragments included: the form for programs.

use std::sync::{Arc, Mutex, PoisonError};

use floe_protocol::OmniMessage;
use floe_session::Observer;

use super::RunPrinter;
use crate::terminal::Screen;

/// Writes messages as lines.
pub(crate) struct JsonLines {
    screen: Arc<Screen>,
    /// Counts turns and calls for the lines at the end.
    counter: Option<Arc<Mutex<RunPrinter>>>,
}

impl JsonLines {
    /// Lines and nothing else.
    pub(crate) fn new(screen: Arc<Screen>) -> JsonLines {
        JsonLines {
            screen,
            counter: None,
        }
    }

    /// Lines, counted as a conversation's text would be.
    pub(crate) fn counting(screen: Arc<Screen>, counter: Arc<Mutex<RunPrinter>>) -> JsonLines {
        JsonLines {
            screen,
            counter: Some(counter),
        }
    }
}

impl Observer for JsonLines {
    fn message(&self, message: &OmniMessage) {
        if let Some(counter) = &self.counter {
            counter
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .count(message);
        }
        // A message is made of strings, numbers and maps with string keys: it can always be written.
        if let Ok(line) = serde_json::to_string(message) {
            self.screen.json_result(&format!("{line}\n"));
        }
    }
}
