//! The built `floe mcp` under clients that others wrote: the official Python SDK, by every lifecycle that it knows, and the command line of
//! the MCP Inspector. `make test-mcp` installs the two and runs this.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Where `make test-mcp` installed the clients.
fn clients() -> PathBuf {
    PathBuf::from(std::env::var_os("MCP_CLIENTS").expect("run `make test-mcp`"))
}

/// The binary that `make build` left beside this test.
fn floe() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("floe")
}

/// A Workspace and a home that nobody else uses.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        for folder in ["workspace", "person"] {
            std::fs::create_dir(place.0.path().join(folder)).unwrap();
        }
        place
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        Command::new(program)
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("FLOE_HOME", self.0.path().join("state"))
            .env("HOME", self.0.path().join("person"))
            .current_dir(self.0.path().join("workspace"))
            .output()
            .unwrap()
    }
}

fn python_sdk(mode: &str) -> String {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp-clients/python_sdk.py");
    let (program, floe) = (program.to_str().unwrap().to_owned(), floe());
    let output = Place::new().run(
        &clients().join("python/bin/python"),
        &[&program, mode, floe.to_str().unwrap()],
    );
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
#[ignore = "needs the clients: make test-mcp"]
fn the_python_sdk_lists_calls_cancels_and_answers_questions_after_a_handshake() {
    assert_eq!(python_sdk("legacy"), "2025-11-25");
}

#[test]
#[ignore = "needs the clients: make test-mcp"]
fn the_python_sdk_does_the_same_by_the_revision_without_a_handshake() {
    assert_eq!(python_sdk("auto"), "2026-07-28");
}

#[test]
#[ignore = "needs the clients: make test-mcp"]
fn the_inspector_finds_the_tools_portable_and_calls_them() {
    let inspector = clients().join("node/node_modules/.bin/mcp-inspector");
    if !inspector.exists() {
        println!("skipped: the Inspector is not installed, because there is no Node.js");
        return;
    }
    let (place, floe) = (Place::new(), floe());
    let home = format!("FLOE_HOME={}", place.0.path().join("state").display());
    let ask = |arguments: &[&str]| {
        let mut line = vec![
            "--cli",
            "-e",
            &home,
            floe.to_str().unwrap(),
            "mcp",
            "--toolset",
            "all",
        ];
        line.extend(arguments);
        let output = place.run(&inspector, &line);
        let stdout: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (output.status.code(), stdout)
    };
    // With `--strict` a schema that some models do not take is a failure.
    let (status, list) = ask(&["--method", "tools/list", "--strict"]);
    assert_eq!(status, Some(0), "{list}");
    let call = ["--method", "tools/call", "--tool-name"];
    let (status, result) =
        ask(&[&call[..], &["exec_command", "--tool-arg", "cmd=echo one"]].concat());
    assert_eq!(status, Some(0), "{result}");
    assert_eq!(result["content"][0]["text"], "one\n");
    let (status, result) = ask(&[&call[..], &["list", "--tool-arg", "path=/etc"]].concat());
    assert_ne!(status, Some(0), "{result}");
    assert_eq!(result["isError"], true);
}
