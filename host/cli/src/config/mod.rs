//! The configuration as types: what the person's file and the Workspace's file may say, and the defaults.
//!
//! The one list of keys is `reference.yaml`, which `floe config` prints: a test holds it equal to the defaults here, and a key
//! that is not in it is refused. Nothing here looks at the environment or acts on what it read.

mod agent;
mod document;
mod fault;
mod load;
mod locate;
mod narrow;
mod network;
#[cfg(test)]
mod never_wider;
mod web_search;

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::str::FromStr;

use floe_language::ServerEntry;
use floe_network::HostGrant;
use floe_protocol::{ApprovalMode, Permission};
use floe_sandbox::{HardLinks, Limits, MinimumTier, Network, Policy, Search, WorkspaceMode};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::arguments::ToolsetName;

pub(crate) use agent::AgentConfig;
pub(crate) use fault::{ConfigFault, ConfigFaults};
pub(crate) use load::{check, load, load_agent};
pub(crate) use network::{Secrets, ToolNetwork, host_secrets};
pub(crate) use web_search::WebSearch;

/// The commented configuration with every key at its default.
pub(crate) const REFERENCE: &str = include_str!("reference.yaml");

/// The configuration in force: the person's file, narrowed by the Workspace's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// The model where neither the command line, the environment nor the agent names one.
    pub(crate) model: Option<String>,
    /// The tools where neither the command line nor the agent names any.
    pub(crate) toolset: ToolsetName,
    /// Who is asked where the command line does not say.
    pub(crate) approve: ApprovalMode,
    /// Model requests per run; -1 is without limit.
    pub(crate) max_turns: i64,
    /// The strongest permission per surface.
    pub(crate) surfaces: Surfaces,
    /// How a person is asked.
    pub(crate) approvals: Approvals,
    /// How native commands are confined.
    pub(crate) shell: Shell,
    /// What tools reach over HTTP.
    pub(crate) network: ToolNetwork,
    /// What tools use over HTTP without having it, by name. Only the person's own file may say so.
    pub(crate) secrets: Secrets,
    /// The search engine that tools ask. Only the person's own file may say so.
    pub(crate) web_search: WebSearch,
    /// What is different from the language servers that are known, by their names.
    pub(crate) language_servers: BTreeMap<String, ServerEntry>,
    /// How models that speak Chat Completions are reached.
    pub(crate) openai: OpenAi,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            model: None,
            toolset: ToolsetName::default(),
            approve: ApprovalMode::default(),
            max_turns: 100,
            surfaces: Surfaces::default(),
            approvals: Approvals::default(),
            shell: Shell::default(),
            network: ToolNetwork::default(),
            secrets: Secrets::default(),
            web_search: WebSearch::default(),
            language_servers: BTreeMap::new(),
            openai: OpenAi::default(),
        }
    }
}

/// The permission cap of each surface. The flag `--max-permission` only lowers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Surfaces {
    /// `floe run`
    pub(crate) run: Permission,
    /// `floe call`
    pub(crate) call: Permission,
    /// `floe mcp`
    pub(crate) mcp: Permission,
}

impl Default for Surfaces {
    fn default() -> Surfaces {
        Surfaces {
            run: Permission::Dangerous,
            call: Permission::Dangerous,
            mcp: Permission::Dangerous,
        }
    }
}

/// How a person is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Approvals {
    /// Seconds after which an unanswered question counts as no; 0 waits without limit.
    pub(crate) timeout_s: u64,
}

/// How native commands are confined, and what they find in their environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Shell {
    /// Whether commands may change the Workspace.
    pub(crate) mode: WorkspaceMode,
    /// What commands may reach over the network.
    pub(crate) network: Network,
    /// The hosts that commands may reach where `network` is `proxy`.
    #[serde(deserialize_with = "entries::<_, HostGrant>")]
    pub(crate) allow_hosts: Vec<String>,
    /// Variables of the login environment that commands get; `*` at the end stands for the rest of a name.
    pub(crate) env_allow: Vec<String>,
    /// Further paths that commands may read.
    pub(crate) extra_read: Vec<PathBuf>,
    /// Further paths that commands may read and change.
    pub(crate) extra_write: Vec<PathBuf>,
    /// Files of the Workspace whose content commands may not read.
    pub(crate) deny_read: Vec<String>,
    /// Further paths of the Workspace that commands may not change.
    pub(crate) protect: Vec<PathBuf>,
    /// What to do about files of the Workspace that have a further name elsewhere.
    pub(crate) hard_links: HardLinks,
    /// How far the Workspace is searched for what must be protected.
    pub(crate) search: Search,
    /// How much of the machine one command may use.
    pub(crate) limits: Limits,
    /// The weakest set of walls that commands may run in. Only the person's own file may say so.
    pub(crate) min_tier: MinimumTier,
    /// Runs commands without any confinement. Only the person's own file may say so.
    pub(crate) unsafe_no_sandbox: bool,
}

