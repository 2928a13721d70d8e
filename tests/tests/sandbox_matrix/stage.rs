//! Where a row plays: folders of its own, a host's Sessions over them, and what stands around them.

use std::cell::{Cell, OnceCell};
use std::fs;
use std::future::Future;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use floe_command::{
    Channel, CommandError, CommandHandle, CommandOptions, CommandSessions, CommandSpec,
    EndedCommand, Observe, Status,
};
use floe_environment::{OutputRecorder, Outputs, Secrets};
use floe_sandbox::{Sandbox, SandboxOptions};
use floe_workspace::Workspace;
use tokio::runtime::Runtime;

use crate::oracle::{Oracle, set_attribute};
use crate::row::Walls;
use crate::trial;

/// The variable of the host's environment that no command may ever see, and its value.
pub(crate) const SECRET_NAME: &str = "FLOE_MATRIX_SECRET";
pub(crate) const SECRET: &str = "only-the-host-knows-5f2c";

/// What is in the files outside the Workspace: no command may read it.
pub(crate) const ORACLE: &str = "the oracle is silent";

/// What is in the person's private files: no command may read it.
pub(crate) const PRIVATE: &str = "private to the person";

/// A wait that no row should ever sit out.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// What one row has to itself.
pub(crate) struct Stage {
    /// What its commands run behind.
    pub(crate) walls: Walls,
    /// The Workspace, by its canonical path.
    pub(crate) workspace: PathBuf,
    /// A folder outside. Anybody may change it, as far as its mode goes, and nobody may have when the row is over.
    pub(crate) outside: PathBuf,
    /// The home of a person, with private files. As untouchable.
    pub(crate) person: PathBuf,
    /// The folder that holds all of these.
    pub(crate) folder: PathBuf,
    /// The helper program.
    pub(crate) helper: PathBuf,
    runtime: Runtime,
    sessions: Cell<usize>,
    oracle: OnceCell<Oracle>,
}

/// What a Session is made from; a row may change it.
pub(crate) struct Setup {
    pub(crate) sandbox: SandboxOptions,
    pub(crate) commands: CommandOptions,
}

impl Stage {
    /// Makes what a row needs in `folder`, unless a host before this one has.
    pub(crate) fn set(folder: &Path, helper: &Path, walls: Walls) -> Stage {
        let folder = folder.canonicalize().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let stage = Stage {
            walls,
            workspace: folder.join("workspace"),
            outside: folder.join("outside"),
            person: folder.join("person"),
            folder,
            helper: helper.to_owned(),
            runtime,
            sessions: Cell::new(0),
            oracle: OnceCell::new(),
        };
        if !stage.outside.exists() {
            stage.build();
        }
        stage
    }

    fn build(&self) {
        for folder in [&self.workspace, &self.outside, &self.person] {
            fs::create_dir(folder).unwrap();
        }
        let outside = |path: &str, mode: u32| {
            put(&self.outside.join(path), &format!("{ORACLE}\n"));
            fs::set_permissions(self.outside.join(path), fs::Permissions::from_mode(mode)).unwrap();
        };
        outside("file", 0o666);
        outside("folder/inner", 0o666);
        outside("program", 0o777);
        outside(".git/config", 0o666);
        outside(".git/hooks/pre-commit", 0o777);
        symlink("file", self.outside.join("link")).unwrap();
        set_attribute(&self.outside.join("file"), "user.oracle", ORACLE);
        for folder in ["", "folder", ".git", ".git/hooks"] {
            let anybody = fs::Permissions::from_mode(0o777);
            fs::set_permissions(self.outside.join(folder), anybody).unwrap();
        }
        for path in [
            ".ssh/id_rsa",
            ".aws/credentials",
            ".netrc",
            ".config/gh/hosts.yml",
            ".bash_history",
            ".docker/config.json",
            ".gnupg/private-keys-v1.d/key",
            ".cargo/credentials.toml",
        ] {
            put(&self.person.join(path), &format!("{PRIVATE}\n"));
        }
    }

