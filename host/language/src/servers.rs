//! The servers of a Session: found when they are first asked, started once, started again after a while when they break, stopped when
//! nobody asks.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use floe_sandbox::Policy;
use floe_workspace::Workspace;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::error::QueryError;
use crate::place::Places;
use crate::process::{self, Ground};
use crate::program::{self, Program};
use crate::query::{Answer, Query};
use crate::server::Server;
use crate::settings::{Chosen, ServerSetting, ServerSettings};

/// How often the pause after a failure doubles.
const MOST_DOUBLINGS: u32 = 6;

/// What the servers of a Session are made from.
#[derive(Debug)]
pub struct ServerOptions {
    /// What they read, as tools may read it.
    pub workspace: Workspace,
    /// What commands of the Session may do. A server may less: it changes nothing and reaches no network, and it is never started without
    /// walls, because it may run what a project brings along and nobody is asked before.
    pub policy: Policy,
    /// The binary whose `main` calls [`floe_sandbox::helper_main`] first; this very one where none.
    pub helper: Option<PathBuf>,
    /// Folders of the host that no server sees: Floe's own. Canonical.
    pub private: Vec<PathBuf>,
    /// The person's home, which servers do not see, except the tool chains in it.
    pub person_home: Option<PathBuf>,
    /// The PATH on which servers are looked for.
    pub search_path: OsString,
    /// Where each server gets a folder of its own, for its HOME and `/tmp`. Made when it is needed.
    pub folder: PathBuf,
    /// Which servers there are.
    pub settings: ServerSettings,
    /// How long is waited for what.
    pub waits: Waits,
}

/// How long is waited for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// For a server to start, by a question that needs it. It goes on starting afterwards.
    pub start: Duration,
    /// For a server to start at all.
    pub longest_start: Duration,
    /// For an answer of a server that runs, the time in which it reads the project included.
    pub answer: Duration,
    /// Until a server that nobody asks is stopped.
    pub idle: Duration,
    /// After a first failure until a server is started again; it doubles with each further one, to 64 times as much.
    pub pause: Duration,
    /// For a server to end in its own way.
    pub stop: Duration,
}

impl Default for Waits {
    fn default() -> Waits {
        Waits {
            start: Duration::from_secs(15),
            longest_start: Duration::from_secs(60),
            answer: Duration::from_secs(10),
            idle: Duration::from_secs(5 * 60),
            pause: Duration::from_secs(1),
            stop: Duration::from_secs(2),
        }
    }
}

/// The language servers of a Session.
pub struct LanguageServers {
    shared: Arc<Shared>,
}

struct Shared {
    ground: Arc<Ground>,
    settings: ServerSettings,
    waits: Waits,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    by_name: HashMap<String, Slot>,
    is_closed: bool,
}

/// One server, whether it runs or not.
#[derive(Default)]
struct Slot {
    phase: Phase,
    failures: u32,
    /// When it may be started again, and why not before.
    pause: Option<(Instant, String)>,
}

#[derive(Default)]
enum Phase {
    #[default]
    Stopped,
    Starting(Start),
    Running(Running),
}

type Begun = Option<Result<Arc<Server>, QueryError>>;

struct Start {
    begun: watch::Receiver<Begun>,
    _task: AbortOnDropHandle<()>,
}

struct Running {
    server: Arc<Server>,
    _idle: AbortOnDropHandle<()>,
}

/// What to do for a question that needs a server.
enum Next {
    Ask(Busy),
    Wait(watch::Receiver<Begun>),
    Pause(Instant),
}

/// A server while somebody asks it.
struct Busy(Arc<Server>);

impl Busy {
    fn new(server: &Arc<Server>) -> Busy {
        server.users.fetch_add(1, Ordering::SeqCst);
        Busy(Arc::clone(server))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let last = &self.0.last_used;
        *last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.users.fetch_sub(1, Ordering::SeqCst);
    }
}

impl LanguageServers {
    /// Nothing is looked for or started yet.
    pub fn new(options: ServerOptions) -> LanguageServers {
        LanguageServers {
            shared: Arc::new(Shared {
                ground: Arc::new(Ground {
                    workspace: options.workspace,
                    policy: options.policy,
                    helper: options.helper,
                    private: options.private,
                    person_home: options.person_home,
                    search_path: options.search_path,
                    folder: options.folder,
                }),
                settings: options.settings,
                waits: options.waits,
                slots: Mutex::default(),
            }),
        }
    }

