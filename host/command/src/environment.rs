//! The environment of a command: nothing is inherited. It starts from what a login shell would set, by an allow list,
//! and ends with what no one may override.

mod git_identity;
mod login;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::CommandError;
use crate::launch::Launch;
use crate::sessions::CommandLimits;
use crate::spec::Observe;

/// What no one may override (spec/environment.md 1.5): nothing asks, nothing pages, nothing colours.
pub const HARDENED: [(&str, &str); 6] = [
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
];

/// What is taken from the login shell by default. A `*` at the end stands for any rest.
pub const DEFAULT_ALLOWED: [&str; 8] = [
    "PATH", "LANG", "LC_*", "TZ", "CI", "USER", "LOGNAME", "SHELL",
];

/// Files that a shell would run before the command.
const NEVER: [&str; 2] = ["BASH_ENV", "ENV"];

/// A variable of more bytes is not taken from the login shell: `execve` refuses 128 KiB, and nothing sensible needs
/// this much.
const LONGEST_INHERITED: usize = 64 * 1024;
/// `execve` refuses a `NAME=value` of this many bytes, its NUL included.
const LONGEST_VARIABLE: usize = 128 * 1024;
/// All variables together; what is left of the kernel's 2 MiB is for arguments.
const LONGEST_ENVIRONMENT: usize = 1024 * 1024;

/// Where commands look for programs when nothing else says so.
const PLAIN_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Where the environment comes from.
#[derive(Debug, Clone)]
pub struct EnvironmentOptions {
    /// The names that are taken from the login shell; a `*` at the end stands for any rest.
    pub allow: Vec<String>,
    /// Secrets and settings that the person gave for commands.
    pub vault: Vec<(String, String)>,
    /// The person's home, where the profile files and the git configuration lie. Without one no login shell is asked.
    pub person_home: Option<PathBuf>,
    /// Where what the login shell said is kept, by the digest of the profile files.
    pub cache: Option<PathBuf>,
    /// The host's own environment: what the login shell starts from, and what is used where it fails.
    pub host: Vec<(OsString, OsString)>,
    /// How long the login shell may take.
    pub login_wait: Duration,
}

impl Default for EnvironmentOptions {
    /// The default allow list, no vault, no cache, this process's own home and environment, two seconds.
    fn default() -> EnvironmentOptions {
        EnvironmentOptions {
            allow: DEFAULT_ALLOWED.map(str::to_owned).to_vec(),
            vault: Vec::new(),
            person_home: std::env::home_dir(),
            cache: None,
            host: std::env::vars_os().collect(),
            login_wait: Duration::from_secs(2),
        }
    }
}

impl EnvironmentOptions {
    fn allows(&self, name: &str) -> bool {
        !NEVER.contains(&name)
            && self
                .allow
                .iter()
                .any(|allowed| match allowed.strip_suffix('*') {
                    Some(start) => name.starts_with(start),
                    None => name == allowed,
                })
    }

    /// Of `variables` those that commands may have.
    fn filter(
        &self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> BTreeMap<String, String> {
        variables
            .into_iter()
            .filter(|(name, value)| {
                self.allows(name) && is_name(name) && name.len() + value.len() <= LONGEST_INHERITED
            })
            // An empty one finds nothing, and hides that there is none.
            .filter(|(name, value)| name != "PATH" || !value.is_empty())
            .collect()
    }

    /// The allowed part of the host's own environment.
    fn of_host(&self) -> BTreeMap<String, String> {
        let text = |(name, value): &(OsString, OsString)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        };
        self.filter(self.host.iter().filter_map(text))
    }
}

/// What every command of a Session starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Base {
    variables: BTreeMap<String, String>,
    /// What the sandbox sets: HOME, TMPDIR and where tool chains lie.
    sandbox: Variables,
}

/// Names and values as processes have them.
pub(crate) type Variables = Vec<(OsString, OsString)>;

impl Base {
    fn new(
        login: BTreeMap<String, String>,
        identity: Vec<(String, String)>,
        sandbox: Variables,
        options: &EnvironmentOptions,
    ) -> Base {
        let mut variables = login;
        variables
            .entry("PATH".into())
            .or_insert_with(|| PLAIN_PATH.into());
        if !variables.contains_key("LANG") && !variables.contains_key("LC_ALL") {
            variables.insert("LANG".into(), "C.UTF-8".into());
        }
        variables.extend(identity);
        variables.extend(options.vault.iter().cloned());
        variables.retain(|name, _| !NEVER.contains(&name.as_str()));
        Base { variables, sandbox }
    }

    /// The whole environment of one command: the base, what the call adds, what the sandbox sets, what leads it to the
    /// network, what is hardened; later ones win.
    pub(crate) fn compose(
        &self,
        added: &[(String, String)],
        network: &[(String, String)],
    ) -> Result<Variables, CommandError> {
        let mut all: BTreeMap<OsString, OsString> = BTreeMap::new();
        for (name, value) in &self.variables {
            check(name, value)?;
            all.insert(name.into(), value.into());
        }
        for (name, value) in added {
            check(name, value)?;
            if !NEVER.contains(&name.as_str()) {
                all.insert(name.into(), value.into());
            }
        }
        all.extend(self.sandbox.iter().cloned());
        all.extend(
            network
                .iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        all.extend(HARDENED.map(|(name, value)| (name.into(), value.into())));
        let total: usize = all
            .iter()
            .map(|(name, value)| name.len() + value.len() + 2)
            .sum();
        if total > LONGEST_ENVIRONMENT {
            return Err(CommandError::Invalid {
                message: format!(
                    "the environment has {total} bytes (limit {LONGEST_ENVIRONMENT}); pass large values in files"
                ),
            });
        }
        Ok(all.into_iter().collect())
    }
}

/// Finds out what every command starts from: the login shell's environment, or the host's with a warning, and the
/// person's name for git.
pub(crate) async fn find_base(
    options: &EnvironmentOptions,
    launcher: &Arc<dyn Launch>,
    observer: &Arc<dyn Observe>,
    limits: &CommandLimits,
    runtime: &Handle,
) -> Base {
    let home = options.person_home.clone();
    let known = Arc::clone(launcher);
    let found = runtime.spawn_blocking(move || {
        let identity = home.map(|home| git_identity::read(&home));
        (identity.unwrap_or_default(), known.environment())
    });
    let (identity, sandbox) = found.await.unwrap_or_default();
    let login = login::environment(options, &sandbox, launcher, limits, runtime).await;
    let login = login.unwrap_or_else(|fault| {
        let fault = fault.to_string();
        observer.warning(
            "login_environment",
            &format!(
                "{}; commands use the PATH of the host instead",
                fault.trim_end_matches('.')
            ),
        );
        options.of_host()
    });
    Base::new(login, identity, sandbox, options)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

fn check(name: &str, value: &str) -> Result<(), CommandError> {
    let shown = name
        .chars()
        .take(64)
        .collect::<String>()
        .escape_debug()
        .to_string();
    let message = if !is_name(name) {
        format!("\"{shown}\" is no name of an environment variable")
    } else if value.contains('\0') {
        format!("the environment variable {shown} holds a NUL byte")
    } else if name.len() + value.len() + 2 > LONGEST_VARIABLE {
        let length = value.len();
        format!(
            "the environment variable {shown} has {length} bytes (limit {LONGEST_VARIABLE}); pass large values in files"
        )
    } else {
        return Ok(());
    };
    Err(CommandError::Invalid { message })
}

#[cfg(test)]
mod tests;
