//! Finds and reads the configuration files. Reading is all it does: a fault in any file means that nothing runs.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use floe_language::ServerSettings;
use floe_protocol::{AgentId, Home};

use super::agent::AGENT_HELP;
use super::document::{Document, MAX_BYTES, MAX_PROJECT_BYTES, REFERENCE_HELP, suggestion};
use super::narrow::narrow;
use super::{AgentConfig, Config, ConfigFault, ConfigFaults};

/// Where a project keeps its configuration, below its Workspace.
pub(crate) const PROJECT_FILE: &str = ".floe/config.yaml";

/// The person's configuration, narrowed by the project's; `project` is the Workspace's canonical folder.
pub(crate) fn load(home: &Home, project: Option<&Path>) -> Result<Config, ConfigFaults> {
    let file = home.config();
    let config = match read(&file, MAX_BYTES)? {
        Some(text) => user(&Document {
            file: &file,
            text: &text,
            help: REFERENCE_HELP,
        })?,
        None => Config::default(),
    };
    let Some(file) = project.map(|folder| folder.join(PROJECT_FILE)) else {
        return Ok(config);
    };
    match read(&file, MAX_PROJECT_BYTES)? {
        Some(text) => narrow(
            &config,
            &Document {
                file: &file,
                text: &text,
                help: REFERENCE_HELP,
            },
        ),
        None => Ok(config),
    }
}

/// The agent's own file, where it has one.
pub(crate) fn load_agent(
    home: &Home,
    agent: &AgentId,
) -> Result<Option<AgentConfig>, ConfigFaults> {
    let file = home.agent_config(agent);
    match read(&file, MAX_BYTES)? {
        Some(text) => AgentConfig::parse(&Document {
            file: &file,
            text: &text,
            help: AGENT_HELP,
        })
        .map(Some),
        None => Ok(None),
    }
}

/// Every configuration file that was found, each with its faults. An agent that names a tool which is not among `known` has one,
/// while its Sessions only leave that tool out.
pub(crate) fn check(
    home: &Home,
    project: &Path,
    known: &[String],
) -> Vec<(PathBuf, Result<(), ConfigFaults>)> {
    let mut checked = Vec::new();
    let user_file = home.config();
    let user_result = load(home, None);
    if user_file.exists() || user_result.is_err() {
        checked.push((
            user_file,
            user_result.as_ref().map(|_| ()).map_err(Clone::clone),
        ));
    }
    let project_file = project.join(PROJECT_FILE);
    let narrowed = read(&project_file, MAX_PROJECT_BYTES).and_then(|text| match text {
        Some(text) => {
            let base = user_result.unwrap_or_default();
            narrow(
                &base,
                &Document {
                    file: &project_file,
                    text: &text,
                    help: REFERENCE_HELP,
                },
            )
            .map(|_| true)
        }
        None => Ok(false),
    });
    match narrowed {
        Ok(false) => {}
        Ok(true) => checked.push((project_file, Ok(()))),
        Err(faults) => checked.push((project_file, Err(faults))),
    }
    for agent in agents(home) {
        let file = home.agent_config(&agent);
        match load_agent(home, &agent) {
            Ok(None) => {}
            Ok(Some(agent)) => {
                let result = provided(&agent, &file, known);
                checked.push((file, result));
            }
            Err(faults) => checked.push((file, Err(faults))),
        }
    }
    checked
}

/// Refuses names in an agent's `tools.builtin` that nothing provides.
fn provided(agent: &AgentConfig, file: &Path, known: &[String]) -> Result<(), ConfigFaults> {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let names = agent
        .builtin()
        .unwrap_or_default()
        .iter()
        .map(|tool| tool.name.as_str());
    let faults: Vec<ConfigFault> = names
        .filter(|name| !known.contains(name))
        .map(|name| ConfigFault {
            file: file.to_owned(),
            line: None,
            key: "tools.builtin".into(),
            reason: format!("names `{name}`, which nothing provides."),
            remedy: suggestion(name, &known),
        })
        .collect();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(ConfigFaults(faults))
    }
}

/// The agents that have a folder, by name.
fn agents(home: &Home) -> Vec<AgentId> {
    let mut agents: Vec<AgentId> = std::fs::read_dir(home.agents())
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    agents.sort();
    agents
}

