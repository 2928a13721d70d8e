//! The registry of a Session's commands: gives ids, keeps at most 64, makes room by fixed rules, and ends everything
//! when it is disposed of.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use floe_sandbox::{ConfinedCommand, DirectoryFault, Program, SandboxError};
use floe_workspace::Workspace;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::aftermath::Aftermath;
use crate::environment::{self, EnvironmentOptions};
use crate::error::{Removal, io_error};
use crate::handle::end_after_grace;
use crate::launch::Launch;
use crate::network::{NetworkAccess, NoNetwork, Passing};
use crate::recording::Record;
use crate::reports::ReportsChanged;
use crate::session::{Identity, Surroundings};
use crate::spec::{EndedCommand, Observe, Unobserved};
use crate::{CommandError, CommandHandle, CommandSession, CommandSpec, CommandSummary, Status};

/// How often sessions that nobody wants any more are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(3600);
/// How long disposing waits for the killed commands' output to be collected.
const DISPOSE_WAIT: Duration = Duration::from_secs(3);
/// The size of a terminal: columns and rows.
const TERMINAL_SIZE: (u16, u16) = (80, 24);

/// The bounds of a Session's commands. The defaults are those of spec/environment.md 1.5 and decisions.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLimits {
    /// How many sessions there may be.
    pub sessions: usize,
    /// A running session may be ended for a new one when nobody has named it for this long.
    pub evictable_after: Duration,
    /// A session that nobody has named for this long is ended and forgotten.
    pub idle: Duration,
    /// The unread output of one session, in bytes.
    pub unread_output: usize,
    /// The queued input of one session, in bytes.
    pub input_queue: usize,
    /// How long a write waits for room in that queue.
    pub input_wait: Duration,
}

impl Default for CommandLimits {
    fn default() -> CommandLimits {
        CommandLimits {
            sessions: 64,
            evictable_after: Duration::from_secs(10 * 60),
            idle: Duration::from_secs(10 * 24 * 3600),
            unread_output: 1024 * 1024,
            input_queue: 1024 * 1024,
            input_wait: Duration::from_secs(2),
        }
    }
}

/// What a registry is made from.
pub struct CommandOptions {
    /// Where working directories are looked up.
    pub workspace: Workspace,
    /// Where the commands' environment comes from.
    pub environment: EnvironmentOptions,
    /// What commands reach over the network.
    pub network: Arc<dyn NetworkAccess>,
    /// Who is told what nobody asked for.
    pub observer: Arc<dyn Observe>,
    /// Who keeps what commands write, as it came.
    pub record: Option<Arc<dyn Record>>,
    /// The bounds.
    pub limits: CommandLimits,
}

impl CommandOptions {
    /// The default bounds, the host's own environment as the source, no network but the sandbox's, nobody to tell.
    pub fn new(workspace: Workspace) -> CommandOptions {
        CommandOptions {
            workspace,
            environment: EnvironmentOptions::default(),
            network: Arc::new(NoNetwork),
            observer: Arc::new(Unobserved),
            record: None,
            limits: CommandLimits::default(),
        }
    }
}

/// The commands of one Session.
pub struct CommandSessions {
    launcher: Arc<dyn Launch>,
    options: CommandOptions,
    /// What every command starts from; found out at the first.
    environment: OnceCell<environment::Base>,
    runtime: Handle,
    state: Mutex<State>,
    reports_changed: ReportsChanged,
    this: Weak<CommandSessions>,
}

#[derive(Default)]
struct State {
    sessions: HashMap<String, Arc<CommandSession>>,
    /// The latest sessions that were removed before their end was told.
    removed: VecDeque<(String, Removal)>,
    /// Reports that are due, of sessions that were forgotten.
    left_reports: Vec<EndedCommand>,
    /// Places taken by commands that are being started.
    starting: usize,
    disposed: bool,
    sweeper: Option<AbortHandle>,
}

impl std::fmt::Debug for CommandSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandSessions")
            .field("sessions", &self.list())
            .finish_non_exhaustive()
    }
}

