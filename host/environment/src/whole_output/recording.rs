//! What one command prints, as it came, for the call that shows too much of it to be shown whole.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use floe_runtime::capability::commands::Recording;

use super::{Outputs, Spool};

/// The output of one command since its start.
#[derive(Debug)]
pub(super) struct CommandOutput(Mutex<Spool>);

impl CommandOutput {
    pub(super) fn new(outputs: Arc<Outputs>) -> CommandOutput {
        CommandOutput(Mutex::new(Spool::new(outputs)))
    }

    fn spool(&self) -> MutexGuard<'_, Spool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recording for CommandOutput {
    fn bytes(&self, bytes: &[u8]) {
        self.spool().push(bytes);
    }

    fn publish(&self, name: &str) -> Result<String, String> {
        self.spool().publish(name)
    }
}
