//! What a login shell would set: asked once per Session of `bash -l` in the same sandbox, with the person's profile
//! files readable and nothing else of the person's, and kept by the digest of those files. Profile files are programs;
//! they never run outside the sandbox.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use floe_sandbox::{ConfinedCommand, Program, Widening, WorkspaceMode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::{EnvironmentOptions, Variables};
use crate::launch::Launch;
use crate::reports::ReportsChanged;
use crate::session::{Identity, Surroundings};
use crate::sessions::CommandLimits;
use crate::spec::Unobserved;
use crate::{CommandError, CommandSession, Status};

/// What a bash that logs in reads in the person's home, and what these files usually read in turn.
const PROFILE_FILES: [&str; 7] = [
    ".profile",
    ".bash_profile",
    ".bash_login",
    ".bashrc",
    ".bash_aliases",
    ".bash_env",
    ".cargo/env",
];
/// What it reads of the system, beside the files of `/etc/profile.d`.
const SYSTEM_FILES: [&str; 3] = ["/etc/profile", "/etc/bash.bashrc", "/etc/environment"];
/// What the profile files print goes before this.
const MARK: &[u8] = b"\0floe-login-environment\0";
const SCRIPT: &str = r"printf '\0floe-login-environment\0'; env -0";
/// Nothing sensible prints or holds more.
const LONGEST_ANSWER: usize = 1024 * 1024;
/// Changes with what is kept and how it is found.
const CACHE_FORMAT: u32 = 1;

/// Why the login shell told nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LoginFault {
    #[error("the login shell could not be started: {0}")]
    Start(CommandError),
    #[error("the login shell did not finish within {0:?}; a profile file may wait for input")]
    TooSlow(Duration),
    #[error("the login shell ended without telling its environment ({0})")]
    Silent(String),
}

/// The allowed part of a login shell's environment. Where no home is known, that of the host's own.
pub(super) async fn environment(
    options: &EnvironmentOptions,
    sandbox: &Variables,
    launcher: &Arc<dyn Launch>,
    limits: &CommandLimits,
    runtime: &Handle,
) -> Result<BTreeMap<String, String>, LoginFault> {
    let Some(home) = options.person_home.clone() else {
        return Ok(options.of_host());
    };
    let files: Vec<PathBuf> = PROFILE_FILES
        .iter()
        .map(|name| home.join(name))
        .filter(|file| file.is_file())
        .collect();
    let cache = options.cache.as_ref().map(|folder| {
        let digest = digest_of(&files, options);
        folder.join(format!("login-environment-{digest}.json"))
    });
    if let Some(known) = cache.as_deref().and_then(read_cache) {
        return Ok(options.filter(known));
    }
    let answer = ask(home, files, options, sandbox, launcher, limits, runtime).await?;
    let mut variables = options.filter(parse(&answer));
    if let Some(host) = options.of_host().get("PATH") {
        let path = variables.entry("PATH".into()).or_default();
        *path = joined_path(path, host);
    }
    if let Some(cache) = cache {
        write_cache(&cache, &variables);
    }
    Ok(variables)
}

