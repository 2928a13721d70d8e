//! Layers 6 and 10: the command itself, from the fork to its first instruction.
//!
//! Everything that can fail for a reason worth telling is prepared before the fork, in the leader; the child only moves
//! descriptors, resets what programs inherit, and executes.

use std::convert::Infallible;
use std::ffi::CString;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use super::{landlock, last_errno};
use crate::error::{DirectoryFault, SandboxError};
use crate::plan::{Bytes, Execution, Run};

/// A command ready to be forked off.
pub(super) struct Start {
    name: String,
    /// Where the program may lie, in order.
    candidates: Vec<CString>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    directory: OwnedFd,
    /// The directory as it was asked for.
    directory_name: String,
    streams: CommandStreams,
    /// A Landlock domain that the command enters and its leader does not.
    enclosure: Option<OwnedFd>,
}

/// The command's side of its streams.
enum CommandStreams {
    Pipes(Vec<OwnedFd>),
    Terminal { master: OwnedFd, slave: OwnedFd },
}

/// Where bash is looked for: the places of the systems we know, then the command's own PATH.
const SHELLS: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];

/// Where programs are looked for when the environment has no PATH.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// A script that is too long for an argument, in a file that goes with this.
pub(super) struct ScriptFile(std::path::PathBuf);

impl Drop for ScriptFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Writes a long script to its file, for a command without a view of its own to hold it.
pub(super) fn write_script(execution: &Execution) -> Result<Option<ScriptFile>, SandboxError> {
    let Some(script) = execution.long_script() else {
        return Ok(None);
    };
    let path = execution.script_file.as_path();
    let written = std::fs::File::create_new(path).and_then(|mut file| {
        let written = ScriptFile(path.to_owned());
        file.write_all(script)?;
        Ok(written)
    });
    written.map(Some).map_err(|error| SandboxError::Host {
        call: "write(script)".to_owned(),
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    })
}

/// Makes everything ready, within the view that the command will have.
pub(super) fn prepare(
    execution: &Execution,
    workspace: &OwnedFd,
    streams: Vec<OwnedFd>,
) -> Result<Start, SandboxError> {
    let path = execution
        .environment
        .iter()
        .find(|(name, _)| name.as_bytes() == b"PATH");
    let path = path.map_or(DEFAULT_PATH, |(_, value)| value.as_bytes());
    let (name, candidates, arguments) = match &execution.program {
        Run::Script(script) => {
            let mut candidates: Vec<CString> = SHELLS
                .iter()
                .map(|shell| terminated(shell.as_bytes(), "program"))
                .collect::<Result<_, _>>()?;
            candidates.extend(search(path, b"bash")?);
            let arguments = if execution.long_script().is_some() {
                vec![b"bash".as_slice(), execution.script_file.as_bytes()]
            } else {
                vec![b"bash".as_slice(), b"-c", script.as_bytes()]
            };
            let arguments = arguments
                .into_iter()
                .map(|argument| terminated(argument, "script"));
            (
                "bash".to_owned(),
                candidates,
                arguments.collect::<Result<_, _>>()?,
            )
        }
        Run::Program { program, args } => {
            let candidates = if program.as_bytes().contains(&b'/') {
                vec![terminated(program.as_bytes(), "program")?]
            } else {
                search(path, program.as_bytes())?
            };
            let arguments = std::iter::once(program)
                .chain(args)
                .map(|argument| terminated(argument.as_bytes(), "arguments"));
            (
                program.to_text(),
                candidates,
                arguments.collect::<Result<_, _>>()?,
            )
        }
    };
    let environment = execution
        .environment
        .iter()
        .map(|(name, value)| {
            terminated(
                &[name.as_bytes(), b"=", value.as_bytes()].concat(),
                "environment",
            )
        })
        .collect::<Result<_, _>>()?;
    let streams = match execution.terminal {
        None => CommandStreams::Pipes(streams),
        Some(size) => terminal(size)?,
    };
    let directory = open_directory(workspace, &execution.directory)?;
    Ok(Start {
        name,
        candidates,
        arguments,
        environment,
        directory,
        directory_name: execution.directory.to_text(),
        streams,
        enclosure: None,
    })
}