fn user(document: &Document<'_>) -> Result<Config, ConfigFaults> {
    let config: Config = document.parse()?;
    let mut faults = Vec::new();
    if config.max_turns == 0 || config.max_turns < -1 {
        faults.push(document.fault(
            &["max_turns"],
            "is no number of turns.",
            "Write 1 or more, or -1 for no limit.",
        ));
    }
    let names = config
        .shell
        .env_allow
        .iter()
        .filter(|name| name.is_empty() || name.contains('='));
    for name in names {
        let reason = format!(
            "holds `{}`, which is no name of a variable.",
            name.escape_debug()
        );
        faults.push(document.fault(
            &["shell", "env_allow"],
            reason,
            "Write names such as PATH or LC_*.",
        ));
    }
    if let Some(address) = &config.openai.base_url
        && !address.starts_with("https://")
        && !address.starts_with("http://")
    {
        let reason = format!("is no web address: `{}`.", address.escape_debug());
        faults.push(document.fault(
            &["openai", "base_url"],
            reason,
            "It starts with https:// or http://.",
        ));
    }
    if config.openai.idle_timeout_s == 0 {
        let reason = "is no time to wait.";
        faults.push(document.fault(
            &["openai", "idle_timeout_s"],
            reason,
            "Write 1 or more seconds.",
        ));
    }
    for (name, secret) in &config.secrets {
        if let Some(reason) = secret.fault(name) {
            let remedy = "Write NAME: {env: VARIABLE, hosts: [HOST]}, or file: instead of env:.";
            faults.push(document.fault(&["secrets", name], reason, remedy));
        }
    }
    if let Err(reason) = config.web_search.engine() {
        let remedy = "Write an address such as http://127.0.0.1:8888/search?q={query}&format=json.";
        faults.push(document.fault(&["web_search", "url"], reason, remedy));
    }
    if let Err((name, reason)) = ServerSettings::with(&config.language_servers) {
        let remedy = "Write NAME: {command: [PROGRAM, ARGUMENT], languages: {LANGUAGE: [ENDING]}}.";
        faults.push(document.fault(&["language_servers", &name], reason, remedy));
    }
    if faults.is_empty() {
        Ok(config)
    } else {
        Err(ConfigFaults(faults))
    }
}

