//! A Workspace with the fixture server, in the real sandbox, over folders of the test's own.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use floe_language::{
    Answer, Kind, LanguageServers, Position, Query, QueryError, ServerOptions, ServerSetting,
    ServerSettings, Target, Waits,
};
use floe_sandbox::Policy;
use floe_workspace::Workspace;
use tempfile::TempDir;

/// A wait that no test should ever sit out.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The name of the fixture server in the settings.
pub(crate) const SERVER: &str = "fixture";

pub(crate) struct Stage {
    pub(crate) servers: LanguageServers,
    pub(crate) workspace: PathBuf,
    folder: TempDir,
}

/// Waits that are generous, so that a busy machine changes nothing, but where the test is about one.
pub(crate) fn patient() -> Waits {
    Waits {
        start: LONG,
        longest_start: LONG,
        answer: LONG,
        pause: Duration::from_millis(1),
        ..Waits::default()
    }
}

impl Stage {
    /// The fixture server in this mode.
    pub(crate) fn new(mode: &str) -> Stage {
        Stage::with(mode, |_| {})
    }

    pub(crate) fn with(mode: &str, change: impl FnOnce(&mut ServerOptions)) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let workspace = root.join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        std::fs::create_dir(root.join("person")).unwrap();
        let opened = Workspace::open(&workspace).unwrap();
        let hidden = Policy::default().denies_reading().unwrap();
        let setting = ServerSetting {
            enabled: true,
            command: vec![
                env!("CARGO_BIN_EXE_fixture-language-server").to_owned(),
                mode.to_owned(),
            ],
            languages: BTreeMap::from([("words".to_owned(), vec!["txt".to_owned()])]),
            root_markers: vec!["words.root".to_owned()],
            settings: serde_json::Map::from_iter([("fixture.depth".to_owned(), 3.into())]),
            idle: None,
        };
        let mut options = ServerOptions {
            workspace: opened.with_hidden(hidden),
            policy: Policy::default(),
            helper: Some(env!("CARGO_BIN_EXE_floe-language-helper").into()),
            private: Vec::new(),
            person_home: Some(root.join("person")),
            search_path: std::env::var_os("PATH").unwrap_or_default(),
            folder: root.join("servers"),
            settings: ServerSettings(BTreeMap::from([(SERVER.to_owned(), setting)])),
            waits: patient(),
        };
        change(&mut options);
        Stage {
            servers: LanguageServers::new(options),
            workspace,
            folder,
        }
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.workspace.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Asks, with a limit that only a fault reaches.
    pub(crate) async fn ask(&self, query: Query) -> Result<Answer, QueryError> {
        tokio::time::timeout(LONG * 2, self.servers.ask(&query))
            .await
            .expect("a question ends")
    }

    /// What the server was told, a line each.
    pub(crate) fn log(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.home().join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// HOME of the server on the host.
    pub(crate) fn home(&self) -> PathBuf {
        self.root().join("servers").join(SERVER).join("home")
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// Waits until something holds.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Stage) -> bool) {
        let limit = Instant::now() + LONG;
        while !holds(self) {
            assert!(Instant::now() < limit, "{what}: {:?}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn says(&self, word: &str) -> bool {
        self.log().iter().any(|line| line == word)
    }
}

pub(crate) fn query(kind: Kind, file: &str, target: Option<Target>) -> Query {
    Query {
        kind,
        language: None,
        file: file.to_owned(),
        target,
        max_results: None,
    }
}

pub(crate) fn at(kind: Kind, file: &str, line: u32, character: u32) -> Query {
    query(kind, file, Some(Target::At(Position { line, character })))
}

pub(crate) fn named(kind: Kind, file: &str, name: &str) -> Query {
    query(kind, file, Some(Target::Named(name.to_owned())))
}

/// The places of an answer, a line each.
pub(crate) fn shown(answer: &Answer) -> Vec<String> {
    let lines = answer.locations.iter().map(|place| {
        let text = place.text.as_deref().unwrap_or("-");
        format!(
            "{}:{}:{}: {text}",
            place.path, place.start.line, place.start.character
        )
    });
    lines.collect()
}

/// Whether a text holds a path of the machine that only the host should know.
pub(crate) fn names_the_host(text: &str, stage: &Stage) -> bool {
    let root = stage.root();
    text.contains(root.to_str().unwrap()) || Path::new(text).starts_with(&root)
}