fn terminated(bytes: &[u8], what: &str) -> Result<CString, SandboxError> {
    CString::new(bytes).map_err(|_| SandboxError::NulByte {
        what: what.to_owned(),
    })
}

fn search(path: &[u8], program: &[u8]) -> Result<Vec<CString>, SandboxError> {
    path.split(|&byte| byte == b':')
        .map(|folder| {
            if folder.is_empty() {
                b".".as_slice()
            } else {
                folder
            }
        })
        .map(|folder| terminated(&[folder, b"/", program].concat(), "program"))
        .collect()
}

/// Opens the working directory by its way from the Workspace's descriptor, which it cannot leave.
fn open_directory(workspace: &OwnedFd, path: &Bytes) -> Result<OwnedFd, SandboxError> {
    let fault = |fault| SandboxError::Directory {
        path: path.to_text(),
        fault,
    };
    if path.as_bytes().contains(&0) {
        return Err(SandboxError::NulByte {
            what: "working directory".to_owned(),
        });
    }
    let relative: &Path = path.as_path();
    if relative
        .components()
        .any(|component| matches!(component, Component::RootDir))
    {
        return Err(fault(DirectoryFault::Outside));
    }
    let relative = if relative.as_os_str().is_empty() {
        Path::new(".")
    } else {
        relative
    };
    let opened = rustix::io::retry_on_intr(|| {
        rustix::fs::openat2(
            workspace,
            relative.as_os_str().as_bytes(),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        )
    });
    opened.map_err(|errno| match errno {
        Errno::XDEV | Errno::LOOP => fault(DirectoryFault::Outside),
        Errno::NOENT => fault(DirectoryFault::Missing),
        Errno::NOTDIR => fault(DirectoryFault::NotDirectory),
        Errno::ACCESS | Errno::PERM => fault(DirectoryFault::Denied),
        other => SandboxError::Host {
            call: "openat2(working directory)".to_owned(),
            errno: other.raw_os_error(),
        },
    })
}

/// A terminal that exists only inside: its master goes to the host, its slave to the command.
fn terminal((columns, rows): (u16, u16)) -> Result<CommandStreams, SandboxError> {
    let failure = |call: &'static str| {
        move |errno: Errno| SandboxError::Host {
            call: call.to_owned(),
            errno: errno.raw_os_error(),
        }
    };
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags).map_err(failure("open(/dev/ptmx)"))?;
    rustix::pty::unlockpt(&master).map_err(failure("ioctl(TIOCSPTLCK)"))?;
    let slave =
        rustix::pty::ioctl_tiocgptpeer(&master, flags).map_err(failure("ioctl(TIOCGPTPEER)"))?;
    let size = Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&slave, size).map_err(failure("ioctl(TIOCSWINSZ)"))?;
    Ok(CommandStreams::Terminal { master, slave })
}

/// A command that runs.
pub(super) struct Running {
    /// Its process, which leads its session and its group.
    pub(super) pid: rustix::process::Pid,
    /// The master of its terminal, for the host.
    pub(super) master: Option<OwnedFd>,
}

impl Start {
    /// Has the command enter a domain of its own, below its leader's.
    pub(super) fn enclose(&mut self, enclosure: Option<OwnedFd>) {
        self.enclosure = enclosure;
    }