/// The text of a file; none where there is no such file.
fn read(file: &Path, most: u64) -> Result<Option<String>, ConfigFaults> {
    let fault = |reason: String, remedy: &str| {
        ConfigFaults::from(ConfigFault {
            file: file.to_owned(),
            line: None,
            key: String::new(),
            reason,
            remedy: remedy.into(),
        })
    };
    let unreadable = |error: std::io::Error| {
        fault(
            format!("cannot be read: {error}."),
            "Make it readable for you, or remove it.",
        )
    };
    // Looked at before it is opened, so that a pipe in its place cannot stop the program.
    match std::fs::metadata(file) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
        Ok(metadata) if !metadata.is_file() => {
            return Err(fault(
                "is no file.".into(),
                "Put a file of YAML there, or remove it.",
            ));
        }
        Ok(metadata) if metadata.len() > most => {
            return Err(fault(
                format!(
                    "is {} bytes long; this one may have {most}.",
                    metadata.len()
                ),
                "`floe config` prints one to start from.",
            ));
        }
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    std::fs::File::open(file)
        .and_then(|opened| opened.take(most).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        ConfigFaults::from(ConfigFault {
            file: file.to_owned(),
            line: Some(line),
            key: String::new(),
            reason: "is not UTF-8.".into(),
            remedy: "Save it as UTF-8.".into(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        (folder, home)
    }

    #[test]
    fn without_a_file_the_defaults_hold() {
        let (_folder, home) = home();
        assert_eq!(load(&home, None).unwrap(), Config::default());
    }

    #[test]
    fn a_folder_or_a_text_that_is_not_utf_8_in_place_of_the_file_is_refused() {
        let (_folder, home) = home();
        std::fs::create_dir(home.config()).unwrap();
        assert!(
            load(&home, None)
                .unwrap_err()
                .to_string()
                .contains("is no file.")
        );
        std::fs::remove_dir(home.config()).unwrap();
        std::fs::write(home.config(), b"model: x\n# \xff\n").unwrap();
        let message = load(&home, None).unwrap_err().to_string();
        assert!(
            message.contains("config.yaml:2: is not UTF-8."),
            "{message}"
        );
    }

    #[test]
    fn a_projects_file_that_is_longer_than_any_project_needs_is_not_read() {
        let (folder, home) = home();
        let project = folder.path().join("project");
        std::fs::create_dir_all(project.join(".floe")).unwrap();
        let deep = "shell: ".to_owned() + &"{a: ".repeat(100_000);
        std::fs::write(project.join(PROJECT_FILE), deep).unwrap();
        let message = load(&home, Some(&project)).unwrap_err().to_string();
        assert!(
            message.contains("is 400007 bytes long; this one may have 65536."),
            "{message}"
        );
    }

    #[test]
    fn values_that_cannot_be_meant_are_refused() {
        let (_folder, home) = home();
        std::fs::write(
            home.config(),
            "max_turns: 0\nopenai:\n  base_url: example.com\n",
        )
        .unwrap();
        let ConfigFaults(faults) = load(&home, None).unwrap_err();
        assert_eq!(
            faults.iter().map(|fault| fault.line).collect::<Vec<_>>(),
            [Some(1), Some(3)]
        );
    }

    #[test]
    fn a_secret_has_a_name_one_source_and_hosts_that_it_is_for() {
        let (_folder, home) = home();
        for (secret, reason) in [
            ("KEY: {env: A}", "names no `hosts`"),
            ("KEY: {hosts: [a.example]}", "from one of them"),
            (
                "KEY: {env: A, file: /a, hosts: [a.example]}",
                "from one of them",
            ),
            ("KEY: {env: A, hosts: ['*']}", "cannot be for every host"),
            ("'a b': {env: A, hosts: [a.example]}", "not of letters"),
            ("KEY: {env: A, hosts: ['a b']}", "is not understood"),
            ("KEY: {environment: A, hosts: [a.example]}", "unknown field"),
        ] {
            std::fs::write(home.config(), format!("secrets:\n  {secret}\n")).unwrap();
            let message = load(&home, None).unwrap_err().to_string();
            assert!(message.contains(reason), "{secret}: {message}");
        }
        std::fs::write(
            home.config(),
            "secrets:\n  A: {env: A, hosts: [a.example]}\n  B: {file: /b, hosts: ['*.b.example']}\n",
        )
        .unwrap();
        assert_eq!(load(&home, None).unwrap().secrets.len(), 2);
    }

    #[test]
    fn every_file_is_checked_and_each_fault_stays_with_its_file() {
        let (folder, home) = home();
        let project = folder.path().join("project");
        std::fs::create_dir_all(project.join(".floe")).unwrap();
        std::fs::create_dir_all(home.agent(&AgentId::default())).unwrap();
        std::fs::write(home.config(), "approve: read-only\n").unwrap();
        std::fs::write(project.join(PROJECT_FILE), "model: x\n").unwrap();
        std::fs::write(
            home.agent_config(&AgentId::default()),
            "system_prompt: Hello\n",
        )
        .unwrap();
        let checked = check(&home, &project, &[]);
        let sound: Vec<bool> = checked.iter().map(|(_, result)| result.is_ok()).collect();
        assert_eq!(sound, [true, false, true]);
    }

    #[test]
    fn an_agent_that_names_a_tool_which_nothing_provides_is_found_with_the_near_name() {
        let (_folder, home) = home();
        let agent = AgentId::default();
        std::fs::create_dir_all(home.agent(&agent)).unwrap();
        let text = "system_prompt: x\ntools:\n  builtin:\n    - {name: lst, description: d, parameters: {}}\n";
        std::fs::write(home.agent_config(&agent), text).unwrap();
        let checked = check(&home, home.root(), &["list".to_owned()]);
        let message = checked[0].1.as_ref().unwrap_err().to_string();
        assert!(
            message.contains("names `lst`, which nothing provides.\n  Did you mean `list`?"),
            "{message}"
        );
    }
}
