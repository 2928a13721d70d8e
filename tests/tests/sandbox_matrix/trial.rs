//! A trial from both sides: the program that starts one as a process of its own, and that process.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use floe_tests::components::guest;
use libtest_mimic::{Failed, Trial};

use crate::poor_machine::{self, Accepted, Lack};
use crate::row::{Row, Walls, Who};
use crate::rows;
use crate::stage::{SECRET, SECRET_NAME, Stage};

/// The first argument of a trial's process.
const TRIAL: &str = "--trial-of-the-matrix";

/// The first argument of a further host that a row started.
const HOST: &str = "--host-of-a-row";

/// Beside the helper: the folder with the tools.
pub(crate) const TOOLS: &str = "tools";

/// The guests of `tests/guests` that rows use beside the tools of this build.
const GUESTS: [&str; 1] = ["waits"];

/// The first argument of a host on a machine that lacks something.
const POOR_HOST: &str = "--host-of-a-row-on-a-poor-machine";

/// The user that has nothing.
const NOBODY: u32 = 65534;

/// No row takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where programs are looked for: by every host the same, whoever started the matrix.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What all trials need, in a folder that every user may read.
pub(crate) struct Theatre {
    folder: tempfile::TempDir,
    /// Trials so far, for the names of their folders.
    count: AtomicUsize,
    /// Held for reading by every trial, for writing by one that is to be alone.
    floor: RwLock<()>,
}

impl Theatre {
    /// Copies this program and the helper: an ordinary user may not reach where they were built.
    pub(crate) fn open() -> Arc<Theatre> {
        let folder = tempfile::Builder::new()
            .prefix("floe-matrix-")
            .tempdir()
            .unwrap();
        allow_all_to_enter(folder.path());
        let theatre = Theatre {
            folder,
            count: AtomicUsize::new(0),
            floor: RwLock::default(),
        };
        fs::copy(std::env::current_exe().unwrap(), theatre.program()).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_sandbox-helper"), theatre.helper()).unwrap();
        for program in [theatre.program(), theatre.helper()] {
            allow_all_to_enter(&program);
        }
        theatre.copy_tools();
        Arc::new(theatre)
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("matrix")
    }

    fn helper(&self) -> PathBuf {
        self.folder.path().join("helper")
    }

    /// The tools, for rows about what a model is told.
    fn copy_tools(&self) {
        let place = self.folder.path().join(TOOLS);
        fs::create_dir(&place).unwrap();
        let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/components");
        let made = fs::read_dir(&made)
            .unwrap_or_else(|error| panic!("{}: {error}; run: make components", made.display()));
        for tool in made.map(|tool| tool.unwrap().path()) {
            fs::copy(&tool, place.join(tool.file_name().unwrap())).unwrap();
        }
        for name in GUESTS {
            fs::write(place.join(format!("{name}.wasm")), guest(name)).unwrap();
        }
        for file in fs::read_dir(&place).unwrap() {
            allow_all_to_enter(&file.unwrap().path());
        }
    }

    /// Runs the row at `index` and reports what its process said if it failed.
    fn play(&self, index: usize, walls: Walls, who: Who) -> Result<(), Failed> {
        let row = &rows::all()[index];
        let (_alone, _beside) = if row.is_alone {
            let lock = self.floor.write().unwrap_or_else(PoisonError::into_inner);
            (Some(lock), None)
        } else {
            let lock = self.floor.read().unwrap_or_else(PoisonError::into_inner);
            (None, Some(lock))
        };
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().join(number.to_string());
        fs::create_dir(&folder).unwrap();
        let mut command = Command::new(self.program());
        command
            .arg(TRIAL)
            .args([index.to_string(), walls.to_string()])
            .args([&folder, &self.helper()])
            .env_clear()
            .envs(environment())
            .current_dir("/")
            .process_group(0);
        if who == Who::Ordinary && rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
            command.uid(NOBODY).gid(NOBODY);
        }
        let result = finish(command);
        // What a row left read-only is in the way of an ordinary user only.
        if fs::remove_dir_all(&folder).is_err() {
            let _ = Command::new("chmod")
                .arg("-R")
                .arg("u+rwX")
                .arg(&folder)
                .status();
            let _ = fs::remove_dir_all(&folder);
        }
        result
    }
}