impl CommandSessions {
    /// An empty registry. Call it on the tokio runtime that is to do the commands' I/O; nothing is started before the
    /// first command.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(launcher: Arc<dyn Launch>, options: CommandOptions) -> Arc<CommandSessions> {
        Arc::new_cyclic(|this| CommandSessions {
            launcher,
            options,
            environment: OnceCell::new(),
            runtime: Handle::current(),
            state: Mutex::default(),
            reports_changed: ReportsChanged::default(),
            this: this.clone(),
        })
    }

    /// Finds out, once per Session, which environment commands get. The first command would otherwise wait for it.
    pub async fn prepare(&self) {
        self.environment.get_or_init(|| self.find_base()).await;
    }

    /// Starts a command. Its process and everything in it ends when the handle is dropped, unless it was kept.
    ///
    /// # Errors
    /// Disposed, full, a spec that no process can be made of, or what the sandbox says.
    pub async fn spawn(&self, spec: CommandSpec) -> Result<CommandHandle, CommandError> {
        let (place, note) = self.take_place()?;
        let directory = self.working_directory(spec.working_directory.as_deref())?;
        let base = self.environment.get_or_init(|| self.find_base()).await;
        let pass = self.options.network.admit(&spec.widening.hosts).await?;
        let command = ConfinedCommand {
            program: program(&spec)?,
            working_directory: directory,
            environment: base.compose(&spec.environment, &pass.environment)?,
            terminal: spec.terminal.then_some(TERMINAL_SIZE),
            workspace: spec.workspace,
            widening: spec.widening.clone(),
        };
        if self.is_any_running() {
            self.aftermath().look(&self.runtime).await;
        }
        let launcher = Arc::clone(&self.launcher);
        let mut launched = self
            .runtime
            .spawn_blocking(move || launcher.launch(&command))
            .await
            .map_err(|_| io_error("starting the command")(std::io::ErrorKind::Other.into()))??;
        if let Some(warning) = self.launcher.warning() {
            self.options.observer.warning("confinement", &warning);
        }
        self.aftermath().tell_of_hard_links();
        launched.hold = Box::new(Passing::new(launched.hold, pass));
        let identity = Identity {
            process_id: self.fresh_id()?,
            label: spec.label(),
            confinement: self.launcher.confinement(),
            raw_output: spec.raw_output,
        };
        let recording = self.options.record.as_ref().map(|record| record.begin());
        let surroundings = Surroundings {
            limits: &self.options.limits,
            observer: Arc::clone(&self.options.observer),
            aftermath: Some(self.aftermath()),
            reports_changed: self.reports_changed.clone(),
            runtime: &self.runtime,
        };
        let session = CommandSession::start(launched, identity, recording, surroundings)?;
        self.enter(session, place, note)
    }

    /// Finds a session that was kept.
    ///
    /// # Errors
    /// [`CommandError::NotFound`], also for a session that was not kept.
    pub fn attach(&self, process_id: &str) -> Result<CommandHandle, CommandError> {
        let state = self.state();
        match state.sessions.get(process_id) {
            Some(session) if session.is_kept() => Ok(CommandHandle::new(
                Arc::clone(session),
                self.this.clone(),
                None,
            )),
            _ => Err(CommandError::NotFound {
                process_id: process_id.chars().take(64).collect(),
                removal: state
                    .removed
                    .iter()
                    .find(|(removed, _)| removed == process_id)
                    .map(|(_, removal)| *removal),
            }),
        }
    }

    /// All sessions by id. To be listed is not to be named.
    pub fn list(&self) -> Vec<CommandSummary> {
        let mut list: Vec<_> = self
            .state()
            .sessions
            .values()
            .map(|session| session.summary())
            .collect();
        list.sort_by(|a, b| a.process_id.cmp(&b.process_id));
        list
    }

    /// Ends every command, with a second's grace, and refuses further ones; no end is reported. Returns when their
    /// processes are gone, or after three seconds.
    pub async fn dispose(&self) {
        let sessions: Vec<_> = {
            let mut state = self.state();
            state.disposed = true;
            if let Some(sweeper) = state.sweeper.take() {
                sweeper.abort();
            }
            state.left_reports.clear();
            state.sessions.drain().map(|(_, session)| session).collect()
        };
        for session in &sessions {
            if session.core.ask_to_end() {
                let end = end_after_grace(Arc::clone(session), Weak::new());
                self.runtime.spawn(end);
            }
        }
        self.reports_changed.tell();
        let all_ended = async {
            for session in &sessions {
                session.ended().await;
            }
        };
        let _ = tokio::time::timeout(DISPOSE_WAIT, all_ended).await;
        self.aftermath().look(&self.runtime).await;
    }

    fn aftermath(&self) -> Aftermath {
        Aftermath {
            launcher: Arc::clone(&self.launcher),
            observer: Arc::clone(&self.options.observer),
        }
    }

    /// Whether a command runs that may have left something for others to obey and has not ended yet.
    fn is_any_running(&self) -> bool {
        let state = self.state();
        let mut sessions = state.sessions.values();
        sessions.any(|session| session.status() == Status::Running)
    }

    pub(crate) fn forget(&self, process_id: &str) {
        let forgotten = self.state().sessions.remove(process_id);
        // Dropped only now: it ends processes, and the registry is not to wait for that.
        drop(forgotten);
    }

    pub(crate) fn all(&self) -> Vec<Arc<CommandSession>> {
        self.state().sessions.values().cloned().collect()
    }

    pub(crate) fn take_left_reports(&self) -> Vec<EndedCommand> {
        std::mem::take(&mut self.state().left_reports)
    }

    pub(crate) fn has_left_reports(&self) -> bool {
        !self.state().left_reports.is_empty()
    }

    pub(crate) fn reports_changed(&self) -> &ReportsChanged {
        &self.reports_changed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn find_base(&self) -> environment::Base {
        environment::find_base(
            &self.options.environment,
            &self.launcher,
            &self.options.observer,
            &self.options.limits,
            &self.runtime,
        )
        .await
    }

    fn working_directory(&self, given: Option<&str>) -> Result<PathBuf, CommandError> {
        let Some(given) = given else {
            return Ok(PathBuf::new());
        };
        match self.options.workspace.resolve(given) {
            Ok(path) => Ok(path.as_path().to_owned()),
            Err(_) => Err(CommandError::Sandbox(SandboxError::Directory {
                path: given.to_owned(),
                fault: DirectoryFault::Outside,
            })),
        }
    }

    fn fresh_id(&self) -> Result<String, CommandError> {
        loop {
            let random = getrandom::u32().map_err(|_| {
                io_error("drawing a random process_id")(std::io::ErrorKind::Other.into())
            })?;
            let process_id = format!("proc-{random:08x}");
            if !self.state().sessions.contains_key(&process_id) {
                return Ok(process_id);
            }
        }
    }

    /// Takes one of the places, making room where all are taken.
    fn take_place(&self) -> Result<(Place<'_>, Option<String>), CommandError> {
        let limits = &self.options.limits;
        let (evicted, note) = {
            let mut state = self.state();
            if state.disposed {
                return Err(CommandError::Disposed);
            }
            let mut evicted = None;
            if state.sessions.len() + state.starting >= limits.sessions {
                let victim = state
                    .victim(limits.evictable_after)
                    .ok_or(CommandError::Full {
                        limit: limits.sessions,
                        minutes: limits.evictable_after.as_secs() / 60,
                    })?;
                evicted = state.sessions.remove(&victim);
                if let Some(session) = &evicted {
                    state.remember_removal(session, Removal::MadeRoom);
                }
            }
            state.starting += 1;
            let note = evicted.as_ref().and_then(|session| eviction_note(session));
            (evicted, note)
        };
        drop(evicted);
        Ok((Place { registry: self }, note))
    }

    fn enter(
        &self,
        session: CommandSession,
        place: Place<'_>,
        note: Option<String>,
    ) -> Result<CommandHandle, CommandError> {
        let session = Arc::new(session);
        {
            let mut state = self.state();
            if state.disposed {
                return Err(CommandError::Disposed);
            }
            state
                .sessions
                .insert(session.process_id().to_owned(), Arc::clone(&session));
            if state.sweeper.is_none() {
                state.sweeper = Some(self.runtime.spawn(sweep(self.this.clone())).abort_handle());
            }
        }
        drop(place);
        Ok(CommandHandle::new(session, self.this.clone(), note))
    }

    /// Ends and forgets what nobody has named for too long.
    fn remove_idle(&self) {
        let now = Instant::now();
        let idle = self.options.limits.idle;
        let mut state = self.state();
        let removed: Vec<_> = state
            .sessions
            .extract_if(|_, session| !session.is_held() && now - session.last_named() >= idle)
            .collect();
        for (_, session) in &removed {
            state.remember_removal(session, Removal::Idle);
        }
        drop(state);
        drop(removed);
    }
}

