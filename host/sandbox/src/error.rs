//! Why a command was not run: one type for the host and the helper, which sends it over the control socket.
//!
//! A failed wall names itself, the system call and errno, the likely cause, one command that fixes it, and the flag that
//! does without; nothing here decides to go on regardless.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::layer::LayerName;

/// Why a command was not run. Nothing of it was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SandboxError {
    /// A wall could not be built.
    #[error("{0}")]
    Layer(Box<LayerFailure>),
    /// The working directory cannot be used.
    #[error("{}", directory_message(path, *fault))]
    Directory {
        /// The path as given.
        path: String,
        /// What is wrong with it.
        fault: DirectoryFault,
    },
    /// A NUL byte where the kernel takes none.
    #[error("The {what} of the command holds a NUL byte; remove it.")]
    NulByte {
        /// `script`, `program`, `arguments`, `environment` or `working directory`.
        what: String,
    },
    /// The program could not be executed inside the sandbox.
    #[error("Cannot run \"{program}\" in the sandbox: {}.", errno_text(*errno))]
    Program {
        /// The program as given, or `bash` for a script.
        program: String,
        /// The errno of `execve`.
        errno: i32,
    },
    /// A protected path of the Workspace cannot be protected.
    #[error("Cannot protect \"{path}\" in the Workspace: {reason}")]
    Protection {
        /// Relative to the Workspace.
        path: String,
        /// What stands in the way, and what to do.
        reason: String,
    },
    /// What the person granted is not there any more.
    #[error(
        "\"{path}\" no longer leads to what the person allowed; nothing was run. Ask for it again."
    )]
    Widening {
        /// The path that was granted.
        path: String,
    },
    /// A path that the policy or the Session names cannot be used.
    #[error("Cannot use the {what} of the sandbox: {reason}")]
    Setting {
        /// Which setting.
        what: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// bubblewrap did not build what it was told to, or something else.
    #[error("bwrap did not build the walls: {said}.")]
    Bubblewrap {
        /// What it said, or what was found instead.
        said: String,
    },
    /// The host ran out of something before the helper was started.
    #[error("Cannot start the sandbox's helper: {call}: {}.", errno_text(*errno))]
    Host {
        /// The failed call.
        call: String,
        /// Its errno.
        errno: i32,
    },
    /// The helper ended, or answered something else, before the command ran.
    #[error("The sandbox's helper failed before the command ran: {detail}.")]
    Helper {
        /// What was seen.
        detail: String,
    },
}

impl SandboxError {
    /// A stable word for machines.
    pub fn code(&self) -> &'static str {
        match self {
            SandboxError::Layer(_) => "sandbox-layer",
            SandboxError::Directory { fault, .. } => fault.code(),
            SandboxError::NulByte { .. } => "nul-byte",
            SandboxError::Program { .. } => "program",
            SandboxError::Protection { .. } => "protection",
            SandboxError::Widening { .. } => "widening",
            SandboxError::Setting { .. } => "sandbox-setting",
            SandboxError::Bubblewrap { .. } => "sandbox-bwrap",
            SandboxError::Host { .. } => "sandbox-host",
            SandboxError::Helper { .. } => "sandbox-helper",
        }
    }

    /// The failure alone, as one sentence, for a text that holds cause and remedy elsewhere.
    pub fn brief(&self) -> String {
        match self {
            SandboxError::Layer(failure) => {
                let LayerFailure {
                    layer, call, errno, ..
                } = &**failure;
                format!("{layer} failed ({call}: {}).", errno_text(*errno))
            }
            other => other.to_string(),
        }
    }

    /// The failed wall, where the error is about one.
    pub fn layer(&self) -> Option<&LayerFailure> {
        match self {
            SandboxError::Layer(failure) => Some(failure),
            _ => None,
        }
    }
}

/// What is wrong with a working directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DirectoryFault {
    /// Nothing is there.
    Missing,
    /// Something else than a folder is there.
    NotDirectory,
    /// It leaves the Workspace.
    Outside,
    /// It may not be entered.
    Denied,
    /// The Workspace itself has been removed.
    WorkspaceGone,
}

impl DirectoryFault {
    /// A stable word for machines, as the Workspace's own errors use them.
    pub fn code(self) -> &'static str {
        match self {
            DirectoryFault::Missing | DirectoryFault::WorkspaceGone => "not-found",
            DirectoryFault::NotDirectory => "not-directory",
            DirectoryFault::Outside => "outside-workspace",
            DirectoryFault::Denied => "denied",
        }
    }
}

fn directory_message(path: &str, fault: DirectoryFault) -> String {
    match fault {
        DirectoryFault::Missing => format!("The working directory \"{path}\" does not exist."),
        DirectoryFault::NotDirectory => {
            format!("The working directory \"{path}\" is not a directory.")
        }
        DirectoryFault::Outside => format!("Path \"{path}\" is outside the Workspace."),
        DirectoryFault::WorkspaceGone => {
            "The Workspace no longer exists; it was removed after the Session began.".to_owned()
        }
        DirectoryFault::Denied => {
            format!("The working directory \"{path}\" may not be entered (permission denied).")
        }
    }
}

/// A wall that could not be built, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerFailure {
    /// The wall.
    pub layer: LayerName,
    /// The system call, with what it was asked for.
    pub call: String,
    /// Its errno; 0 where the kernel simply lacks the feature.
    pub errno: i32,
    /// The likely cause, as a sentence.
    pub cause: String,
    /// One command, or one thing to do, that fixes it.
    pub remedy: String,
    /// What other sets of walls said, each in a sentence of its own.
    #[serde(default)]
    pub others: Vec<String>,
}

/// The flag that runs commands without walls.
pub const OPT_OUT: &str = "--unsafe-no-sandbox";

impl fmt::Display for LayerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LayerFailure {
            layer,
            call,
            errno,
            cause,
            remedy,
            others,
        } = self;
        write!(
            f,
            "Commands cannot be confined here: {layer} failed ({call}: {}). ",
            errno_text(*errno)
        )?;
        write!(f, "Likely cause: {cause} Remedy: {remedy} ")?;
        for other in others {
            write!(f, "{other} ")?;
        }
        write!(
            f,
            "{OPT_OUT} runs commands without any confinement instead."
        )
    }
}

/// `Operation not permitted (errno 1)`.
pub(crate) fn errno_text(errno: i32) -> String {
    if errno == 0 {
        return "not offered by this kernel".to_owned();
    }
    let full = std::io::Error::from_raw_os_error(errno).to_string();
    let words = full.split(" (os error").next().unwrap_or(&full);
    format!("{words} (errno {errno})")
}
