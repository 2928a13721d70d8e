//! A Session without a model over a Workspace that the test made, with the components that `make components` built. The engine
//! and the compiled tools are shared by all tests of the process; Workspace, home and Session are each test's own.
//!
//! `FLOE_COMPONENTS` names another folder of components, as it does for a build of the binary.
#![allow(dead_code, reason = "each file uses its own part")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use floe_environment::{CallOutcome, RegisteredTool, Registry, Selection, ToolCallOutput, Toolset};
use floe_protocol::{ApprovalMode, Facts, Home, OmniMessage, StopReason, ToolDefinition};
use floe_runtime::{Capability, CapabilitySet, ComponentSource, Runtime, RuntimeOptions};
use floe_session::{Observer, Session, SessionOptions};
use floe_workspace::Workspace;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A wait that no test should ever sit out.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A Session and its folders, which go with it. Made and used inside a tokio runtime.
pub(crate) struct Rig {
    pub(crate) session: Session,
    stream: Arc<Stream>,
    folder: TempDir,
}

/// What the model reads of a call, and what the host knows beside it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) stop_reason: StopReason,
    pub(crate) facts: Facts,
    /// `data:` URLs.
    pub(crate) images: Vec<String>,
    pub(crate) end: CallOutcome,
}

impl Rig {
    /// All tools, everything allowed.
    pub(crate) fn new() -> Rig {
        Rig::with(|_| {})
    }

    /// As [`Rig::new`], with options changed before the Session opens.
    pub(crate) fn with(change: impl FnOnce(&mut SessionOptions)) -> Rig {
        Rig::over(|_| {}, change)
    }

    /// As [`Rig::with`]; `furnish` fills the folder of the Workspace before the Session opens.
    pub(crate) fn over(
        furnish: impl FnOnce(&Path),
        change: impl FnOnce(&mut SessionOptions),
    ) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        furnish(&workspace);
        let stream = Arc::new(Stream::default());
        let mut options = SessionOptions {
            approval_mode: ApprovalMode::AllowAll,
            selection: Selection::Toolset(Toolset::All),
            helper: Some(env!("CARGO_BIN_EXE_sandbox-helper").into()),
            observer: Arc::clone(&stream) as Arc<dyn Observer>,
            ..SessionOptions::new(
                Home::new(folder.path().join("home")),
                Workspace::open(&workspace).unwrap(),
                registry(),
            )
        };
        change(&mut options);
        Rig {
            session: Session::open(options).unwrap(),
            stream,
            folder,
        }
    }

    /// Runs one call to its end.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.call_raw(tool, &arguments.to_string()).await
    }

    /// As [`Rig::call`], with the arguments as a model wrote them.
    pub(crate) async fn call_raw(&self, tool: &str, arguments: &str) -> Answer {
        let cancel = CancellationToken::new();
        let running = self.session.call(tool, arguments, &cancel);
        let output = tokio::time::timeout(LONG, running).await;
        output.expect("the call ends").into()
    }

    /// The folder of the Workspace.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// A folder beside the Workspace, which no tool should reach. Made when it is first asked for.
    pub(crate) fn outside(&self) -> PathBuf {
        let outside = self.folder.path().join("outside");
        fs::create_dir_all(&outside).unwrap();
        outside
    }

    /// A place in the Workspace.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.workspace().join(path)
    }

    /// Writes a file of the Workspace, and the folders above it.
    pub(crate) fn write(&self, path: impl AsRef<Path>, contents: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    /// What a file of the Workspace holds.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Vec<u8> {
        fs::read(self.path(path)).unwrap()
    }

    /// As [`Rig::read`], for text.
    pub(crate) fn read_text(&self, path: impl AsRef<Path>) -> String {
        String::from_utf8(self.read(path)).unwrap()
    }

    /// The stream of the Session so far.
    pub(crate) fn messages(&self) -> Vec<OmniMessage> {
        self.stream.0.lock().unwrap().clone()
    }
}

impl Answer {
    /// The text of a call that completed.
    #[track_caller]
    pub(crate) fn completed(&self) -> &str {
        assert_eq!(self.stop_reason, StopReason::Completed, "{self:?}");
        &self.text
    }

    /// The text of a call that failed.
    #[track_caller]
    pub(crate) fn failed(&self) -> &str {
        assert_eq!(self.stop_reason, StopReason::Failed, "{self:?}");
        &self.text
    }

    /// The text of a call that was not made.
    #[track_caller]
    pub(crate) fn aborted(&self) -> &str {
        assert_eq!(self.stop_reason, StopReason::Aborted, "{self:?}");
        &self.text
    }
}

impl From<ToolCallOutput> for Answer {
    fn from(output: ToolCallOutput) -> Answer {
        Answer {
            text: output.output,
            stop_reason: output.stop_reason,
            facts: output.facts.unwrap_or_default(),
            images: output.images,
            end: output.end,
        }
    }
}

/// The definition of a built-in tool, as it described itself when it was compiled.
pub(crate) fn definition(name: &str) -> ToolDefinition {
    let registry = registry();
    let tool = registry.get(name);
    tool.unwrap_or_else(|| panic!("no tool {name}; run: make components"))
        .definition
        .clone()
}

/// The built-in tools, on one engine for the whole process: whatever runtime a test runs on, the tools' own I/O has this one.
pub(crate) fn registry() -> Arc<Registry> {
    static SHARED: OnceLock<(tokio::runtime::Runtime, Arc<Registry>)> = OnceLock::new();
    let (_, registry) = SHARED.get_or_init(|| {
        let io = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let mut options = RuntimeOptions::new(io.handle().clone());
        options.pool = Some(64);
        let registry = load(&Runtime::new(options).unwrap());
        (io, Arc::new(registry))
    });
    Arc::clone(registry)
}

/// The built-in tools' components by name, as they were built.
pub(crate) fn components() -> Vec<(String, Vec<u8>)> {
    let found = descriptions(&built()).into_iter();
    found
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path.with_extension("wasm")).unwrap())
        })
        .collect()
}

fn built() -> PathBuf {
    std::env::var_os("FLOE_COMPONENTS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/components"),
        PathBuf::from,
    )
}

fn load(runtime: &Runtime) -> Registry {
    let mut registry = Registry::new();
    for path in descriptions(&built()) {
        let read = |extension: &str| {
            let path = path.with_extension(extension);
            fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let description: Value = serde_json::from_slice(&read("json")).unwrap();
        let definition: ToolDefinition =
            serde_json::from_value(description["definition"].clone()).unwrap();
        let declared: CapabilitySet = description["capabilities"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| Capability::from_name(name.as_str().unwrap()).unwrap())
            .collect();
        let source = ComponentSource::Precompiled {
            cwasm: read("cwasm").leak(),
            wasm: read("wasm").leak(),
        };
        let component = runtime.load(&definition.name, source, declared).unwrap();
        let sha256 = description["sha256"].as_str().unwrap().to_owned();
        let tool = RegisteredTool::component(runtime.clone(), component, definition, sha256);
        registry.insert(tool).unwrap();
    }
    registry
}

/// What is said about each component of a folder.
fn descriptions(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}; run: make components", folder.display()));
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().map(OsStr::as_bytes) == Some(b"json"))
        .collect();
    found.sort();
    found
}

/// Keeps the stream of a Session.
#[derive(Default)]
struct Stream(Mutex<Vec<OmniMessage>>);

impl Observer for Stream {
    fn message(&self, message: &OmniMessage) {
        self.0.lock().unwrap().push(message.clone());
    }
}