/// What a host of a trial has in its environment.
fn environment() -> [(&'static str, &'static str); 5] {
    [
        ("PATH", PATH),
        ("HOME", "/nonexistent"),
        ("LANG", "C.UTF-8"),
        ("RUST_BACKTRACE", "0"),
        (SECRET_NAME, SECRET),
    ]
}

fn allow_all_to_enter(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a trial's process to its end, which must come.
fn finish(mut command: Command) -> Result<(), Failed> {
    // One file for both streams, so that no reader is needed while it runs.
    let mut text = tempfile::tempfile().unwrap();
    command
        .stdin(Stdio::null())
        .stdout(text.try_clone().unwrap())
        .stderr(text.try_clone().unwrap());
    let mut process = command.spawn().map_err(|error| error.to_string())?;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = process.try_wait().unwrap() {
            break Some(status);
        }
        if Instant::now() > deadline {
            let _ = process.kill();
            let _ = process.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    if status.is_some_and(|status| status.success()) {
        return Ok(());
    }
    let mut said = Vec::new();
    std::io::Seek::rewind(&mut text).unwrap();
    text.read_to_end(&mut said).unwrap();
    let said = String::from_utf8_lossy(&said);
    Err(match status {
        Some(status) => format!("{status}\n{said}"),
        None => format!("not over after {} s\n{said}", PATIENCE.as_secs()),
    }
    .into())
}

/// One trial for each row that runs behind these walls for this host. Where the machine lacks something for them, that
/// is a failure in continuous integration, and a skip elsewhere.
pub(crate) fn trials(
    theatre: &Arc<Theatre>,
    walls: Walls,
    who: Who,
    missing: Option<&str>,
) -> Vec<Trial> {
    let not_root = (who == Who::Root && !rustix::process::geteuid().is_root())
        .then(|| "this program was not started by root".to_owned());
    let missing = missing.map(str::to_owned).or(not_root);
    if let Some(missing) = missing {
        let is_required = std::env::var_os("CI").is_some_and(|value| value == "true");
        let said = missing.clone();
        let trial = Trial::test(format!("[{walls}, {who}] rows run: {missing}"), move || {
            Err(said.into())
        });
        return vec![trial.with_ignored_flag(!is_required)];
    }
    let runs = |(_, row): &(usize, &Row)| row.exception(walls, who).is_none();
    let rows = rows::all().iter().enumerate().filter(runs);
    rows.map(|(index, row)| {
        let theatre = Arc::clone(theatre);
        let name = format!("{} {} [{walls}, {who}]", row.padded_id(), row.sentence);
        Trial::test(name, move || theatre.play(index, walls, who))
    })
    .collect()
}

/// Runs a row, or the host that one asked for, if this process was started for that.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let word = arguments.next()?;
    if ![TRIAL, HOST, POOR_HOST].contains(&word.as_str()) {
        return None;
    }
    let mut next = || arguments.next().unwrap();
    let last = next();
    let poor = last.split_once(' ').filter(|_| word == POOR_HOST);
    if let Some((lack, _)) = poor {
        // Before there is a second thread.
        Lack::from_word(lack).impose();
    }
    let walls = Walls::from_name(&next()).unwrap();
    let stage = Stage::set(Path::new(&next()), Path::new(&next()), walls);
    if word == HOST {
        stage.serve(&last);
    } else if let Some((_, accepted)) = poor {
        poor_machine::serve(&stage, Accepted::from_word(accepted));
    } else {
        (rows::all()[last.parse::<usize>().unwrap()].run)(&stage);
        stage.assert_outside_untouched();
    }
    Some(ExitCode::SUCCESS)
}

/// A further host over a row's folders: it starts `script` and waits to be killed.
pub(crate) fn host(stage: &Stage, script: &str) -> Command {
    process(stage, HOST, script)
}

/// A further host over a row's folders, as on a machine that lacks something, if it is started so: it runs one command.
pub(crate) fn poor_host(stage: &Stage, lack: Lack, accepted: Accepted) -> Command {
    let words = format!("{} {}", lack.word(), accepted.word());
    process(stage, POOR_HOST, &words)
}

fn process(stage: &Stage, word: &str, argument: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([word, argument, stage.walls.as_str()])
        .args([&stage.folder, &stage.helper])
        .env_clear()
        .envs(environment());
    command
}
