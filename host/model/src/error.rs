//! What can go wrong with a model, in classes that a caller can act on.

use std::path::PathBuf;

use floe_protocol::{StopReason, TokenCount};

use crate::ScriptError;

/// The classes of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelErrorKind {
    /// The service refused, or ended the answer before its end.
    Failed,
    /// No answer in time: a network fault, an overloaded service, silence.
    Timeout,
    /// The answer could not be understood, or ended in the middle.
    Malformed,
    /// The service refused the credentials.
    Auth,
    /// The caller cancelled.
    Aborted,
    /// A script's expectation was not met.
    Expectation,
}

impl ModelErrorKind {
    /// The stop reason of segments that were open when it happened, and of the request.
    pub fn stop_reason(self) -> StopReason {
        match self {
            ModelErrorKind::Failed | ModelErrorKind::Expectation => StopReason::Failed,
            ModelErrorKind::Timeout => StopReason::Timeout,
            ModelErrorKind::Malformed => StopReason::Malformed,
            ModelErrorKind::Auth => StopReason::Auth,
            ModelErrorKind::Aborted => StopReason::Aborted,
        }
    }
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The class.
    pub kind: ModelErrorKind,
    /// What failed, on what, and what to do. Holds no API key.
    pub message: String,
    /// True where asking again in the same way cannot help.
    pub permanent: bool,
    /// Tokens, where the service counted them all the same.
    pub usage: Option<TokenCount>,
}

impl ModelError {
    /// An error of a class that may pass.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        ModelError {
            kind,
            message: message.into(),
            permanent: false,
            usage: None,
        }
    }

    /// The same error as one that asking again cannot help.
    pub fn permanent(mut self) -> ModelError {
        self.permanent = true;
        self
    }

    /// The error of a caller that cancelled.
    pub fn aborted() -> ModelError {
        ModelError::new(ModelErrorKind::Aborted, "The request was cancelled.").permanent()
    }

    /// True where asking again may help (decisions.md "The loop": all but authentication and permanent errors).
    pub fn is_retryable(&self) -> bool {
        !self.permanent
            && matches!(
                self.kind,
                ModelErrorKind::Failed | ModelErrorKind::Timeout | ModelErrorKind::Malformed
            )
    }
}

/// A model that cannot be opened: an error of usage, found before anything ran.
#[derive(Debug, thiserror::Error)]
pub enum ModelOpenError {
    /// The specification has no known form.
    #[error(
        "`{}` is no model; a model is `script:FILE` or `openai:NAME` (any Chat Completions service)",
        given.escape_debug()
    )]
    Unknown {
        /// As it was given.
        given: String,
    },
    /// A driver of the design that does not exist yet.
    #[error(
        "`{provider}:` models are not built yet; what exists is `script:FILE` and `openai:NAME` (any Chat Completions service)"
    )]
    NotBuilt {
        /// The word before the colon.
        provider: String,
    },
    /// The service of the default address needs a key.
    #[error(
        "`openai:{model}` needs an API key: set OPENAI_API_KEY, or OPENAI_BASE_URL where a service of your own needs none"
    )]
    MissingKey {
        /// The model's name.
        model: String,
    },
    /// The key cannot be sent.
    #[error("the API key holds a character that no HTTP header can carry; check OPENAI_API_KEY")]
    InvalidKey,
    /// The base URL cannot be used.
    #[error("`{}` is no base URL of a model service: {reason}; an example is http://127.0.0.1:8080/v1", given.escape_debug())]
    InvalidBaseUrl {
        /// As it was given.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The HTTP client could not be made.
    #[error("the HTTP client could not be started: {0}")]
    Client(String),
    /// The script cannot be read.
    #[error("cannot read the script {}: {reason}", path.display())]
    ScriptUnreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's words.
        reason: String,
    },
    /// The script does not parse.
    #[error(transparent)]
    Script(#[from] ScriptError),
}
