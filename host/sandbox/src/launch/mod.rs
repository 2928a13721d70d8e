//! The host's side: chooses the Session's walls, starts each command within them, and hands back its streams and control.

mod choice;
mod listener;
pub(crate) mod site;
pub(crate) mod start;
mod widen;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::command::{Child, ConfinedCommand};
use crate::error::{DirectoryFault, SandboxError};
use crate::layer::{Confinement, Layer, Tier};
use crate::newcomers::Appearance;
use crate::options::SandboxOptions;
use crate::tier::{Ground, Prepared};
use crate::view;

use self::choice::PassedOver;
use self::site::Site;
use self::start::host;

/// A Session's sandbox: its commands share one user and one network namespace, `/tmp`, `$HOME` and the Workspace.
#[derive(Debug)]
pub struct Sandbox {
    options: SandboxOptions,
    /// What the first command found out and made; the walls as the last command saw them.
    session: Mutex<Session>,
    /// Held by the first command while it finds out which walls stand.
    choosing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Session {
    ground: Option<Ground>,
    site: Option<Site>,
    layers: Vec<Layer>,
    warning: Option<String>,
}

/// A command, and the walls that were built for it alone.
type Started = Result<(Child, Vec<Layer>), SandboxError>;

impl Sandbox {
    /// Where commands see the Session's home folder.
    pub const HOME: &'static str = "/floe/home";
    /// Where commands see the Session's outputs.
    pub const OUTPUTS: &'static str = "/floe/outputs";
    /// Where commands see the Workspace, beside its canonical host path.
    pub const WORKSPACE: &'static str = "/workspace";
    /// Where a command finds its own script, when that is too long for an argument.
    pub(crate) const SCRIPT: &'static str = "/floe/script";

    /// Makes a Session's sandbox. Nothing is spawned and no wall is tried before the first command.
    ///
    /// # Errors
    ///
    /// The Workspace's path is not absolute.
    pub fn new(options: SandboxOptions) -> Result<Sandbox, SandboxError> {
        if !options.workspace_path.is_absolute() {
            return Err(SandboxError::Setting {
                what: "Workspace".to_owned(),
                reason: "its path must be absolute.".to_owned(),
            });
        }
        Ok(Sandbox {
            options,
            session: Mutex::default(),
            choosing: Mutex::default(),
        })
    }

    /// Starts a command. Blocks for the few milliseconds until it runs, so call it from a thread that may block.
    ///
    /// Returns only when every wall stands and the program has been executed.
    ///
    /// # Errors
    ///
    /// Whatever failed up to there; the program has not run then.
    pub fn spawn(&self, command: &ConfinedCommand) -> Result<Child, SandboxError> {
        self.spawn_with_files(command, &[])
    }

    /// As [`Sandbox::spawn`]; this one command may also read `files` of the host, at their own paths. What is missing is left out.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn spawn_with_files(
        &self,
        command: &ConfinedCommand,
        files: &[PathBuf],
    ) -> Result<Child, SandboxError> {
        command.refuse_nul()?;
        self.refuse_removed_workspace(command)?;
        self.refuse_closed_directory(command)?;
        if let Some(prepared) = self.prepare(command, files)? {
            return self.start(prepared, command);
        }
        let _choosing = self.choosing.lock().unwrap_or_else(PoisonError::into_inner);
        // Another first command may have chosen meanwhile.
        match self.prepare(command, files)? {
            Some(prepared) => self.start(prepared, command),
            None => self.spawn_first(command, files),
        }
    }

    /// Starts the first command in the best walls that stand, which are the Session's from then on.
    fn spawn_first(
        &self,
        command: &ConfinedCommand,
        files: &[PathBuf],
    ) -> Result<Child, SandboxError> {
        let mut passed = PassedOver::default();
        for tier in choice::candidates(&self.options) {
            if !passed.allows(tier, &self.options) {
                break;
            }
            let (ground, started) = match self.attempt(tier, command, files) {
                Ok(attempted) => attempted,
                Err(error) => {
                    passed.note(tier, error)?;
                    continue;
                }
            };
            let session = &mut *self.session();
            session.ground = Some(ground);
            session.warning = passed.warning(tier);
            let (child, layers) = started?;
            session.remember(layers);
            return Ok(child);
        }
        Err(passed.into_error())
    }

    /// Builds one set of walls around a command. Where all of them stood, the program itself may still have failed.
    fn attempt(
        &self,
        tier: Tier,
        command: &ConfinedCommand,
        files: &[PathBuf],
    ) -> Result<(Ground, Started), SandboxError> {
        let ground = Ground::lay(tier, &self.options)?;
        let prepared = {
            let site = &mut self.session().site;
            ground.prepare(&self.options, self.look(site)?, command, files)?
        };
        match prepared.start(command.terminal.is_some()) {
            started @ (Ok(_) | Err(SandboxError::Program { .. })) => Ok((ground, started)),
            Err(error) => Err(error),
        }
    }

