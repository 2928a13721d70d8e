//! Why a command session did not do what was asked: one enum with stable codes, whose messages a model may read. No
//! message holds a path of the host.

use floe_sandbox::SandboxError;

/// The fault of a command session or of the registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The registry was disposed of (spec/environment.md 1.5 has the words).
    #[error("command session manager disposed")]
    Disposed,
    /// No kept session has this id.
    #[error("unknown process_id {process_id} (the session may have exited and been cleared)")]
    NotFound {
        /// The id as given.
        process_id: String,
        /// Why it is no longer there, where its end is no news that a call has told.
        removal: Option<Removal>,
    },
    /// Every place is taken and none may be freed.
    #[error(
        "all {limit} command sessions are in use and each was used in the last {minutes} minutes; end one first: poll one \
         that has exited with input_command, or stop one with its process_id"
    )]
    Full {
        /// How many sessions there may be.
        limit: usize,
        /// How long a running session must have been left alone before it may be ended for another.
        minutes: u64,
    },
    /// Something in the spec cannot be given to a process.
    #[error("{message}")]
    Invalid {
        /// The sentence.
        message: String,
    },
    /// The command was not started: its working directory, its program, or a wall of the sandbox.
    #[error("{0}")]
    Sandbox(SandboxError),
    /// What was granted to the command over the network cannot be given.
    #[error("{message}")]
    Network {
        /// The sentence.
        message: String,
    },
    /// The sandbox went away under the command, by nobody's order here.
    #[error(
        "the command's sandbox ended before the command did, and everything in it was killed; the machine may be out of \
         memory, or something outside Floe stopped it"
    )]
    SandboxEnded,
    /// The program does not read its input.
    #[error(
        "the program does not read its input: {accepted} of {offered} bytes were taken; read its output or wait, then send \
         the rest"
    )]
    InputBlocked {
        /// The bytes that were written or wait in the queue.
        accepted: usize,
        /// The bytes that were given.
        offered: usize,
    },
    /// Not SIGINT, SIGTERM or SIGKILL.
    #[error("unknown signal \"{name}\"; use SIGINT, SIGTERM or SIGKILL")]
    UnknownSignal {
        /// The name as given, shortened.
        name: String,
    },
    /// Only a session with a terminal can do this.
    #[error("the command has pipes, not a terminal; start it with tty to resize one")]
    NoTerminal,
    /// The operating system refused.
    #[error("{operation} failed: {kind}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// How it failed.
        kind: std::io::ErrorKind,
    },
}

/// Why a session was forgotten before a call has told its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Another needed its place.
    MadeRoom,
    /// Nobody had named it for too long.
    Idle,
}

impl Removal {
    fn sentence(self) -> &'static str {
        match self {
            Removal::MadeRoom => {
                "It was removed to make room for another command, because nobody had used it for longest."
            }
            Removal::Idle => "It was removed because nobody had used it for days.",
        }
    }
}

impl CommandError {
    /// A stable word for machines.
    pub fn code(&self) -> &'static str {
        match self {
            CommandError::Disposed => "disposed",
            CommandError::NotFound { .. } => "not-found",
            CommandError::Full { .. } => "limit",
            CommandError::Invalid { .. } | CommandError::UnknownSignal { .. } => "invalid-argument",
            CommandError::Sandbox(error) => error.code(),
            CommandError::Network { .. } => "network",
            CommandError::SandboxEnded => "sandbox-ended",
            CommandError::InputBlocked { .. } => "input-blocked",
            CommandError::NoTerminal => "unsupported",
            CommandError::Io { .. } => "io",
        }
    }

    /// What to know beside the message, as a sentence for a model.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            CommandError::NotFound { removal, .. } => removal.map(Removal::sentence),
            _ => None,
        }
    }

    /// Whether the same request may succeed later.
    pub fn retryable(&self) -> bool {
        matches!(
            self,
            CommandError::Full { .. } | CommandError::InputBlocked { .. }
        )
    }
}

impl From<SandboxError> for CommandError {
    fn from(error: SandboxError) -> CommandError {
        CommandError::Sandbox(error)
    }
}

pub(crate) fn io_error(operation: &'static str) -> impl Fn(std::io::Error) -> CommandError {
    move |error| CommandError::Io {
        operation,
        kind: error.kind(),
    }
}
