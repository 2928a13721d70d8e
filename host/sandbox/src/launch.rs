//! The host's side: makes a plan, starts the helper with it, and hands back the command's streams and its control.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::command::{Child, ConfinedCommand, Streams};
use crate::control::{self, Control, Received, Report, Request};
use crate::diagnosis;
use crate::error::{DirectoryFault, SandboxError};
use crate::helper;
use crate::layer::{Confinement, Layer, Tier};
use crate::newcomers::Newcomers;
use crate::options::SandboxOptions;
use crate::plan::{Bytes, Confined, Plan};
use crate::protected;
use crate::reaper::Helper;
use crate::survey::{self, Survey};
use crate::view::{self, View};

/// How long the helper may take until the command runs; far beyond what a slow disk needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A Session's sandbox: its commands share one user and one network namespace, `/tmp`, `$HOME` and the Workspace.
#[derive(Debug)]
pub struct Sandbox {
    options: SandboxOptions,
    tier: Tier,
    /// What the first command found out and made; the walls as the last command saw them.
    session: Mutex<Session>,
}

#[derive(Debug, Default)]
struct Session {
    ground: Option<Ground>,
    layers: Vec<Layer>,
    newcomers: Newcomers,
}

/// What all commands of a Session stand on.
#[derive(Debug)]
struct Ground {
    user: OwnedFd,
    network: OwnedFd,
    layers: Vec<Layer>,
    view: View,
    survey: Survey,
}

impl Ground {
    /// What there is outside the Workspace that is obeyed and that a command could have made.
    fn outside(&self) -> impl Iterator<Item = &PathBuf> {
        let settings = self.view.git_settings.iter();
        settings.filter(|path| path.symlink_metadata().is_ok())
    }
}

impl Sandbox {
    /// Where commands see the Session's home folder.
    pub const HOME: &'static str = "/floe/home";
    /// Where commands see the Session's outputs.
    pub const OUTPUTS: &'static str = "/floe/outputs";
    /// Where commands see the Workspace, beside its canonical host path.
    pub const WORKSPACE: &'static str = "/workspace";
    /// Where a command finds its own script, when that is too long for an argument.
    const SCRIPT: &'static str = "/floe/script";

    /// Makes a Session's sandbox. Nothing is spawned and no wall is tried before the first command.
    pub fn new(options: SandboxOptions) -> Result<Sandbox, SandboxError> {
        if !options.workspace_path.is_absolute() {
            return Err(SandboxError::Setting {
                what: "Workspace".to_owned(),
                reason: "its path must be absolute.".to_owned(),
            });
        }
        let tier = if options.unconfined {
            Tier::Unconfined
        } else {
            Tier::Native
        };
        Ok(Sandbox {
            options,
            tier,
            session: Mutex::default(),
        })
    }

    /// Starts a command. Blocks for the few milliseconds until it runs, so call it from a thread that may block.
    ///
    /// Returns only when every wall stands and the program has been executed; any failure up to there is the error.
    pub fn spawn(&self, command: &ConfinedCommand) -> Result<Child, SandboxError> {
        self.spawn_with_files(command, &[])
    }

    /// As [`Sandbox::spawn`]; this one command may also read `files` of the host, at their own paths. What is missing is left out.
    pub fn spawn_with_files(
        &self,
        command: &ConfinedCommand,
        files: &[PathBuf],
    ) -> Result<Child, SandboxError> {
        command.refuse_nul()?;
        self.refuse_removed_workspace(command)?;
        match self.tier {
            Tier::Native => self.spawn_confined(command, files),
            Tier::Unconfined => {
                let script = self.options.tmp_dir.join(format!(".script-{}", unique()));
                let plan = Plan::Unconfined(Box::new(command.execution(script.into())));
                self.start(
                    &plan,
                    &[self.options.workspace.as_fd()],
                    command.terminal.is_some(),
                )
            }
        }
    }

    /// How this Session's commands are confined.
    pub fn confinement(&self) -> Confinement {
        Confinement {
            tier: self.tier,
            layers: self.session().layers.clone(),
        }
    }

