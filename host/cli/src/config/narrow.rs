//! Applies a Workspace's own configuration, which may only narrow: whoever can write into a project must not be able to
//! give its tools more than the person gave them. A key that would widen is a fault and nothing of the file applies.

use floe_language::ServerSettings;
use floe_network::{DomainList, HostGrants};
use floe_protocol::ApprovalMode;
use floe_sandbox::{HardLinks, WorkspaceMode};
use serde_yaml::Value;

use super::document::Document;
use super::{Config, ConfigFaults};

/// `config` as the project's file narrows it.
pub(crate) fn narrow(config: &Config, project: &Document<'_>) -> Result<Config, ConfigFaults> {
    let said: Config = project.parse()?;
    let value: Value = project.read()?;
    let mut keys = Vec::new();
    leaves(&value, &mut Vec::new(), &mut keys);

    let mut narrowed = config.clone();
    let mut faults = Vec::new();
    for key in &keys {
        if let Err(reason) = apply(&key.join("."), &said, &mut narrowed) {
            faults.push(project.fault(
                key,
                format!("widens: {reason}"),
                "A project may only narrow. Remove the key, or set it in your own file, FLOE_HOME/config.yaml.",
            ));
        }
    }
    if faults.is_empty() {
        Ok(narrowed)
    } else {
        faults.sort_by_key(|fault| fault.line);
        Err(ConfigFaults(faults))
    }
}

/// The paths of all keys whose value is no mapping.
fn leaves<'v>(value: &'v Value, path: &mut Vec<&'v str>, keys: &mut Vec<Vec<&'v str>>) {
    match value {
        Value::Mapping(children) => {
            for (key, child) in children {
                path.push(key.as_str().unwrap_or_default());
                leaves(child, path, keys);
                path.pop();
            }
        }
        _ if path.is_empty() => {}
        _ => keys.push(path.clone()),
    }
}