    /// A folder of the row's own that is outside the Workspace and not watched.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        let place = self.folder.join("places").join(name);
        fs::create_dir_all(&place).unwrap();
        place
    }

    /// Writes a file of the Workspace from outside the walls, with the folders that it needs.
    pub(crate) fn put(&self, path: &str, text: &str) {
        put(&self.workspace.join(path), text);
    }

    /// What a file of the Workspace holds.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.workspace.join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Whether the Workspace has that, even as a link to nowhere.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.workspace.join(path).symlink_metadata().is_ok()
    }

    /// A Session with the default policy and without a login shell.
    pub(crate) fn session(&self) -> Session<'_> {
        self.session_with(|_| {})
    }

    /// A Session whose options `change` has changed. From the first one on, nothing outside may change any more.
    pub(crate) fn session_with(&self, change: impl FnOnce(&mut Setup)) -> Session<'_> {
        self.oracle
            .get_or_init(|| Oracle::look(&self.untouchable()));
        let number = self.sessions.replace(self.sessions.get() + 1);
        let own = self
            .folder
            .join(format!("sessions/{}-{number}", std::process::id()));
        let make = |name: &str| {
            let path = own.join(name);
            fs::create_dir_all(&path).unwrap();
            path
        };
        let opened = Workspace::open(&self.workspace).unwrap();
        let mut sandbox = SandboxOptions::new(
            opened.fd().try_clone_to_owned().unwrap(),
            opened.canonical_path().to_owned(),
            make("home"),
            make("tmp"),
            make("outputs"),
        );
        sandbox.helper = self.helper.clone();
        sandbox.person_home = Some(self.person.clone());
        self.walls.force(&mut sandbox);
        let mut commands = CommandOptions::new(opened);
        let notes = Arc::new(Notes::default());
        commands.observer = Arc::clone(&notes) as _;
        let outputs = Outputs::new(make("outputs"), Secrets::default());
        commands.record = Some(Arc::new(OutputRecorder(outputs)));
        commands.environment.person_home = None;
        let mut setup = Setup { sandbox, commands };
        change(&mut setup);
        let sandbox = Arc::new(Sandbox::new(setup.sandbox).unwrap());
        let commands = {
            let _inside = self.runtime.enter();
            CommandSessions::new(Arc::clone(&sandbox) as _, setup.commands)
        };
        Session {
            stage: self,
            folder: own,
            notes,
            sandbox,
            commands,
        }
    }

    /// Waits for what is async.
    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// A further host over the same folders, a process of its own: it starts `script`, copies its output and waits.
    pub(crate) fn host(&self, script: &str) -> Command {
        trial::host(self, script)
    }

    /// What [`Stage::host`]'s process does.
    pub(crate) fn serve(&self, script: &str) {
        let session = self.session();
        let command = self.wait(session.start(script));
        loop {
            let batch = self.wait(command.read_output(64 * 1024, LONG)).unwrap();
            print!("{}", batch.text());
            std::io::Write::flush(&mut std::io::stdout()).unwrap();
            if batch.ended {
                break;
            }
        }
        loop {
            std::thread::park();
        }
    }

    /// Nothing outside has changed since the first Session.
    pub(crate) fn assert_outside_untouched(&self) {
        let Some(before) = self.oracle.get() else {
            return;
        };
        let differences = before.differences(&Oracle::look(&self.untouchable()));
        assert!(
            differences.is_empty(),
            "changed outside the Workspace:\n{}",
            differences.join("\n")
        );
    }

    fn untouchable(&self) -> [PathBuf; 2] {
        [self.outside.clone(), self.person.clone()]
    }
}

/// Writes a file with the folders that it needs.
pub(crate) fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Waits until `condition` holds.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The processes of this machine whose command line holds `word`.
pub(crate) fn processes_with(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(word))
        .count()
}

/// A host's Session.
pub(crate) struct Session<'s> {
    stage: &'s Stage,
    /// What is the Session's own on the host: `home`, `tmp`, `outputs`.
    pub(crate) folder: PathBuf,
    pub(crate) notes: Arc<Notes>,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) commands: Arc<CommandSessions>,
}

/// Keeps what the host was told without asking.
#[derive(Default)]
pub(crate) struct Notes {
    warnings: Mutex<Vec<(String, String)>>,
}

impl Notes {
    /// Codes and texts.
    pub(crate) fn warnings(&self) -> Vec<(String, String)> {
        self.warnings.lock().unwrap().clone()
    }

    /// The texts of one code.
    pub(crate) fn of(&self, code: &str) -> Vec<String> {
        let all = self.warnings().into_iter();
        all.filter(|warning| warning.0 == code)
            .map(|warning| warning.1)
            .collect()
    }
}

impl Observe for Notes {
    fn warning(&self, code: &'static str, message: &str) {
        let warning = (code.to_owned(), message.to_owned());
        self.warnings.lock().unwrap().push(warning);
    }

    fn ended(&self, _: EndedCommand) {}
}