impl Drop for CommandSessions {
    fn drop(&mut self) {
        if let Some(sweeper) = self.state().sweeper.take() {
            sweeper.abort();
        }
    }
}

/// How many removed sessions are remembered.
const MOST_REMOVED: usize = 256;

impl State {
    /// Keeps what is still to be said of a session that goes before its end was told.
    fn remember_removal(&mut self, session: &CommandSession, removal: Removal) {
        self.left_reports.extend(session.core.take_report());
        if self.removed.len() == MOST_REMOVED {
            self.removed.pop_front();
        }
        self.removed
            .push_back((session.process_id().to_owned(), removal));
    }

    /// Which session makes room: of those that nobody holds an ended one, else the running one that was not named for
    /// longest.
    fn victim(&self, evictable_after: Duration) -> Option<String> {
        let now = Instant::now();
        self.sessions
            .values()
            .filter(|session| !session.is_held())
            .map(|session| {
                (
                    session.status() == Status::Running,
                    session.last_named(),
                    session,
                )
            })
            .filter(|(running, named, _)| !running || now - *named > evictable_after)
            .min_by_key(|(running, named, _)| (*running, *named))
            .map(|(_, _, session)| session.process_id().to_owned())
    }
}

/// A place for a command that is being started.
struct Place<'r> {
    registry: &'r CommandSessions,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.registry.state().starting -= 1;
    }
}

async fn sweep(registry: Weak<CommandSessions>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        match registry.upgrade() {
            Some(registry) => registry.remove_idle(),
            None => return,
        }
    }
}

fn eviction_note(evicted: &CommandSession) -> Option<String> {
    (evicted.status() == Status::Running).then(|| {
        let minutes = evicted.last_named().elapsed().as_secs() / 60;
        format!(
            "[process {} ended to make room: it was still running and had not been used for {minutes} minutes]",
            evicted.process_id()
        )
    })
}

fn program(spec: &CommandSpec) -> Result<Program, CommandError> {
    let Some(args) = &spec.args else {
        return Ok(Program::Shell {
            script: spec.command.clone().into(),
        });
    };
    if spec.command.is_empty() {
        return Err(CommandError::Invalid {
            message: "the program has no name".into(),
        });
    }
    Ok(Program::Exec {
        program: spec.command.clone().into(),
        args: args.iter().map(Into::into).collect(),
    })
}