/// Takes one key over, or says why it may not be.
fn apply(key: &str, said: &Config, into: &mut Config) -> Result<(), String> {
    match key {
        "approve" => {
            let allowed = strictness(said.approve) >= strictness(into.approve);
            let reason = format!(
                "`{}` asks less than your `{}`.",
                said.approve.as_str(),
                into.approve.as_str()
            );
            take(&mut into.approve, said.approve, allowed, reason)
        }
        "max_turns" => {
            let limit = |turns: i64| u64::try_from(turns).unwrap_or(u64::MAX);
            let (new, old) = (said.max_turns, into.max_turns);
            take(
                &mut into.max_turns,
                new,
                limit(new) <= limit(old),
                more_than(new, old),
            )
        }
        "surfaces.run" => lower(&mut into.surfaces.run, said.surfaces.run),
        "surfaces.call" => lower(&mut into.surfaces.call, said.surfaces.call),
        "surfaces.mcp" => lower(&mut into.surfaces.mcp, said.surfaces.mcp),
        "approvals.timeout_s" => {
            let limit = |seconds: u64| if seconds == 0 { u64::MAX } else { seconds };
            let (new, old) = (said.approvals.timeout_s, into.approvals.timeout_s);
            take(
                &mut into.approvals.timeout_s,
                new,
                limit(new) <= limit(old),
                more_than(new, old),
            )
        }
        "shell.mode" => {
            let allowed =
                said.shell.mode == WorkspaceMode::ReadOnly || said.shell.mode == into.shell.mode;
            let reason = "commands are read-only in your file.".to_owned();
            take(&mut into.shell.mode, said.shell.mode, allowed, reason)
        }
        "shell.network" => {
            let allowed = said.shell.network <= into.shell.network;
            let reason = "commands reach less by your file.".into();
            take(&mut into.shell.network, said.shell.network, allowed, reason)
        }
        "shell.allow_hosts" => shared_hosts(&mut into.shell.allow_hosts, &said.shell.allow_hosts),
        "shell.env_allow" => {
            let new = &said.shell.env_allow;
            let further: Vec<&str> = new
                .iter()
                .filter(|name| {
                    !into
                        .shell
                        .env_allow
                        .iter()
                        .any(|allowed| covers(allowed, name))
                })
                .map(String::as_str)
                .collect();
            let reason = format!("your list does not have {}.", further.join(", "));
            take(
                &mut into.shell.env_allow,
                new.clone(),
                further.is_empty(),
                reason,
            )
        }
        "shell.deny_read" => {
            into.shell
                .deny_read
                .extend(said.shell.deny_read.iter().cloned());
            Ok(())
        }
        "shell.protect" => {
            into.shell
                .protect
                .extend(said.shell.protect.iter().cloned());
            Ok(())
        }
        "shell.hard_links" => {
            let new = said.shell.hard_links;
            let allowed = new == HardLinks::Deny || new == into.shell.hard_links;
            let reason = "your file refuses such files.".into();
            take(&mut into.shell.hard_links, new, allowed, reason)
        }
        "shell.search.depth" => {
            let (new, old) = (said.shell.search.depth, into.shell.search.depth);
            let reason = format!("{new} looks less deep than your {old}.");
            take(&mut into.shell.search.depth, new, new >= old, reason)
        }
        "shell.limits.pids" => lower(&mut into.shell.limits.pids, said.shell.limits.pids),
        "shell.limits.file_mb" => lower(&mut into.shell.limits.file_mb, said.shell.limits.file_mb),
        "shell.limits.open_files" => lower(
            &mut into.shell.limits.open_files,
            said.shell.limits.open_files,
        ),
        "shell.limits.shared_memory_mb" => lower(
            &mut into.shell.limits.shared_memory_mb,
            said.shell.limits.shared_memory_mb,
        ),
        "shell.limits.memory_mb" => lower(
            &mut into.shell.limits.memory_mb,
            said.shell.limits.memory_mb,
        ),
        "shell.limits.tmp_mb" => lower(&mut into.shell.limits.tmp_mb, said.shell.limits.tmp_mb),
        "shell.limits.free_mb" => {
            let (new, old) = (said.shell.limits.free_mb, into.shell.limits.free_mb);
            let reason = format!("{new} is less than your {old}.");
            take(&mut into.shell.limits.free_mb, new, new >= old, reason)
        }
        "network.allowed_domains" => shared_domains(
            &mut into.network.allowed_domains,
            &said.network.allowed_domains,
        ),
        "network.write_domains" => {
            shared_domains(&mut into.network.write_domains, &said.network.write_domains)
        }
        "network.blocked_domains" => {
            into.network
                .blocked_domains
                .extend(said.network.blocked_domains.iter().cloned());
            Ok(())
        }
        "network.ports" => {
            let both = said.network.ports.iter().copied();
            let both = both.filter(|port| into.network.ports.contains(port));
            into.network.ports = both.collect();
            Ok(())
        }
        "network.hosts" => shared_hosts(&mut into.network.hosts, &said.network.hosts),
        key => match switch_of_server(key) {
            Some(name) => {
                let entry = said.language_servers.get(name);
                let is_off = entry.is_some_and(|entry| entry.enabled == Some(false));
                if !is_off {
                    return Err("a project can only switch servers off.".into());
                }
                // One that nobody knows needs no switch.
                let known = ServerSettings::with(&into.language_servers).unwrap_or_default();
                if known.0.contains_key(name) {
                    let entry = into.language_servers.entry(name.to_owned());
                    entry.or_default().enabled = Some(false);
                }
                Ok(())
            }
            None => Err("it is not a project's to set.".into()),
        },
    }
}

/// The language server that a key switches on or off.
fn switch_of_server(key: &str) -> Option<&str> {
    key.strip_prefix("language_servers.")?
        .strip_suffix(".enabled")
}

/// What both grant. What a project wants beyond that it does not get; whoever tries is told so.
fn shared_hosts(place: &mut Vec<String>, said: &[String]) -> Result<(), String> {
    let own = HostGrants::parse(place).unwrap_or_default();
    let said = HostGrants::parse(said).map_err(|error| error.to_string())?;
    *place = own
        .intersect(&said)
        .iter()
        .map(ToString::to_string)
        .collect();
    Ok(())
}

/// The same for hosts by name.
fn shared_domains(place: &mut Vec<String>, said: &[String]) -> Result<(), String> {
    let own = DomainList::parse(place).unwrap_or_default();
    let said = DomainList::parse(said).map_err(|error| error.to_string())?;
    *place = own
        .intersect(&said)
        .iter()
        .map(ToString::to_string)
        .collect();
    Ok(())
}

fn take<T>(place: &mut T, value: T, allowed: bool, reason: String) -> Result<(), String> {
    if allowed {
        *place = value;
        Ok(())
    } else {
        Err(reason)
    }
}

fn lower<T: PartialOrd + Copy + std::fmt::Display>(place: &mut T, value: T) -> Result<(), String> {
    let old = *place;
    take(place, value, value <= old, more_than(value, old))
}

fn more_than(new: impl std::fmt::Display, old: impl std::fmt::Display) -> String {
    format!("{new} is more than your {old}.")
}