    /// Prepares a command for the Session's walls; nothing where none are chosen yet.
    fn prepare(
        &self,
        command: &ConfinedCommand,
        files: &[PathBuf],
    ) -> Result<Option<Prepared>, SandboxError> {
        let Session { ground, site, .. } = &mut *self.session();
        let Some(ground) = ground else {
            return Ok(None);
        };
        let site = self.look(site)?;
        ground
            .prepare(&self.options, site, command, files)
            .map(Some)
    }

    fn look<'s>(&self, site: &'s mut Option<Site>) -> Result<&'s mut Site, SandboxError> {
        match site {
            Some(site) => Ok(site),
            empty => Ok(empty.insert(Site::look(&self.options)?)),
        }
    }

    fn start(&self, prepared: Prepared, command: &ConfinedCommand) -> Result<Child, SandboxError> {
        let (child, layers) = prepared.start(command.terminal.is_some())?;
        self.session().remember(layers);
        Ok(child)
    }

    /// What the person should know of the Session's walls once they are chosen: which better ones do not stand here, and
    /// why. It is told once.
    pub fn warning(&self) -> Option<String> {
        self.session().warning.take()
    }

    /// How this Session's commands are confined.
    pub fn confinement(&self) -> Confinement {
        let session = self.session();
        Confinement {
            tier: match &session.ground {
                Some(ground) => ground.tier(),
                None => choice::forced(&self.options).unwrap_or(Tier::Native),
            },
            layers: session.layers.clone(),
        }
    }

    /// The variables that make the sandbox usable: HOME and TMPDIR as the sandbox sets them, and where tool chains lie
    /// that would otherwise be looked for in HOME (`RUSTUP_HOME` and the like). A command's environment should hold them.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        view::environment(&self.options)
    }

    /// Where commands see the Workspace: at its own path, or at [`Sandbox::WORKSPACE`] where something else lies there. Certain once
    /// a command has been started.
    pub fn workspace_path(&self) -> PathBuf {
        match self.confinement().tier {
            Tier::Native | Tier::Bwrap => view::place_of_workspace(&self.options),
            Tier::Landlock | Tier::Unconfined => self.options.workspace_path.clone(),
        }
    }

    /// What programs outside the sandbox obey and was not there at the Session's first command: new repositories with what
    /// git would execute of them, and protected paths. A command may have made it. Each is told once, and a repository
    /// again when there is more in it to execute. Searches what has changed in the Workspace, so it may take a while.
    pub fn appeared(&self) -> Vec<Appearance> {
        let site = &mut self.session().site;
        site.as_mut()
            .map_or_else(Vec::new, |site| site.appeared(&self.options))
    }

    /// Files of the Workspace that had a further name elsewhere at the Session's first command; told once. A command that
    /// may write to them writes to what has the other name too.
    pub fn hard_links(&self) -> Vec<PathBuf> {
        let site = &mut self.session().site;
        site.as_mut().map_or_else(Vec::new, Site::hard_links)
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

    /// A folder that the host may not look into is an empty one within the walls: a command that was to work there would
    /// find nothing, and not be told why.
    fn refuse_closed_directory(&self, command: &ConfinedCommand) -> Result<(), SandboxError> {
        use rustix::fs::{Access, Mode, OFlags, ResolveFlags, access, openat2};
        let place = &command.working_directory;
        if place.as_os_str().is_empty() {
            return Ok(());
        }
        let opened = openat2(
            &self.options.workspace,
            place,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
        );
        let may_enter = opened.and_then(|folder| {
            use std::os::fd::AsRawFd;
            access(
                format!("/proc/self/fd/{}", folder.as_raw_fd()),
                Access::EXEC_OK,
            )
        });
        match may_enter {
            Err(rustix::io::Errno::ACCESS) => Err(SandboxError::Directory {
                path: place.display().to_string(),
                fault: DirectoryFault::Denied,
            }),
            // Whatever else is wrong with it, the helper finds where it matters.
            _ => Ok(()),
        }
    }

    fn session(&self) -> std::sync::MutexGuard<'_, Session> {
        // A panic elsewhere leaves nothing half done in it.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn remember(&mut self, layers: Vec<Layer>) {
        let shared = self.ground.as_ref().map_or(&[][..], Ground::layers);
        self.layers = shared.iter().cloned().chain(layers).collect();
    }
}
