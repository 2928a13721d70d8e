//! One command, as it is asked for and as it runs.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::control::Control;
use crate::error::SandboxError;
use crate::plan::{Bytes, Execution, Fillable, Run};
use crate::policy::Limits;
use crate::policy::WorkspaceMode;
use crate::widening::Widening;

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfinedCommand {
    /// What to run.
    pub program: Program,
    /// Where: relative to the Workspace; empty or `.` is its root.
    pub working_directory: PathBuf,
    /// The whole environment; nothing is added and nothing inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// Columns and rows of a terminal to run in; pipes without.
    pub terminal: Option<(u16, u16)>,
    /// The most that it may do with the Workspace, whatever the Session's policy allows.
    pub workspace: WorkspaceMode,
    /// What it may reach beyond the Session's policy.
    pub widening: Widening,
}

impl ConfinedCommand {
    pub(crate) fn execution(
        &self,
        script_file: Bytes,
        limits: Limits,
        fillable: Fillable,
    ) -> Execution {
        let bytes = |text: &OsString| Bytes::from(text.clone());
        Execution {
            program: match &self.program {
                Program::Shell { script } => Run::Script(bytes(script)),
                Program::Exec { program, args } => Run::Program {
                    program: bytes(program),
                    args: args.iter().map(bytes).collect(),
                },
            },
            directory: self.working_directory.as_path().into(),
            environment: self
                .environment
                .iter()
                .map(|(name, value)| (bytes(name), bytes(value)))
                .collect(),
            terminal: self.terminal,
            script_file,
            limits,
            fillable,
        }
    }

    /// The kernel's strings end at the first NUL, so one inside would silently change the command.
    pub(crate) fn refuse_nul(&self) -> Result<(), SandboxError> {
        let refuse = |what: &str, text: &OsStr| {
            if text.as_bytes().contains(&0) {
                return Err(SandboxError::NulByte {
                    what: what.to_owned(),
                });
            }
            Ok(())
        };
        match &self.program {
            Program::Shell { script } => refuse("script", script)?,
            Program::Exec { program, args } => {
                refuse("program", program)?;
                args.iter()
                    .try_for_each(|argument| refuse("arguments", argument))?;
            }
        }
        refuse("working directory", self.working_directory.as_os_str())?;
        self.environment.iter().try_for_each(|(name, value)| {
            refuse("environment", name)?;
            refuse("environment", value)
        })
    }
}

/// What a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// `bash -c SCRIPT`, byte for byte, of any length.
    Shell {
        /// The script.
        script: OsString,
    },
    /// A program, looked up on the command's own PATH unless it holds a slash.
    Exec {
        /// Its name or path.
        program: OsString,
        /// Its arguments, without its name.
        args: Vec<OsString>,
    },
}

/// A running command. The descriptors block; a reader may set `O_NONBLOCK` on them.
#[derive(Debug)]
pub struct Child {
    /// What it reads and writes.
    pub streams: Streams,
    /// The hold on it.
    pub control: Control,
    /// The helper's process id on the host.
    pub pid: u32,
}

/// What a command reads and writes.
#[derive(Debug)]
pub enum Streams {
    /// Three pipes.
    Pipes {
        /// Written by the host; closing it is the end of input.
        stdin: OwnedFd,
        /// Read by the host.
        stdout: OwnedFd,
        /// Read by the host.
        stderr: OwnedFd,
    },
    /// The master of a terminal that only the command has. A read fails with EIO once the command has ended.
    Terminal(OwnedFd),
}