    /// The variables that make the sandbox usable: HOME and TMPDIR as the sandbox sets them, and where tool chains lie
    /// that would otherwise be looked for in HOME (`RUSTUP_HOME` and the like). A command's environment should hold them.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        view::environment(&self.options)
    }

    /// Protected paths that were not there at the Session's first command and are by now; each is told once. A command may
    /// have made them, and what they say is obeyed outside the sandbox. They are relative to the Workspace, but for those
    /// of its git directory where that lies outside.
    pub fn appeared(&self) -> Vec<PathBuf> {
        let session = &mut *self.session();
        if let Some(ground) = &session.ground
            && let Ok(now) = protected::protected(
                &self.options.workspace,
                &ground.survey,
                &self.options.policy,
            )
        {
            session.newcomers.notice(now.iter().chain(ground.outside()));
        }
        session.newcomers.take()
    }

    fn refuse_removed_workspace(&self, command: &ConfinedCommand) -> Result<(), SandboxError> {
        let status = rustix::fs::fstat(&self.options.workspace)
            .map_err(|errno| host("fstat(Workspace)")(errno.into()))?;
        if status.st_nlink > 0 {
            return Ok(());
        }
        Err(SandboxError::Directory {
            path: command.working_directory.display().to_string(),
            fault: DirectoryFault::WorkspaceGone,
        })
    }

    fn session(&self) -> std::sync::MutexGuard<'_, Session> {
        // A panic elsewhere leaves nothing half done in it.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn_confined(
        &self,
        command: &ConfinedCommand,
        files: &[PathBuf],
    ) -> Result<Child, SandboxError> {
        let (plan, user, network) = {
            let session = &mut *self.session();
            let ground = match &mut session.ground {
                Some(ground) => ground,
                empty => empty.insert(self.lay_ground()?),
            };
            let policy = &self.options.policy;
            let protected = protected::protected(&self.options.workspace, &ground.survey, policy)?;
            session
                .newcomers
                .notice(protected.iter().chain(ground.outside()));
            let mut entries = ground.view.entries.clone();
            entries.extend(files.iter().filter_map(|file| view::readable_file(file)));
            let plan = Plan::Confined(Box::new(Confined {
                view: entries,
                workspace: ground.view.workspace.as_path().into(),
                protected: protected.into_iter().map(Bytes::from).collect(),
                denied: ground
                    .survey
                    .denied
                    .iter()
                    .map(|path| path.as_path().into())
                    .collect(),
                writable: ground.view.writable.clone(),
                limits: policy.limits,
                execution: command.execution(Sandbox::SCRIPT.into()),
            }));
            (plan, duplicate(&ground.user)?, duplicate(&ground.network)?)
        };
        let descriptors = [
            self.options.workspace.as_fd(),
            user.as_fd(),
            network.as_fd(),
        ];
        self.start(&plan, &descriptors, command.terminal.is_some())
    }

    /// Finds out and makes what all commands of the Session stand on.
    fn lay_ground(&self) -> Result<Ground, SandboxError> {
        let view = view::compose(&self.options)?;
        let survey = survey::survey(&self.options.workspace, &self.options.policy)?;
        let (socket, helper) = self.helper(&Plan::Anchor, &[])?;
        match answer(&socket, helper)? {
            (Report::Anchored(layers), descriptors, _) => {
                let [user, network]: [OwnedFd; 2] =
                    descriptors.try_into().map_err(|_| unexpected())?;
                Ok(Ground {
                    user,
                    network,
                    layers,
                    view,
                    survey,
                })
            }
            _ => Err(unexpected()),
        }
    }

    /// Starts a helper with a plan that runs a command, and waits until the command runs.
    fn start(
        &self,
        plan: &Plan,
        descriptors: &[BorrowedFd<'_>],
        terminal: bool,
    ) -> Result<Child, SandboxError> {
        let pipes = if terminal { None } else { Some(Pipes::new()?) };
        let mut given = descriptors.to_vec();
        if let Some(pipes) = &pipes {
            given.extend([
                pipes.stdin.0.as_fd(),
                pipes.stdout.1.as_fd(),
                pipes.stderr.1.as_fd(),
            ]);
        }
        let (socket, helper) = self.helper(plan, &given)?;
        let (Report::Ready(layers), mut descriptors, helper) = answer(&socket, helper)? else {
            return Err(unexpected());
        };
        let streams = match pipes {
            Some(Pipes {
                stdin,
                stdout,
                stderr,
            }) => Streams::Pipes {
                stdin: stdin.1,
                stdout: stdout.0,
                stderr: stderr.0,
            },
            None => Streams::Terminal(descriptors.pop().ok_or_else(unexpected)?),
        };
        self.remember(layers);
        let pid = helper.id();
        let control = Control::new(socket, helper).map_err(host("ioctl(FIONBIO)"))?;
        Ok(Child {
            streams,
            control,
            pid,
        })
    }

    fn remember(&self, layers: Vec<Layer>) {
        let mut session = self.session();
        let shared = session
            .ground
            .iter()
            .flat_map(|ground| ground.layers.clone());
        session.layers = shared.chain(layers).collect();
    }

    /// Starts a helper and sends it its plan.
    ///
    /// The helper is executed without any step between fork and exec, because this process has many threads: its only
    /// inherited descriptor is the control socket, as its stdin, and all others follow over that socket.
    fn helper(
        &self,
        plan: &Plan,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(OwnedFd, Helper), SandboxError> {
        let plan = sealed(plan)?;
        let (ours, theirs) = control::pair().map_err(host("socketpair"))?;
        let child = Command::new(&self.options.helper)
            .arg0("floe")
            .arg(helper::WORD)
            .env_clear()
            .process_group(0)
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(host("posix_spawn(helper)"))?;
        let helper = Helper::new(child);
        let mut all = vec![plan.as_fd()];
        all.extend_from_slice(descriptors);
        control::send(&ours, &Request::Plan, &all).map_err(host("sendmsg(plan)"))?;
        Ok((ours, helper))
    }
}

/// The helper's first word: what it made, or why it did not.
fn answer(
    socket: &OwnedFd,
    helper: Helper,
) -> Result<(Report, Vec<OwnedFd>, Helper), SandboxError> {
    if !control::wait_readable(socket, Some(PATIENCE)).map_err(host("poll"))? {
        return Err(SandboxError::Helper {
            detail: helper.post_mortem(),
        });
    }
    match control::receive(socket).map_err(host("recvmsg"))? {
        Received::Message(Report::Failed(failure), _) => Err(diagnosis::explain(failure)),
        Received::Message(report, descriptors) => Ok((report, descriptors, helper)),
        Received::Nothing | Received::End => Err(SandboxError::Helper {
            detail: helper.post_mortem(),
        }),
    }
}

fn unexpected() -> SandboxError {
    SandboxError::Helper {
        detail: "it answered something else; is it the same version of Floe?".to_owned(),
    }
}

fn host(call: &'static str) -> impl Fn(io::Error) -> SandboxError {
    move |error| SandboxError::Host {
        call: call.to_owned(),
        errno: error.raw_os_error().unwrap_or(libc::EIO),
    }
}

fn duplicate(descriptor: &OwnedFd) -> Result<OwnedFd, SandboxError> {
    descriptor
        .try_clone()
        .map_err(host("fcntl(F_DUPFD_CLOEXEC)"))
}

/// The plan in memory that nobody can change any more.
fn sealed(plan: &Plan) -> Result<OwnedFd, SandboxError> {
    let failure = host("memfd_create(plan)");
    let bytes = serde_json::to_vec(plan).map_err(|error| failure(error.into()))?;
    let memory =
        rustix::fs::memfd_create("floe-plan", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|errno| failure(errno.into()))?;
    let mut memory = File::from(memory);
    memory.write_all(&bytes).map_err(&failure)?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    rustix::fs::fcntl_add_seals(&memory, seals).map_err(|errno| failure(errno.into()))?;
    Ok(memory.into())
}

/// A number that no other command of this process has.
fn unique() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!(
        "{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Three pipes, each as its reading and its writing end.
struct Pipes {
    stdin: (OwnedFd, OwnedFd),
    stdout: (OwnedFd, OwnedFd),
    stderr: (OwnedFd, OwnedFd),
}

impl Pipes {
    fn new() -> Result<Pipes, SandboxError> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|errno| host("pipe2")(errno.into()));
        Ok(Pipes {
            stdin: pipe()?,
            stdout: pipe()?,
            stderr: pipe()?,
        })
    }
}