    /// Asks one question, and starts the server where it does not run. Must be called in the context of a tokio runtime. A question that
    /// is dropped is cancelled; a server that was being started for it goes on.
    ///
    /// # Errors
    ///
    /// There is no answer, and why.
    pub async fn ask(&self, query: &Query) -> Result<Answer, QueryError> {
        let shared = &self.shared;
        let workspace = &shared.ground.workspace;
        let path = workspace.resolve(&query.file)?.as_str().to_owned();
        let (chosen, program) = shared.choose(&path, query.language.as_deref())?;
        let setting = &shared.settings.0[&chosen.name];
        let project = {
            let (workspace, path) = (workspace.clone(), path.clone());
            let markers = setting.root_markers.clone();
            let found = tokio::task::spawn_blocking(move || {
                // Before anything is started for it: a file that cannot be read is its own answer.
                workspace.open_file(&path)?;
                Ok(project_of(&workspace, &path, &markers))
            });
            let broke_off = |_| QueryError::Server("The host broke off.".to_owned());
            found
                .await
                .map_err(broke_off)?
                .map_err(QueryError::Workspace)?
        };
        let busy = shared.server(&chosen.name, &program, &project).await?;
        let until = Instant::now() + shared.waits.answer;
        let server = &busy.0;
        let answer = match server.join(&project, until).await {
            Ok(()) => server.ask(query, &path, &chosen.language, until).await,
            Err(error) => Err(server.explain(error, "take in a project").await),
        };
        shared.note(server, answer.is_ok());
        answer
    }

    /// Ends all servers. What is asked afterwards finds none.
    pub async fn close(&self) {
        let slots = {
            let mut slots = self.shared.slots();
            slots.is_closed = true;
            std::mem::take(&mut slots.by_name)
        };
        let mut stopping = tokio::task::JoinSet::new();
        let patience = self.shared.waits.stop;
        for slot in slots.into_values() {
            if let Phase::Running(running) = slot.phase {
                stopping.spawn(async move { running.server.stop(patience).await });
            }
        }
        while stopping.join_next().await.is_some() {}
    }
}

impl Drop for LanguageServers {
    fn drop(&mut self) {
        // What still starts would otherwise hold on to what it is started for.
        self.shared.slots().by_name.clear();
    }
}