impl Default for Shell {
    fn default() -> Shell {
        let policy = Policy::default();
        Shell {
            mode: policy.workspace,
            network: policy.network,
            allow_hosts: policy.allow_hosts,
            env_allow: [
                "PATH", "LANG", "LC_*", "TZ", "CI", "USER", "LOGNAME", "SHELL",
            ]
            .map(String::from)
            .to_vec(),
            extra_read: policy.extra_read,
            extra_write: policy.extra_write,
            deny_read: policy.deny_read,
            protect: policy.protect,
            hard_links: policy.hard_links,
            search: policy.search,
            limits: policy.limits,
            min_tier: policy.minimum_tier,
            unsafe_no_sandbox: false,
        }
    }
}

/// A list of texts, each of which can be understood as a `T`. Looked at where it is read, so that a fault names the key.
fn entries<'de, D: Deserializer<'de>, T>(deserializer: D) -> Result<Vec<String>, D::Error>
where
    T: FromStr<Err: fmt::Display>,
{
    struct Entries<T>(PhantomData<T>);

    impl<'de, T: FromStr<Err: fmt::Display>> Visitor<'de> for Entries<T> {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of hosts")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<String>, A::Error> {
            let mut hosts = Vec::new();
            while let Some(host) = entries.next_element::<String>()? {
                host.parse::<T>().map_err(A::Error::custom)?;
                hosts.push(host);
            }
            Ok(hosts)
        }
    }

    deserializer.deserialize_seq(Entries::<T>(PhantomData))
}

impl Shell {
    /// What the person grants for one run, whatever the files say. Where the network is off it is these hosts alone that commands
    /// then reach.
    pub(crate) fn allow(&mut self, hosts: &[HostGrant]) {
        if hosts.is_empty() {
            return;
        }
        if self.network == Network::Off {
            self.network = Network::Proxy;
            self.allow_hosts.clear();
        }
        self.allow_hosts
            .extend(hosts.iter().map(ToString::to_string));
    }

    /// What the sandbox is told.
    pub(crate) fn policy(&self) -> Policy {
        Policy {
            workspace: self.mode,
            network: self.network,
            allow_hosts: self.allow_hosts.clone(),
            extra_read: self.extra_read.clone(),
            extra_write: self.extra_write.clone(),
            deny_read: self.deny_read.clone(),
            protect: self.protect.clone(),
            hard_links: self.hard_links,
            search: self.search,
            limits: self.limits,
            minimum_tier: self.min_tier,
        }
    }
}

/// How models that speak Chat Completions are reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OpenAi {
    /// The address before `/chat/completions`; the public service of OpenAI where none.
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the key. A key never stands in a file of Floe.
    pub(crate) api_key_env: String,
    /// Seconds of silence after which a request counts as timed out.
    pub(crate) idle_timeout_s: u64,
    /// Tokens that fit in a conversation, where known.
    pub(crate) context_window: Option<u64>,
    /// Whether the model sees images.
    pub(crate) vision: bool,
}

impl Default for OpenAi {
    fn default() -> OpenAi {
        OpenAi {
            base_url: None,
            api_key_env: "OPENAI_API_KEY".into(),
            idle_timeout_s: 120,
            context_window: None,
            vision: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_holds_every_key_at_its_default() {
        let reference: serde_yaml::Value = serde_yaml::from_str(REFERENCE).unwrap();
        let defaults = serde_yaml::to_value(Config::default()).unwrap();
        assert_eq!(reference, defaults);
        assert_eq!(
            serde_yaml::from_str::<Config>(REFERENCE).unwrap(),
            Config::default()
        );
    }

    #[test]
    fn a_host_for_one_run_is_the_only_one_where_the_network_is_off_and_a_further_one_else() {
        let allowed = |network: Network| {
            let mut shell = Shell {
                network,
                allow_hosts: vec!["a.test".into()],
                ..Shell::default()
            };
            shell.allow(&["b.test:80".parse().unwrap()]);
            (shell.network, shell.allow_hosts.join(" "))
        };
        assert_eq!(allowed(Network::Off), (Network::Proxy, "b.test:80".into()));
        let both = (Network::Proxy, "a.test b.test:80".into());
        assert_eq!(allowed(Network::Proxy), both);
        assert_eq!(allowed(Network::Host).0, Network::Host);
        let mut shell = Shell::default();
        shell.allow(&[]);
        assert_eq!(shell, Shell::default());
    }

    #[test]
    fn every_key_of_the_reference_has_a_comment_above_it() {
        let lines: Vec<&str> = REFERENCE.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let is_key = !line.trim_start().starts_with('#') && line.contains(':');
            if is_key {
                assert!(
                    lines[index - 1].trim_start().starts_with('#'),
                    "line {}: {line}",
                    index + 1
                );
            }
        }
    }
}
