//! Starts commands as plain processes in a process group of their own. A command that leaves its group is not ended
//! with it: tests of that need the real sandbox.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use floe_sandbox::{
    ConfinedCommand, DirectoryFault, Event, Program, SandboxError, Signal, Streams,
};
use rustix::process::{
    Pid, PidfdFlags, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};

use crate::{Hold, Launch, Launched};

/// Starts `bash -c` in `folder`.
#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) folder: PathBuf,
}

impl Launch for Plain {
    fn launch(&self, command: &ConfinedCommand) -> Result<Launched, SandboxError> {
        let directory = self.folder.join(&command.working_directory);
        if !directory.is_dir() {
            return Err(SandboxError::Directory {
                path: command.working_directory.display().to_string(),
                fault: DirectoryFault::Missing,
            });
        }
        let mut process = match &command.program {
            Program::Shell { script } => {
                // Signals at their defaults, whatever started the tests: a shell cannot trap one that it inherits as ignored.
                let mut process = Command::new("/usr/bin/env");
                process.args(["--default-signal", "bash", "-c"]).arg(script);
                process
            }
            Program::Exec { program, args } => {
                let mut process = Command::new(program);
                process.args(args);
                process
            }
        };
        let child = process
            .current_dir(directory)
            .env_clear()
            .envs(command.environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut child = child.map_err(|error| SandboxError::Program {
            program: "bash".into(),
            errno: error.raw_os_error().unwrap_or(0),
        })?;
        let streams = Streams::Pipes {
            stdin: child.stdin.take().unwrap().into(),
            stdout: child.stdout.take().unwrap().into(),
            stderr: child.stderr.take().unwrap().into(),
        };
        let (group, pid) = (Pid::from_child(&child), child.id());
        let pidfd = pidfd_open(group, PidfdFlags::empty()).unwrap();
        Ok(Launched {
            streams,
            hold: Box::new(Group {
                group,
                pidfd,
                child: Mutex::new(child),
            }),
            pid,
        })
    }

    fn launch_with_files(
        &self,
        command: &ConfinedCommand,
        _: &[PathBuf],
    ) -> Result<Launched, SandboxError> {
        self.launch(command)
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![
            ("HOME".into(), "/floe/home".into()),
            ("TMPDIR".into(), "/tmp".into()),
        ]
    }

    fn confinement(&self) -> String {
        "test".into()
    }
}

/// The leader stays a zombie until this is dropped, so that its group's number is nobody else's.
#[derive(Debug)]
struct Group {
    group: Pid,
    pidfd: OwnedFd,
    child: Mutex<Child>,
}

impl AsFd for Group {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Hold for Group {
    fn signal(&self, signal: Signal) -> io::Result<()> {
        let signal = match signal {
            Signal::INTERRUPT => rustix::process::Signal::INT,
            _ => rustix::process::Signal::TERM,
        };
        Ok(kill_process_group(self.group, signal)?)
    }

    fn kill(&self) {
        let _ = kill_process_group(self.group, rustix::process::Signal::KILL);
    }

    fn try_event(&self) -> Option<Event> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.group), options).ok()??;
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Some(Event::Exited(code)),
            (_, Some(signal)) => Signal::from_number(signal).map(Event::Signaled),
            _ => None,
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.get_mut().unwrap().wait();
    }
}