async fn ask(
    home: PathBuf,
    files: Vec<PathBuf>,
    options: &EnvironmentOptions,
    sandbox: &Variables,
    launcher: &Arc<dyn Launch>,
    limits: &CommandLimits,
    runtime: &Handle,
) -> Result<Vec<u8>, LoginFault> {
    let started = Instant::now();
    let mut environment: BTreeMap<OsString, OsString> = sandbox.iter().cloned().collect();
    environment.extend(
        options
            .of_host()
            .into_iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    environment.insert("HOME".into(), home.into());
    environment.insert("TERM".into(), "dumb".into());
    let command = ConfinedCommand {
        program: Program::Exec {
            program: "bash".into(),
            args: vec!["-lc".into(), SCRIPT.into()],
        },
        working_directory: PathBuf::new(),
        environment: environment.into_iter().collect(),
        terminal: None,
        workspace: WorkspaceMode::default(),
        widening: Widening::default(),
    };
    let starting = Arc::clone(launcher);
    let launched = runtime
        .spawn_blocking(move || starting.launch_with_files(&command, &files))
        .await;
    let launched = match launched {
        Ok(Ok(launched)) => launched,
        Ok(Err(error)) => return Err(LoginFault::Start(error.into())),
        Err(_) => return Err(LoginFault::Silent("it could not be started".into())),
    };
    let identity = Identity {
        process_id: "login shell".into(),
        label: String::new(),
        confinement: String::new(),
        raw_output: true,
    };
    let surroundings = Surroundings {
        limits,
        observer: Arc::new(Unobserved),
        aftermath: None,
        reports_changed: ReportsChanged::default(),
        runtime,
    };
    let session =
        CommandSession::start(launched, identity, None, surroundings).map_err(LoginFault::Start)?;
    session.close_stdin();
    let too_slow = LoginFault::TooSlow(options.login_wait);
    let answer = async {
        let mut answer = Vec::new();
        loop {
            let batch = session
                .read_output(LONGEST_ANSWER, options.login_wait)
                .await
                .map_err(LoginFault::Start)?;
            for chunk in batch
                .chunks
                .into_iter()
                .filter(|chunk| chunk.channel == crate::Channel::Stdout)
            {
                answer.extend(chunk.data);
            }
            if batch.ended || answer.len() > LONGEST_ANSWER {
                return Ok(answer);
            }
        }
    };
    let answer = tokio::time::timeout_at(started + options.login_wait, answer)
        .await
        .map_err(|_| too_slow)??;
    match answer
        .windows(MARK.len())
        .rposition(|window| window == MARK)
    {
        Some(at) if session.status() == Status::Exited(0) => Ok(answer[at + MARK.len()..].to_vec()),
        _ => Err(LoginFault::Silent(match session.status() {
            Status::Exited(code) => format!("exit code {code}"),
            Status::Signaled(signal) => format!("terminated by {signal}"),
            Status::Stopped(excess) => format!("stopped: {excess}"),
            _ => "it printed too much".into(),
        })),
    }
}

/// The variables of `env -0`; what is not UTF-8 is left out.
fn parse(answer: &[u8]) -> impl Iterator<Item = (String, String)> {
    answer.split(|&byte| byte == 0).filter_map(|entry| {
        let (name, value) = std::str::from_utf8(entry).ok()?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    })
}

/// The login shell's search path, then what only the host's own has: `/etc/profile` starts PATH anew and would hide
/// the tool chains that the sandbox makes readable because the host's PATH names them.
fn joined_path(login: &str, host: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in login.split(':').chain(host.split(':')) {
        if !part.is_empty() && !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join(":")
}

fn digest_of(files: &[PathBuf], options: &EnvironmentOptions) -> String {
    let mut profile_folder: Vec<PathBuf> = std::fs::read_dir("/etc/profile.d")
        .map(|entries| {
            entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .collect()
        })
        .unwrap_or_default();
    profile_folder.sort();
    let mut digest = Sha256::new();
    let mut field = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    field(&CACHE_FORMAT.to_le_bytes());
    for file in files
        .iter()
        .map(PathBuf::as_path)
        .chain(SYSTEM_FILES.iter().map(Path::new))
        .chain(profile_folder.iter().map(PathBuf::as_path))
    {
        field(file.as_os_str().as_encoded_bytes());
        field(&std::fs::read(file).unwrap_or_default());
    }
    for name in &options.allow {
        field(name.as_bytes());
    }
    for (name, value) in options.of_host() {
        field(name.as_bytes());
        field(value.as_bytes());
    }
    digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[derive(Serialize, Deserialize)]
struct Cached {
    format: u32,
    variables: BTreeMap<String, String>,
}

fn read_cache(file: &Path) -> Option<BTreeMap<String, String>> {
    let cached: Cached = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    (cached.format == CACHE_FORMAT).then_some(cached.variables)
}

/// Writes the cache whole or not at all, for this user only. Without one the next Session asks again.
fn write_cache(file: &Path, variables: &BTreeMap<String, String>) {
    let write = || -> std::io::Result<()> {
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let cached = Cached {
            format: CACHE_FORMAT,
            variables: variables.clone(),
        };
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        temporary.write_all(&serde_json::to_vec(&cached)?)?;
        temporary.persist(file)?;
        Ok(())
    };
    if let Err(error) = write() {
        tracing::debug!(%error, "the login environment was not cached");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_env_is_read_with_line_breaks_and_without_what_is_not_text() {
        let parsed: Vec<_> = parse(b"A=1\0B=two\nlines=x\0BAD=\xFF\0EMPTY=\0nonsense\0").collect();
        let wanted = [("A", "1"), ("B", "two\nlines=x"), ("EMPTY", "")];
        assert_eq!(
            parsed,
            wanted.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn the_search_path_of_the_login_shell_comes_first_and_nothing_twice() {
        assert_eq!(
            joined_path("/usr/bin:/bin", "/opt/x:/bin::/usr/bin"),
            "/usr/bin:/bin:/opt/x"
        );
        assert_eq!(joined_path("", "/bin"), "/bin");
    }

    #[test]
    fn a_cache_is_read_back_and_a_broken_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sub/login.json");
        let variables: BTreeMap<_, _> = [("PATH".to_owned(), "/bin".to_owned())].into();
        write_cache(&file, &variables);
        assert_eq!(read_cache(&file), Some(variables));
        std::fs::write(&file, "{").unwrap();
        assert_eq!(read_cache(&file), None);
        std::fs::write(&file, r#"{"format":0,"variables":{}}"#).unwrap();
        assert_eq!(read_cache(&file), None);
    }

    #[test]
    fn the_digest_changes_with_a_profile_file_and_with_the_hosts_path() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".profile");
        std::fs::write(&file, "one").unwrap();
        let mut options = EnvironmentOptions {
            host: vec![("PATH".into(), "/bin".into())],
            ..Default::default()
        };
        let files = [file.clone()];
        let first = digest_of(&files, &options);
        assert_eq!(digest_of(&files, &options), first);
        std::fs::write(&file, "two").unwrap();
        let second = digest_of(&files, &options);
        assert_ne!(second, first);
        options.host = vec![("PATH".into(), "/usr/bin".into())];
        assert_ne!(digest_of(&files, &options), second);
    }
}