    /// The command's side of its terminal, where it has one.
    pub(super) fn terminal(&self) -> Option<BorrowedFd<'_>> {
        match &self.streams {
            CommandStreams::Pipes(_) => None,
            CommandStreams::Terminal { slave, .. } => Some(slave.as_fd()),
        }
    }

    /// Forks and executes; returns once the program has taken over, so that a failure to execute is told.
    pub(super) fn run(self) -> Result<Running, SandboxError> {
        let failure = |call: &'static str| {
            move |errno: Errno| SandboxError::Host {
                call: call.to_owned(),
                errno: errno.raw_os_error(),
            }
        };
        // Entering needs more than opening, and here no privilege helps any more. The command inherits where it starts.
        rustix::process::fchdir(&self.directory).map_err(|_| SandboxError::Directory {
            path: self.directory_name.clone(),
            fault: DirectoryFault::Denied,
        })?;
        let (verdict, report) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(failure("pipe2"))?;
        // SAFETY: this process has one thread, so the child may do anything that this one may.
        let pid = match unsafe { libc::fork() } {
            -1 => return Err(failure("fork")(last_errno())),
            0 => {
                let Err(errno) = self.become_command();
                let _ = rustix::io::write(&report, &errno.raw_os_error().to_ne_bytes());
                // SAFETY: ends this process only, without running what the leader has registered.
                unsafe { libc::_exit(127) }
            }
            pid => {
                rustix::process::Pid::from_raw(pid).ok_or_else(|| failure("fork")(Errno::INVAL))?
            }
        };
        drop(report);
        let mut errno = [0; 4];
        match rustix::io::retry_on_intr(|| rustix::io::read(&verdict, &mut errno)) {
            Ok(0) => {}
            _ => {
                let errno = i32::from_ne_bytes(errno);
                return Err(SandboxError::Program {
                    program: self.name,
                    errno,
                });
            }
        }
        let master = match self.streams {
            CommandStreams::Pipes(_) => None,
            CommandStreams::Terminal { master, .. } => Some(master),
        };
        Ok(Running { pid, master })
    }

    /// In the child: everything up to the program's first instruction.
    fn become_command(&self) -> Result<Infallible, Errno> {
        rustix::process::setsid()?;
        let (stdin, stdout, stderr) = match &self.streams {
            CommandStreams::Pipes(pipes) => match pipes.as_slice() {
                [stdin, stdout, stderr] => (stdin, stdout, stderr),
                _ => return Err(Errno::BADF),
            },
            CommandStreams::Terminal { slave, .. } => {
                rustix::process::ioctl_tiocsctty(slave)?;
                (slave, slave, slave)
            }
        };
        rustix::stdio::dup2_stdin(stdin)?;
        rustix::stdio::dup2_stdout(stdout)?;
        rustix::stdio::dup2_stderr(stderr)?;
        rustix::process::umask(Mode::from(0o022));
        reset_signals()?;
        if let Some(enclosure) = &self.enclosure {
            landlock::enter(enclosure)?;
        }
        close_on_exec_above_stderr()?;
        Err(self.execute())
    }

    fn execute(&self) -> Errno {
        let arguments = pointers(&self.arguments);
        let environment = pointers(&self.environment);
        let mut refusal = Errno::NOENT;
        for candidate in &self.candidates {
            // SAFETY: all strings are terminated, both lists end with a null pointer, and all outlive the call.
            unsafe { libc::execve(candidate.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
            match last_errno() {
                Errno::NOENT | Errno::NOTDIR => {}
                // As shells do: a later program of that name that may be executed counts.
                Errno::ACCESS => refusal = Errno::ACCESS,
                other => return other,
            }
        }
        refusal
    }
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain([std::ptr::null()])
        .collect()
}

/// Gives the command the signal state that programs expect: all as the kernel starts them, none blocked. Rust ignores
/// SIGPIPE, hosts ignore others, and what is ignored stays so over an exec.
fn reset_signals() -> Result<(), Errno> {
    /// The kernel's own `sigaction` is at most four words, and all of them zero is the default action.
    const DEFAULT: [u64; 4] = [0; 4];
    const SET_SIZE: usize = 8;
    for signal in 1..=64 {
        // SAFETY: the action is as long as the kernel reads, and nothing is written back. The C library's function would
        // refuse the two signals that it keeps for itself. What cannot be changed (SIGKILL, SIGSTOP) is at its default.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                DEFAULT.as_ptr(),
                std::ptr::null_mut::<u64>(),
                SET_SIZE,
            )
        };
    }
    let none = 0_u64;
    // SAFETY: the set is one word of the size given, and nothing is written back.
    let result = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const none,
            std::ptr::null_mut::<u64>(),
            SET_SIZE,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(last_errno())
    }
}

/// Nothing but the three streams reaches the program, whatever this process holds.
fn close_on_exec_above_stderr() -> Result<(), Errno> {
    // SAFETY: marks descriptors of this process only; none is closed before the exec.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3_u32,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(last_errno())
    }
}