impl Shared {
    fn slots(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first server for a file whose program is on this machine.
    fn choose(&self, path: &str, language: Option<&str>) -> Result<(Chosen, Program), QueryError> {
        let chosen = self.settings.choose(path, language);
        if chosen.is_empty() {
            let known = self.settings.languages().join(", ");
            let about = match language {
                Some(language) => format!("the language `{language}`"),
                None => format!("\"{path}\""),
            };
            return Err(QueryError::Unsupported {
                message: format!("No language server is set up for {about}."),
                hint: format!(
                    "Pass `language` where the file's name does not tell it: {known}. Otherwise use grep."
                ),
            });
        }
        let (ground, mut looked_for) = (&self.ground, Vec::new());
        for one in chosen {
            let setting = &self.settings.0[&one.name];
            let name = setting.program();
            let workspace = ground.workspace.canonical_path();
            let home = ground.person_home.as_deref();
            match program::find(name, &ground.search_path, workspace, home) {
                Some(program) => return Ok((one, program)),
                None => looked_for.push((one, name.rsplit('/').next().unwrap_or(name))),
            }
        }
        let languages: Vec<&str> = looked_for
            .iter()
            .map(|(one, _)| one.language.as_str())
            .collect();
        let names: Vec<String> = looked_for
            .iter()
            .map(|(_, name)| format!("`{name}`"))
            .collect();
        Err(QueryError::Unsupported {
            message: format!(
                "There is no language server for {} here: looked for {} on PATH.",
                languages[0],
                names.join(" and ")
            ),
            hint: "Use grep and file_read instead; the person can install it or name another in the setting \
                   language_servers."
                .to_owned(),
        })
    }

    /// The running server; started where it does not run.
    async fn server(
        self: &Arc<Self>,
        name: &str,
        program: &Program,
        project: &str,
    ) -> Result<Busy, QueryError> {
        let until = Instant::now() + self.waits.start;
        loop {
            match self.next(name, program, project, until)? {
                Next::Ask(busy) => return Ok(busy),
                Next::Pause(end) => sleep_until(end).await,
                Next::Wait(mut begun) => {
                    let wait = timeout_at(until, begun.wait_for(Option::is_some)).await;
                    let begun = match wait {
                        Ok(Ok(begun)) => begun.clone(),
                        // The Session was closed.
                        Ok(Err(_)) => return Err(closed()),
                        Err(_) => {
                            return Err(QueryError::Timeout(format!(
                                "The language server {name} is still starting."
                            )));
                        }
                    };
                    if let Some(Err(error)) = begun {
                        return Err(error);
                    }
                }
            }
        }
    }

    fn next(
        self: &Arc<Self>,
        name: &str,
        program: &Program,
        project: &str,
        until: Instant,
    ) -> Result<Next, QueryError> {
        let mut slots = self.slots();
        if slots.is_closed {
            return Err(closed());
        }
        let slot = slots.by_name.entry(name.to_owned()).or_default();
        match &slot.phase {
            Phase::Running(running) if running.server.connection.end().is_none() => {
                return Ok(Next::Ask(Busy::new(&running.server)));
            }
            Phase::Running(_) => {
                let fault = format!("The language server {name} is gone.");
                slot.fail(&self.waits, fault);
            }
            Phase::Starting(start) => return Ok(Next::Wait(start.begun.clone())),
            Phase::Stopped => {}
        }
        if let Some((end, fault)) = &slot.pause
            && *end > Instant::now()
        {
            if *end < until {
                return Ok(Next::Pause(*end));
            }
            let left = (*end - Instant::now()).as_secs().max(1);
            return Err(QueryError::Server(format!(
                "{fault} After {} failures it is started again in {left} s.",
                slot.failures
            )));
        }
        let (sender, begun) = watch::channel(None);
        let task = tokio::spawn(start(
            Arc::downgrade(self),
            name.to_owned(),
            program.clone(),
            project.to_owned(),
            sender,
        ));
        slot.phase = Phase::Starting(Start {
            begun: begun.clone(),
            _task: AbortOnDropHandle::new(task),
        });
        Ok(Next::Wait(begun))
    }

    /// Remembers how a question to a server went.
    fn note(&self, server: &Arc<Server>, is_answered: bool) {
        let mut slots = self.slots();
        let Some(slot) = slots.by_name.get_mut(&server.name) else {
            return;
        };
        let is_this =
            matches!(&slot.phase, Phase::Running(running) if Arc::ptr_eq(&running.server, server));
        if !is_this {
            return;
        }
        if server.connection.end().is_some() {
            let fault = format!("The language server {} is gone.", server.name);
            slot.fail(&self.waits, fault);
        } else if is_answered {
            slot.failures = 0;
            slot.pause = None;
        }
    }
}

impl Slot {
    /// It is not there, and is not started again for a while.
    fn fail(&mut self, waits: &Waits, fault: String) {
        let pause = waits.pause * 2_u32.pow(self.failures.min(MOST_DOUBLINGS));
        self.failures = self.failures.saturating_add(1);
        self.pause = Some((Instant::now() + pause, fault));
        self.phase = Phase::Stopped;
    }
}

fn closed() -> QueryError {
    QueryError::Server("The Session has ended.".to_owned())
}

/// Starts a server, and says how that went.
async fn start(
    shared: Weak<Shared>,
    name: String,
    program: Program,
    project: String,
    begun: watch::Sender<Begun>,
) {
    let Some((ground, setting, waits)) = shared.upgrade().map(|shared| {
        let setting = shared.settings.0[&name].clone();
        let idle = setting.idle.unwrap_or(shared.waits.idle);
        let waits = Waits {
            idle,
            ..shared.waits
        };
        (Arc::clone(&shared.ground), setting, waits)
    }) else {
        return;
    };
    let until = Instant::now() + waits.longest_start;
    let started = launch(ground, &name, &setting, program, &project, until).await;
    let Some(shared) = shared.upgrade() else {
        return;
    };
    let mut slots = shared.slots();
    let Some(slot) = slots.by_name.get_mut(&name) else {
        return;
    };
    let started = started.map(Arc::new);
    match &started {
        Ok(server) => {
            let idle = stop_when_idle(Arc::downgrade(&shared), Arc::clone(server), waits);
            slot.phase = Phase::Running(Running {
                server: Arc::clone(server),
                _idle: AbortOnDropHandle::new(tokio::spawn(idle)),
            });
        }
        Err(error) => slot.fail(&waits, error.to_string()),
    }
    drop(slots);
    begun.send_replace(Some(started));
}

async fn launch(
    ground: Arc<Ground>,
    name: &str,
    setting: &ServerSetting,
    program: Program,
    project: &str,
    until: Instant,
) -> Result<Server, QueryError> {
    let (workspace, person_home) = (ground.workspace.clone(), ground.person_home.clone());
    let places = |root: &Path| Places::new(workspace.clone(), root, person_home.as_deref());
    let arguments = setting.command[1..].to_vec();
    let started = process::start(ground, name.to_owned(), program, arguments).await;
    let started = started.map_err(|error| {
        // The whole of it, with its remedy, is the person's.
        tracing::warn!("the language server {name} could not be started: {error}");
        let brief = places(workspace.canonical_path()).shown(&error.brief());
        QueryError::Server(format!(
            "The language server {name} could not be started: {}.",
            brief.trim_end_matches('.')
        ))
    })?;
    let places = Arc::new(places(&started.root));
    Server::greet(name, setting, started, places, project, until).await
}

/// Stops a server when nobody has asked it for a while.
async fn stop_when_idle(shared: Weak<Shared>, server: Arc<Server>, waits: Waits) {
    loop {
        let last = server.idle_since().unwrap_or_else(Instant::now);
        tokio::select! {
            () = sleep_until(last + waits.idle) => {}
            () = server.connection.ended() => return,
        }
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let stopped = {
            let mut slots = shared.slots();
            let is_idle = server
                .idle_since()
                .is_some_and(|last| last + waits.idle <= Instant::now());
            let slot = slots.by_name.get_mut(&server.name).filter(|_| is_idle);
            slot.map(|slot| std::mem::take(&mut slot.phase))
        };
        if let Some(Phase::Running(running)) = stopped {
            // This task is the one that the phase held: it must not end with it.
            let server = Arc::clone(&running.server);
            let stopping = tokio::spawn(async move { server.stop(waits.stop).await });
            drop(running);
            drop(stopping);
            return;
        }
    }
}

/// The folder of the project that a file belongs to: the nearest above it that holds one of `markers`, else the Workspace. Blocks.
fn project_of(workspace: &Workspace, path: &str, markers: &[String]) -> String {
    for folder in Path::new(path).ancestors().skip(1) {
        let folder = folder.to_str().unwrap_or_default();
        let holds = |marker: &String| {
            workspace
                .stat(&format!("{folder}/{marker}")[usize::from(folder.is_empty())..])
                .is_ok()
        };
        if markers.iter().any(holds) && !folder.is_empty() {
            return folder.to_owned();
        }
    }
    ".".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_the_nearest_folder_with_a_marker() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b/c")).unwrap();
        std::fs::write(folder.path().join("a/mark"), "").unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let markers = ["mark".to_owned()];
        let project = |path| project_of(&workspace, path, &markers);
        assert_eq!(project("a/b/c/x"), "a");
        assert_eq!(project("a/x"), "a");
        assert_eq!(project("x"), ".");
        assert_eq!(project("other/x"), ".");
    }

    #[test]
    fn the_pause_after_a_failure_doubles_up_to_a_limit() {
        let mut slot = Slot::default();
        let waits = Waits::default();
        let pauses: Vec<u64> = (0..10)
            .map(|_| {
                slot.fail(&waits, String::new());
                let (end, _) = slot.pause.as_ref().unwrap();
                (*end - Instant::now()).as_millis().div_ceil(1000) as u64
            })
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 64, 64, 64]);
    }
}
