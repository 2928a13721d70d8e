//! A place for `floe` to run in, and what came of a run.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// Homes and a Workspace that nobody else uses.
pub(crate) struct Place {
    root: TempDir,
}

/// How a run of the binary ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Place {
        let place = Place {
            root: tempfile::tempdir().unwrap(),
        };
        for folder in [place.workspace(), place.root.path().join("person")] {
            std::fs::create_dir(folder).unwrap();
        }
        place
    }

    /// `FLOE_HOME`. Not made here: a command that only looks must not make it either.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("state")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    /// A file beside the homes and the Workspace.
    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.path().join(name);
        write(&path, contents);
        path
    }

    /// A file of the Workspace.
    pub(crate) fn workspace_file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.workspace().join(name);
        write(&path, contents);
        path
    }

    /// The person's configuration.
    pub(crate) fn config(&self, text: &str) {
        write(&self.home().join("config.yaml"), text);
    }

    /// The binary with these arguments, in the Workspace, with nothing of the test's own environment but PATH.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments);
        self.prepare(&mut command);
        command
    }

    /// Gives a command this place's environment and Workspace, and no input.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("FLOE_HOME", self.home())
            .env("HOME", self.root.path().join("person"))
            .env("TERM", "xterm")
            .current_dir(self.workspace())
            .stdin(Stdio::null());
    }

    pub(crate) fn floe(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments).output().unwrap())
    }

    pub(crate) fn floe_reading(&self, arguments: &[&str], input: &[u8]) -> Ended {
        let mut child = self.spawn(self.command(arguments).stdin(Stdio::piped()));
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let writer = std::thread::spawn(move || {
            // A program that reads only a part of it closes the pipe.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        ended(output)
    }

    pub(crate) fn spawn(&self, command: &mut Command) -> Child {
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Everything below `FLOE_HOME`, but the configuration.
    pub(crate) fn state(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(&self.home(), &mut found);
        found
            .retain(|path| !path.ends_with("config.yaml") && !path.ends_with("system_config.yaml"));
        found
    }

    /// The one Trace file of this place.
    pub(crate) fn trace(&self) -> PathBuf {
        let mut traces = self.state();
        traces.retain(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        });
        assert_eq!(traces.len(), 1, "{traces:?}");
        traces.remove(0)
    }
}

impl Ended {
    /// The standard output as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// The standard output as a JSON value a line.
    pub(crate) fn json_lines(&self) -> Vec<serde_json::Value> {
        self.stdout
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }

    pub(crate) fn expect(&self, status: i32) -> &Ended {
        assert_eq!(
            self.status, status,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// A usage error that says all of `words`.
    pub(crate) fn expect_usage(&self, words: &[&str]) {
        self.expect(2);
        assert_eq!(self.stdout, "", "a usage error prints no result");
        for word in words {
            assert!(
                self.stderr.contains(word),
                "`{word}` is not in:\n{}",
                self.stderr
            );
        }
    }
}

/// The binary under test.
pub(crate) fn binary() -> PathBuf {
    let binary = match std::env::var_os("FLOE_BIN") {
        Some(binary) => PathBuf::from(binary),
        // This test is target/<profile>/deps/cli-<hash>.
        None => std::env::current_exe()
            .unwrap()
            .parent()
            .unwrap()
            .parent()
            .unwrap()
            .join("floe"),
    };
    assert!(
        binary.is_file(),
        "{} is missing; `make build` makes it",
        binary.display()
    );
    binary
}

pub(crate) fn ended(output: Output) -> Ended {
    let signal = output.status.signal();
    Ended {
        status: output
            .status
            .code()
            .unwrap_or_else(|| panic!("ended by signal {signal:?}")),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn write(path: &Path, contents: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, contents).unwrap();
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}
