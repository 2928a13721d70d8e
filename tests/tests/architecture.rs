//! Keeps the architecture: which crate may use which, and where the dangerous tools of the trade may be used at all.
//! The order is the table in docs/architecture.md.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The host's crates, lowest first. A crate uses only crates before it.
const ORDER: [&str; 14] = [
    "protocol",
    "trace",
    "workspace",
    "sandbox",
    "command",
    "network",
    "language",
    "runtime",
    "environment",
    "model",
    "session",
    "mcp",
    "server",
    "cli",
];

/// Crates of others that only these of ours may use: who else needs one has the wrong job.
const CONFINED: [(&str, &[&str]); 8] = [
    ("wasmtime", &["runtime"]),
    ("wasmtime-wasi", &["runtime"]),
    ("reqwest", &["network", "model", "mcp", "server"]),
    ("landlock", &["sandbox"]),
    ("seccompiler", &["sandbox"]),
    ("clap", &["cli"]),
    ("anyhow", &["cli"]),
    ("wit-component", &["cli"]),
];

/// The crates whose sources may hold `unsafe`.
const UNSAFE: [&str; 2] = ["sandbox", "runtime"];

struct Crate {
    name: String,
    folder: PathBuf,
    /// Every dependency by the name of its package, those of tests and of build scripts as well.
    dependencies: Vec<Dependency>,
}

struct Dependency {
    package: String,
    is_for_tests: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// The crates below `host/`, as cargo itself reads their manifests.
fn host_crates() -> Vec<Crate> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|package| {
            let folder = Path::new(package["manifest_path"].as_str()?)
                .parent()?
                .to_owned();
            if folder.parent()? != root().join("host") {
                return None;
            }
            let dependencies = package["dependencies"].as_array()?.iter();
            Some(Crate {
                name: package["name"].as_str()?.to_owned(),
                folder,
                dependencies: dependencies
                    .filter_map(|dependency| {
                        Some(Dependency {
                            package: dependency["name"].as_str()?.to_owned(),
                            is_for_tests: dependency["kind"] == "dev",
                        })
                    })
                    .collect(),
            })
        })
        .collect()
}

fn rank(name: &str) -> Option<usize> {
    let job = name.strip_prefix("floe-")?;
    ORDER.iter().position(|known| *known == job)
}

#[test]
fn every_folder_below_host_is_a_crate_of_the_table_and_is_named_after_it() {
    let crates = host_crates();
    for entry in std::fs::read_dir(root().join("host")).unwrap() {
        let folder = entry.unwrap().path();
        assert!(
            crates.iter().any(|known| known.folder == folder),
            "{} is no member of the workspace",
            folder.display()
        );
    }
    for known in &crates {
        let folder = known.folder.file_name().unwrap().to_str().unwrap();
        assert_eq!(known.name, format!("floe-{folder}"));
        assert!(
            rank(&known.name).is_some(),
            "{} is not in the table of the architecture",
            known.name
        );
    }
}

#[test]
fn a_crate_uses_only_crates_above_it_in_tests_too() {
    for known in host_crates() {
        let own = rank(&known.name).unwrap();
        for dependency in known
            .dependencies
            .iter()
            .filter(|one| one.package.starts_with("floe-"))
        {
            let other = rank(&dependency.package);
            assert!(
                other.is_some_and(|other| other < own),
                "{} uses {}, which is not above it in the table",
                known.name,
                dependency.package
            );
        }
    }
}

#[test]
fn crates_of_others_that_have_one_place_are_used_only_there() {
    for known in host_crates() {
        let job = known.name.trim_start_matches("floe-").to_owned();
        for dependency in known.dependencies.iter().filter(|one| !one.is_for_tests) {
            let confined = CONFINED
                .iter()
                .find(|(package, _)| *package == dependency.package);
            if let Some((package, places)) = confined {
                assert!(
                    places.contains(&job.as_str()),
                    "{} uses {package}; its places are {places:?}",
                    known.name
                );
            }
        }
    }
}

#[test]
fn unsafe_code_lives_only_in_the_sandbox_and_where_compiled_components_are_loaded() {
    for known in host_crates() {
        let job = known.name.trim_start_matches("floe-");
        if UNSAFE.contains(&job) {
            continue;
        }
        for file in sources(&known.folder.join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            for (index, line) in text.lines().enumerate() {
                assert!(
                    !holds_unsafe_code(line),
                    "{}:{}: {line}",
                    file.display(),
                    index + 1
                );
            }
        }
    }
}

/// Whether the keyword stands here, and not the word of a text or a comment, which is not followed by what the keyword is.
fn holds_unsafe_code(line: &str) -> bool {
    let is_part_of_a_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices("unsafe").any(|(start, word)| {
        let begins = !line[..start].ends_with(is_part_of_a_name);
        let rest = line[start + word.len()..].trim_start();
        let next = rest
            .split(|c| !is_part_of_a_name(c))
            .next()
            .unwrap_or_default();
        let is_keyword = rest.starts_with(['{', '('])
            || ["fn", "impl", "extern", "trait", "async"].contains(&next);
        begins && is_keyword && !line[..start].contains("//")
    })
}

#[test]
fn unsafe_code_is_told_from_the_word() {
    for code in [
        "unsafe { libc::getpid() }",
        "pub unsafe fn load()",
        "unsafe impl Send for Held {}",
        "#[unsafe(no_mangle)]",
        "let bytes = unsafe{",
    ] {
        assert!(holds_unsafe_code(code), "{code}");
    }
    for text in [
        "possible (no walls; only with --unsafe-no-sandbox or `shell.unsafe_no_sandbox`)",
        "// unsafe { }",
        "more.unsafe_no_sandbox",
        "fn holds_unsafe() {}",
    ] {
        assert!(!holds_unsafe_code(text), "{text}");
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