/// How much a mode asks.
fn strictness(mode: ApprovalMode) -> u8 {
    match mode {
        ApprovalMode::AllowAll => 0,
        ApprovalMode::ReadOnly => 1,
        ApprovalMode::AlwaysAsk => 2,
        ApprovalMode::DenyAll => 3,
    }
}

/// True where the pattern `allowed` lets every name of the pattern `name` through.
fn covers(allowed: &str, name: &str) -> bool {
    match allowed.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => allowed == name,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::expect;
    use floe_protocol::Permission;
    use floe_sandbox::Network;

    use super::*;
    use crate::config::document::REFERENCE_HELP;

    fn project(text: &str) -> Result<Config, String> {
        let document = Document {
            file: Path::new("project/.floe/config.yaml"),
            text,
            help: REFERENCE_HELP,
        };
        narrow(&Config::default(), &document).map_err(|faults| faults.to_string())
    }

    #[test]
    fn a_project_may_narrow_every_key_that_the_reference_says_it_may() {
        let config = project(
            "approve: always-ask\nmax_turns: 5\nsurfaces: {run: read-only}\napprovals: {timeout_s: 60}\nshell:\n  \
             mode: read-only\n  network: off\n  env_allow: [PATH, LC_ALL]\n  deny_read: ['*.pem']\n  protect: [ci]\n  \
             search: {depth: 9}\n  limits: {pids: 3, memory_mb: 512, tmp_mb: 64, free_mb: 2048}\n",
        )
        .unwrap();
        assert_eq!(config.approve, ApprovalMode::AlwaysAsk);
        assert_eq!(config.max_turns, 5);
        assert_eq!(config.surfaces.run, Permission::ReadOnly);
        assert_eq!(config.surfaces.call, Permission::Dangerous);
        assert_eq!(config.approvals.timeout_s, 60);
        assert_eq!(config.shell.mode, WorkspaceMode::ReadOnly);
        assert_eq!(config.shell.env_allow, ["PATH", "LC_ALL"]);
        assert_eq!(config.shell.deny_read, ["**/.env", "**/.env.*", "*.pem"]);
        assert_eq!(config.shell.search.depth, 9);
        assert_eq!(config.shell.limits.pids, 3);
        assert_eq!(config.shell.limits.memory_mb, 512);
        assert_eq!(config.shell.limits.tmp_mb, 64);
        assert_eq!(config.shell.limits.free_mb, 2048);
    }

    #[test]
    fn a_project_may_shorten_the_list_of_hosts_and_turn_the_network_down() {
        let mut own = Config::default();
        own.shell.network = Network::Proxy;
        own.shell.allow_hosts = ["*.example.com", "crates.io", "own.test=127.0.0.1:1"]
            .map(String::from)
            .to_vec();
        let narrowed = |text: &str| {
            let document = Document {
                file: Path::new("p"),
                text,
                help: REFERENCE_HELP,
            };
            narrow(&own, &document).map_err(|faults| faults.to_string())
        };
        let config = narrowed(
            "shell: {allow_hosts: [api.example.com, crates.io:80, pypi.org, own.test=10.0.0.1, own.test]}",
        )
        .unwrap();
        assert_eq!(
            config.shell.allow_hosts,
            ["api.example.com:443", "own.test:443=127.0.0.1:1"]
        );
        assert_eq!(config.shell.network, Network::Proxy);
        let config = narrowed("shell: {network: off}").unwrap();
        assert_eq!(config.shell.network, Network::Off);
        assert!(
            narrowed("shell: {network: host}")
                .unwrap_err()
                .contains("widens")
        );
        let fault = narrowed("shell:\n  allow_hosts: ['https://a.test']").unwrap_err();
        assert!(
            fault.contains("p:2: `shell.allow_hosts` is not understood"),
            "{fault}"
        );
        assert!(fault.contains("write the host alone"), "{fault}");
    }

    #[test]
    fn a_project_that_widens_is_refused_with_every_key_and_line() {
        expect![[r#"
            project/.floe/config.yaml:1: `model` widens: it is not a project's to set.
              A project may only narrow. Remove the key, or set it in your own file, FLOE_HOME/config.yaml.
            project/.floe/config.yaml:2: `max_turns` widens: -1 is more than your 100.
              A project may only narrow. Remove the key, or set it in your own file, FLOE_HOME/config.yaml.
            project/.floe/config.yaml:4: `shell.env_allow` widens: your list does not have AWS_SECRET_ACCESS_KEY.
              A project may only narrow. Remove the key, or set it in your own file, FLOE_HOME/config.yaml.
            project/.floe/config.yaml:5: `shell.extra_write` widens: it is not a project's to set.
              A project may only narrow. Remove the key, or set it in your own file, FLOE_HOME/config.yaml.
            project/.floe/config.yaml:6: `shell.unsafe_no_sandbox` widens: it is not a project's to set.
              A project may only narrow. Remove the key, or set it in your own file, FLOE_HOME/config.yaml.
            project/.floe/config.yaml:8: `shell.limits.pids` widens: 100000 is more than your 512.
              A project may only narrow. Remove the key, or set it in your own file, FLOE_HOME/config.yaml."#]]
        .assert_eq(
            &project(
                "model: openai:other\nmax_turns: -1\nshell:\n  env_allow: [PATH, AWS_SECRET_ACCESS_KEY]\n  \
                 extra_write: [/]\n  unsafe_no_sandbox: true\n  limits:\n    pids: 100000\n",
            )
            .unwrap_err(),
        );
    }

    #[test]
    fn of_what_tools_reach_a_project_keeps_what_both_allow_and_blocks_more() {
        let text = "network:\n  allowed_domains: [example.org, '*.example.com']\n  write_domains: [example.org]\n  \
                    blocked_domains: [bad.example.org]\n  ports: [443, 8080]\n  hosts: ['a.example=127.0.0.1']\n";
        let narrowed = project(text).unwrap().network;
        assert_eq!(narrowed.allowed_domains, ["example.org", "*.example.com"]);
        assert!(narrowed.write_domains.is_empty() && narrowed.hosts.is_empty());
        assert_eq!(narrowed.blocked_domains, ["bad.example.org"]);
        assert_eq!(narrowed.ports, [443]);
    }

    #[test]
    fn a_list_of_hosts_that_cannot_be_understood_refuses_the_file_and_never_means_all() {
        for list in [
            "allowed_domains: ['https://a.example/']",
            "blocked_domains: ['a b']",
            "hosts: ['*']",
        ] {
            assert!(project(&format!("network:\n  {list}\n")).is_err(), "{list}");
        }
    }

    #[test]
    fn a_project_sets_no_secret() {
        let fault = project("secrets:\n  KEY: {env: PATH, hosts: [a.example]}\n").unwrap_err();
        assert!(fault.contains("it is not a project's to set"), "{fault}");
    }

    #[test]
    fn a_looser_approval_than_the_persons_is_refused() {
        let strict = Config {
            approve: ApprovalMode::AlwaysAsk,
            ..Config::default()
        };
        let document = Document {
            file: Path::new("p"),
            text: "approve: read-only\n",
            help: REFERENCE_HELP,
        };
        assert!(narrow(&strict, &document).is_err());
    }

    #[test]
    fn a_project_may_switch_language_servers_off_and_do_nothing_else_with_them() {
        let config =
            project("language_servers: {gopls: {enabled: false}, no.such: {enabled: false}}");
        let servers = config.unwrap().language_servers;
        assert_eq!(servers.len(), 1);
        assert_eq!(servers["gopls"].enabled, Some(false));
        for widens in [
            "gopls: {enabled: true}",
            "gopls: {command: [./evil]}",
            "evil: {command: [evil], languages: {go: [go]}}",
            "pyright: {settings: {python.pythonPath: ./evil}}",
            "clangd: {idle_s: 9}",
        ] {
            let fault = project(&format!("language_servers: {{{widens}}}")).unwrap_err();
            assert!(fault.contains("widens: "), "{fault}");
        }
    }

    #[test]
    fn every_key_of_the_reference_says_what_a_project_may_do() {
        let reference: Value = serde_yaml::from_str(super::super::REFERENCE).unwrap();
        let mut keys = Vec::new();
        leaves(&reference, &mut Vec::new(), &mut keys);
        for key in keys {
            let refused = apply(&key.join("."), &Config::default(), &mut Config::default())
                .is_err_and(|reason| reason.contains("not a project's"));
            let line = super::super::locate::line_of(super::super::REFERENCE, &key).unwrap();
            let text: Vec<&str> = super::super::REFERENCE.lines().take(line - 1).collect();
            let comment: String = text
                .iter()
                .rev()
                .take_while(|line| line.trim_start().starts_with('#'))
                .copied()
                .collect();
            // Of these the comment above the whole says it.
            let is_of_no_project = ["openai", "web_search"].contains(&key[0]);
            let says_no = comment.contains("[project: no]") || is_of_no_project;
            assert_eq!(refused, says_no, "{key:?}: {comment}");
        }
    }
}
