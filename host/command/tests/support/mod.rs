//! A Session's commands in the real sandbox, over folders of the test's own.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe_command::{
    CommandHandle, CommandOptions, CommandSessions, CommandSpec, EndedCommand, Observe, Status,
};
use floe_sandbox::{Sandbox, SandboxOptions};
use floe_workspace::Workspace;
use tempfile::TempDir;

/// A wait that no test should ever sit out.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The helper program of this crate.
pub(crate) const HELPER: &str = env!("CARGO_BIN_EXE_floe-command-helper");

/// The environment variable that names another program to be the helper.
pub(crate) const HELPER_VARIABLE: &str = "FLOE_TEST_HELPER";

/// A Session and its folders, which go with it.
pub(crate) struct Session {
    pub(crate) workspace: PathBuf,
    /// The home of a person that the test made up.
    pub(crate) person_home: PathBuf,
    pub(crate) cache: PathBuf,
    pub(crate) notes: Arc<Notes>,
    pub(crate) commands: Arc<CommandSessions>,
    _folder: TempDir,
}

/// Keeps what it is told.
#[derive(Default)]
pub(crate) struct Notes(Mutex<Vec<String>>);

impl Notes {
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Observe for Notes {
    fn warning(&self, _code: &'static str, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }

    fn ended(&self, _: EndedCommand) {}
}

impl Session {
    /// Without a login shell.
    pub(crate) fn new() -> Session {
        Session::with(|_, options| options.environment.person_home = None)
    }

    /// Prepares the person's home and changes the options before anything is started.
    pub(crate) fn with(prepare: impl FnOnce(&std::path::Path, &mut CommandOptions)) -> Session {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let make = |name: &str| {
            let path = root.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (workspace, person_home, cache) = (make("workspace"), make("person"), make("cache"));
        let opened = Workspace::open(&workspace).unwrap();
        let mut sandbox = SandboxOptions::new(
            opened.fd().try_clone_to_owned().unwrap(),
            workspace.clone(),
            make("home"),
            make("tmp"),
            make("outputs"),
        );
        sandbox.helper =
            std::env::var_os(HELPER_VARIABLE).map_or_else(|| HELPER.into(), PathBuf::from);
        sandbox.person_home = Some(person_home.clone());
        let mut options = CommandOptions::new(opened);
        let notes = Arc::new(Notes::default());
        options.observer = Arc::clone(&notes) as _;
        options.environment.person_home = Some(person_home.clone());
        options.environment.cache = Some(cache.clone());
        prepare(&person_home, &mut options);
        let commands = CommandSessions::new(Arc::new(Sandbox::new(sandbox).unwrap()), options);
        Session {
            workspace,
            person_home,
            cache,
            notes,
            commands,
            _folder: folder,
        }
    }

    pub(crate) async fn start(&self, script: &str) -> CommandHandle {
        self.commands
            .spawn(CommandSpec::shell(script))
            .await
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs a script to its end.
    pub(crate) async fn run(&self, script: &str) -> (String, Status) {
        let command = self.start(script).await;
        let text = read_to_end(&command).await;
        (text, command.status())
    }
}

pub(crate) async fn read_to_end(command: &CommandHandle) -> String {
    let mut text = String::new();
    loop {
        let batch = command.read_output(64 * 1024, LONG).await.unwrap();
        text += &batch.text();
        if batch.ended {
            return text;
        }
    }
}

pub(crate) async fn read_until(command: &CommandHandle, wanted: &str) -> String {
    let mut text = String::new();
    let limit = std::time::Instant::now() + LONG;
    while !text.contains(wanted) {
        assert!(
            std::time::Instant::now() < limit,
            "{text:?} has no {wanted:?}"
        );
        let batch = command.read_output(64 * 1024, LONG).await.unwrap();
        text += &batch.text();
        assert!(!batch.ended || text.contains(wanted), "ended with {text:?}");
    }
    text
}

/// The processes of this machine whose command line holds `word`.
pub(crate) fn processes_with(word: &str) -> usize {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return 0;
    };
    entries
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(word))
        .count()
}

/// Waits until no process has `word` in its command line.
pub(crate) async fn gone(word: &str) {
    for _ in 0..500 {
        if processes_with(word) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!(
        "{} processes with {word} are still there",
        processes_with(word)
    );
}