/// How a command ended and what it wrote.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: Status,
    /// Both streams in order of arrival.
    pub(crate) text: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// What was lost because nobody read.
    pub(crate) dropped: u64,
}

impl Outcome {
    pub(crate) fn is_success(&self) -> bool {
        self.status == Status::Exited(0)
    }
}

/// Runs each of its arguments as a script of its own and names those that went through.
const ATTACKS: &str = r#"for attack; do
    if timeout -s KILL 20 bash -c "$attack" >/tmp/said 2>&1 </dev/null; then echo "WENT THROUGH: $attack"; cat /tmp/said; fi
done"#;

impl Session<'_> {
    /// Starts a script.
    pub(crate) async fn start(&self, script: &str) -> CommandHandle {
        self.try_start(CommandSpec::shell(script))
            .await
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts a command, which may be refused.
    pub(crate) async fn try_start(&self, spec: CommandSpec) -> Result<CommandHandle, CommandError> {
        let handle = self.commands.spawn(spec).await?;
        assert_eq!(handle.confinement(), self.stage.walls.as_str());
        Ok(handle)
    }

    /// Runs a script to its end.
    pub(crate) fn run(&self, script: &str) -> Outcome {
        self.run_spec(CommandSpec::shell(script))
    }

    /// Runs a Python program to its end.
    pub(crate) fn python(&self, program: &str) -> Outcome {
        self.run_spec(CommandSpec {
            command: "python3".into(),
            args: Some(vec!["-c".into(), program.into()]),
            ..CommandSpec::default()
        })
    }

    /// Runs a command to its end.
    pub(crate) fn run_spec(&self, spec: CommandSpec) -> Outcome {
        self.stage.wait(async {
            let handle = self.try_start(spec).await;
            finish(&handle.unwrap_or_else(|error| panic!("{error}"))).await
        })
    }

    /// Runs a script that must succeed, and returns what it printed.
    pub(crate) fn ok(&self, script: &str) -> String {
        let outcome = self.run(script);
        assert!(outcome.is_success(), "{script}\n{outcome:?}");
        outcome.stdout
    }

    /// Runs a script that must fail, and returns everything it said.
    pub(crate) fn refused(&self, script: &str) -> String {
        let outcome = self.run(script);
        let failed = matches!(outcome.status, Status::Exited(code) if code != 0);
        assert!(failed, "{script} went through: {outcome:?}");
        outcome.text
    }

    /// Runs many scripts, each of which must fail.
    pub(crate) fn all_refused<S: AsRef<str>>(&self, attacks: &[S]) {
        let attacks = attacks.iter().map(|attack| attack.as_ref().to_owned());
        let arguments = ["-c", ATTACKS, "bash"].map(str::to_owned).into_iter();
        let outcome = self.run_spec(CommandSpec {
            command: "bash".into(),
            args: Some(arguments.chain(attacks).collect()),
            ..CommandSpec::default()
        });
        assert!(
            outcome.is_success() && outcome.text.is_empty(),
            "{:?}\n{}",
            outcome.status,
            outcome.text
        );
    }
}

/// Reads a command to its end.
pub(crate) async fn finish(command: &CommandHandle) -> Outcome {
    let (mut stdout, mut stderr, mut text) = (Vec::new(), Vec::new(), Vec::new());
    let mut dropped = 0;
    let deadline = Instant::now() + LONG;
    loop {
        let batch = command.read_output(64 * 1024, LONG).await.unwrap();
        dropped += batch.dropped;
        for chunk in batch.chunks {
            text.extend_from_slice(&chunk.data);
            match chunk.channel {
                Channel::Stdout => stdout.extend(chunk.data),
                Channel::Stderr => stderr.extend(chunk.data),
            }
        }
        if batch.ended {
            break;
        }
        assert!(Instant::now() < deadline, "the command did not end");
    }
    let text_of = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Outcome {
        status: command.status(),
        text: text_of(text),
        stdout: text_of(stdout),
        stderr: text_of(stderr),
        dropped,
    }
}

/// Reads a command until it has written `wanted`.
pub(crate) async fn read_until(command: &CommandHandle, wanted: &str) -> String {
    let mut text = String::new();
    let deadline = Instant::now() + LONG;
    while !text.contains(wanted) {
        let batch = command.read_output(64 * 1024, LONG).await.unwrap();
        text += &batch.text();
        assert!(!batch.ended || text.contains(wanted), "ended with {text:?}");
        assert!(
            Instant::now() < deadline,
            "never wrote {wanted:?}: {text:?}"
        );
    }
    text
}
