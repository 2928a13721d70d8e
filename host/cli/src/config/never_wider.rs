//! One property of the whole configuration: whatever a project's file, a plugin's manifest and a call's arguments say together,
//! a command gets nothing that the person's own file does not give.
//!
//! Both files are texts that are read and merged as a Session reads and merges them, and the call goes through the door of an
//! Environment. What "nothing more" means is the order below. It takes every struct apart without `..`, so that a field that
//! comes to exist does not compile until somebody has said here which of its values gives less.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use floe_environment::{
    Answer, Approver, Asker, CallSite, Environment, EnvironmentOptions, HostsFactory, MessageSink,
    Origin, Question, RegisteredTool, Registry, Rule, Rules, Selection, ToolBody, Toolset,
    WideningRequest,
};
use floe_language::{ServerEntry, ServerSetting, ServerSettings};
use floe_network::{HostGrants, Scope};
use floe_protocol::{
    ApprovalMode, Home, OmniMessage, Permission, ToolCall, ToolDefinition, Truncation,
};
use floe_runtime::{
    Call, CallEnd, CallRequest, Capability, CapabilitySet, HostFacts, Hosts, ToolResult,
};
use floe_sandbox::{
    HardLinks, Limits, MinimumTier, Network, Policy, Search, Widening, WideningFault, WorkspaceMode,
};
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

use super::load::{PROJECT_FILE, load};
use super::{Approvals, Config, OpenAi, Shell, Surfaces, ToolNetwork};

/// A claim that something gives no more than something else, with the words for where it does not hold.
type Order = Result<(), String>;

fn holds(claim: bool, what: &str) -> Order {
    if claim {
        Ok(())
    } else {
        Err(format!("{what} gives more"))
    }
}

/// What a command may do: `less` gives nothing that `more` does not give.
fn policy_order(less: &Policy, more: &Policy) -> Order {
    let Policy {
        workspace,
        network,
        allow_hosts,
        extra_read,
        extra_write,
        deny_read,
        protect,
        hard_links,
        search,
        limits,
        minimum_tier,
    } = less;
    holds(
        match (workspace, more.workspace) {
            (WorkspaceMode::ReadOnly, _) => true,
            (WorkspaceMode::WorkspaceWrite, most) => most == WorkspaceMode::WorkspaceWrite,
        },
        "workspace",
    )?;
    let rank = |network: Network| match network {
        Network::Off => 0,
        Network::Proxy => 1,
        Network::Host => 2,
    };
    holds(rank(*network) <= rank(more.network), "network")?;
    // Where the person gives the machine's own network, no list bounds it.
    let hosts = |policy: &[String]| HostGrants::parse(policy).expect("hosts that were read");
    holds(
        more.network == Network::Host || hosts(&more.allow_hosts).covers(&hosts(allow_hosts)),
        "allow_hosts",
    )?;
    let below = |paths: &[PathBuf], given: &[&[PathBuf]]| {
        paths.iter().all(|path| {
            let mut given = given.iter().flat_map(|given| given.iter());
            given.any(|given| path.starts_with(given))
        })
    };
    holds(
        below(extra_read, &[&more.extra_read, &more.extra_write]),
        "extra_read",
    )?;
    holds(below(extra_write, &[&more.extra_write]), "extra_write")?;
    let all = |of: &[String], there: &[String]| of.iter().all(|one| there.contains(one));
    holds(all(&more.deny_read, deny_read), "deny_read")?;
    holds(
        more.protect.iter().all(|path| protect.contains(path)),
        "protect",
    )?;
    holds(
        *hard_links == HardLinks::Deny || more.hard_links == HardLinks::Warn,
        "hard_links",
    )?;
    search_order(search, &more.search)?;
    limits_order(limits, &more.limits)?;
    holds(
        *minimum_tier == MinimumTier::Native || more.minimum_tier == MinimumTier::Landlock,
        "minimum_tier",
    )
}

/// A deeper search protects more. One that looks at more entries protects no less and refuses later.
fn search_order(less: &Search, more: &Search) -> Order {
    let Search { depth, entries } = less;
    holds(*depth >= more.depth, "search.depth")?;
    holds(*entries == more.entries, "search.entries")
}

fn limits_order(less: &Limits, more: &Limits) -> Order {
    let Limits {
        pids,
        file_mb,
        open_files,
        shared_memory_mb,
        memory_mb,
        tmp_mb,
        free_mb,
    } = less;
    holds(*pids <= more.pids, "limits.pids")?;
    holds(*file_mb <= more.file_mb, "limits.file_mb")?;
    holds(*open_files <= more.open_files, "limits.open_files")?;
    holds(
        *shared_memory_mb <= more.shared_memory_mb,
        "limits.shared_memory_mb",
    )?;
    holds(*memory_mb <= more.memory_mb, "limits.memory_mb")?;
    holds(*tmp_mb <= more.tmp_mb, "limits.tmp_mb")?;
    // This much must stay free.
    holds(*free_mb >= more.free_mb, "limits.free_mb")
}

/// The whole configuration, of which the policy is the greater part.
fn config_order(less: &Config, more: &Config) -> Order {
    let Config {
        model,
        toolset,
        approve,
        max_turns,
        surfaces: Surfaces { run, call, mcp },
        approvals: Approvals { timeout_s },
        shell,
        network,
        secrets,
        web_search,
        language_servers,
        openai,
    } = less;
    holds(*model == more.model, "model")?;
    holds(*toolset == more.toolset, "toolset")?;
    let asks = |mode: ApprovalMode| match mode {
        ApprovalMode::AllowAll => 0,
        ApprovalMode::ReadOnly => 1,
        ApprovalMode::AlwaysAsk => 2,
        ApprovalMode::DenyAll => 3,
    };
    holds(asks(*approve) >= asks(more.approve), "approve")?;
    let turns = |turns: i64| u64::try_from(turns).unwrap_or(u64::MAX);
    holds(turns(*max_turns) <= turns(more.max_turns), "max_turns")?;
    holds(*run <= more.surfaces.run, "surfaces.run")?;
    holds(*call <= more.surfaces.call, "surfaces.call")?;
    holds(*mcp <= more.surfaces.mcp, "surfaces.mcp")?;
    let wait = |seconds: u64| if seconds == 0 { u64::MAX } else { seconds };
    holds(
        wait(*timeout_s) <= wait(more.approvals.timeout_s),
        "approvals.timeout_s",
    )?;
    shell_order(shell, &more.shell)?;
    scope_order(network, &more.network)?;
    holds(*secrets == more.secrets, "secrets")?;
    let OpenAi {
        base_url,
        api_key_env,
        idle_timeout_s,
        context_window,
        vision,
    } = openai;
    holds(*web_search == more.web_search, "web_search")?;
    servers_order(language_servers, &more.language_servers)?;
    let theirs = &more.openai;
    holds(*base_url == theirs.base_url, "openai.base_url")?;
    holds(*api_key_env == theirs.api_key_env, "openai.api_key_env")?;
    holds(
        *idle_timeout_s == theirs.idle_timeout_s,
        "openai.idle_timeout_s",
    )?;
    holds(
        *context_window == theirs.context_window,
        "openai.context_window",
    )?;
    holds(*vision == theirs.vision, "openai.vision")
}

/// What tools reach over HTTP, once as texts and once as the gate understands them.
fn scope_order(less: &ToolNetwork, more: &ToolNetwork) -> Order {
    let ToolNetwork {
        allowed_domains: _,
        write_domains: _,
        blocked_domains: _,
        ports: _,
        hosts,
    } = less;
    let Scope {
        allowed,
        write,
        blocked,
        ports,
    } = less.scope().expect("lists that were read");
    let theirs = more.scope().expect("lists that were read");
    holds(theirs.allowed.covers(&allowed), "network.allowed_domains")?;
    holds(theirs.write.covers(&write), "network.write_domains")?;
    holds(blocked.covers(&theirs.blocked), "network.blocked_domains")?;
    let within = ports.iter().all(|port| theirs.ports.contains(port));
    holds(within, "network.ports")?;
    let grants = |hosts: &[String]| HostGrants::parse(hosts).expect("hosts that were read");
    holds(grants(&more.hosts).covers(&grants(hosts)), "network.hosts")
}

/// The same servers, some of which may be off.
fn servers_order(
    less: &BTreeMap<String, ServerEntry>,
    more: &BTreeMap<String, ServerEntry>,
) -> Order {
    let servers = |entries| {
        ServerSettings::with(entries)
            .expect("servers that were read")
            .0
    };
    let (less, more) = (servers(less), servers(more));
    let narrower = less.iter().all(|(name, server)| {
        more.get(name).is_some_and(|theirs| {
            let as_theirs = ServerSetting {
                enabled: theirs.enabled,
                ..server.clone()
            };
            as_theirs == *theirs && (!server.enabled || theirs.enabled)
        })
    });
    holds(narrower && less.len() == more.len(), "language_servers")
}

fn shell_order(less: &Shell, more: &Shell) -> Order {
    let Shell {
        env_allow,
        unsafe_no_sandbox,
        // What the sandbox is told of has an order of its own. They are named here so that a key which comes to exist is not
        // left out of both.
        mode: _,
        network: _,
        allow_hosts: _,
        extra_read: _,
        extra_write: _,
        deny_read: _,
        protect: _,
        hard_links: _,
        search: _,
        limits: _,
        min_tier: _,
    } = less;
    policy_order(&less.policy(), &more.policy())?;
    let covered = |name: &String| {
        more.env_allow.iter().any(|given| {
            given == name
                || given
                    .strip_suffix('*')
                    .is_some_and(|prefix| name.starts_with(prefix))
        })
    };
    holds(env_allow.iter().all(covered), "env_allow")?;
    holds(
        !unsafe_no_sandbox || more.unsafe_no_sandbox,
        "unsafe_no_sandbox",
    )
}

/// One key of a file, with a few values that it may have. Project and person draw from the same, so that a project narrows,
/// repeats and widens about equally often.
fn keys() -> Vec<(&'static str, &'static [&'static str])> {
    vec![
        (
            "approve",
            &["allow-all", "read-only", "always-ask", "deny-all"],
        ),
        ("max_turns", &["-1", "1", "50"]),
        ("model", &["script:a", "script:b"]),
        ("toolset", &["minimal", "default"]),
        ("surfaces.run", &["none", "read-only", "dangerous"]),
        ("surfaces.call", &["write", "execute"]),
        ("surfaces.mcp", &["read-only", "execute"]),
        ("approvals.timeout_s", &["0", "5", "60"]),
        ("shell.mode", &["read-only", "workspace-write"]),
        ("shell.network", &["off", "proxy", "host"]),
        (
            "shell.allow_hosts",
            &[
                "[]",
                "[a.example]",
                "['*.example.org', 'b.example:8443']",
                "[www.example.org]",
                "['local.example=127.0.0.1:8080']",
                "['local.example']",
            ],
        ),
        (
            "shell.env_allow",
            &["[]", "[PATH]", "[PATH, 'LC_*']", "[PATH, LC_ALL]", "['*']"],
        ),
        ("shell.extra_read", &["[]", "[/a]", "[/a/b]", "['~/x']"]),
        ("shell.extra_write", &["[]", "[/a]", "[/]"]),
        ("shell.deny_read", &["[]", "['**/.env']", "['*.pem']"]),
        ("shell.protect", &["[]", "[ci]", "[deploy/keys]"]),
        ("shell.hard_links", &["warn", "deny"]),
        ("shell.search.depth", &["1", "6", "9"]),
        ("shell.search.entries", &["10", "500000", "900000"]),
        ("shell.limits.pids", &["3", "512", "99999"]),
        ("shell.limits.file_mb", &["1", "99999"]),
        ("shell.limits.open_files", &["64", "99999"]),
        ("shell.limits.shared_memory_mb", &["0", "99999"]),
        ("shell.limits.memory_mb", &["256", "99999"]),
        ("shell.limits.tmp_mb", &["1", "99999"]),
        ("shell.limits.free_mb", &["0", "512", "99999"]),
        ("shell.min_tier", &["native", "landlock"]),
        ("shell.unsafe_no_sandbox", &["true", "false"]),
        (
            "network.allowed_domains",
            &[
                "['*']",
                "[]",
                "[example.org, 'b.example']",
                "['*.example.org']",
                "[www.example.org]",
                "['1.1.1.1']",
            ],
        ),
        (
            "network.write_domains",
            &["[]", "['*']", "[api.example.org]", "[example.org]"],
        ),
        (
            "network.blocked_domains",
            &["[]", "[bad.example]", "['*.example.org', bad.example]"],
        ),
        ("network.ports", &["[]", "[443]", "[80, 443, 8080]", "[22]"]),
        (
            "network.hosts",
            &[
                "[]",
                "['local.example:80=127.0.0.1:8080']",
                "['local.example:80']",
                "['*.example.org']",
            ],
        ),
        (
            "secrets.KEY",
            &[
                "{env: PATH, hosts: [a.example]}",
                "{env: HOME, hosts: [b.example]}",
            ],
        ),
        ("language_servers.gopls.enabled", &["true", "false"]),
        (
            "language_servers.gopls.command",
            &["[gopls]", "[/opt/gopls, serve]"],
        ),
        (
            "web_search.url",
            &[
                "'http://127.0.0.1:8888/?q={query}'",
                "'https://s.example/?q={query}'",
            ],
        ),
        (
            "openai.base_url",
            &["https://a.example/v1", "http://b.example/v1"],
        ),
    ]
}

/// A file with a few of the keys.
fn file(most: usize) -> impl Strategy<Value = String> {
    let keys = keys();
    let indices = 0..keys.len();
    proptest::collection::btree_map(indices, any::<prop::sample::Index>(), 0..=most).prop_map(
        move |chosen| {
            let mut root = serde_yaml::Mapping::new();
            for (key, value) in chosen {
                let (path, values) = keys[key];
                let value = values[value.index(values.len())];
                let value: serde_yaml::Value = serde_yaml::from_str(value).unwrap();
                let mut place = &mut root;
                let mut parts: Vec<&str> = path.split('.').collect();
                let last = parts.pop().unwrap();
                for part in parts {
                    place = place
                        .entry(part.into())
                        .or_insert_with(|| serde_yaml::Mapping::new().into())
                        .as_mapping_mut()
                        .unwrap();
                }
                place.insert(last.into(), value);
            }
            serde_yaml::to_string(&root).unwrap()
        },
    )
}

/// What a plugin's manifest and the person's grant to it come to.
#[derive(Clone, Debug)]
struct Manifest {
    declared: CapabilitySet,
    granted: CapabilitySet,
    workspace: WorkspaceMode,
}

fn manifest() -> impl Strategy<Value = Manifest> {
    let set = || {
        proptest::sample::subsequence(Capability::ALL.to_vec(), 0..=Capability::ALL.len())
            .prop_map(|capabilities| capabilities.into_iter().collect::<CapabilitySet>())
            .prop_map(|set| set.with(Capability::Commands))
    };
    let mode = prop_oneof![
        Just(WorkspaceMode::ReadOnly),
        Just(WorkspaceMode::WorkspaceWrite)
    ];
    (set(), set(), mode).prop_map(|(declared, granted, workspace)| Manifest {
        declared,
        granted,
        workspace,
    })
}

/// Arguments that want as much as they can.
fn arguments() -> impl Strategy<Value = String> {
    let list = || {
        proptest::sample::subsequence(
            vec!["/", "/etc/shadow", "/home", "a.example", "*", "/usr", ""],
            0..4,
        )
    };
    let widen = (list(), list(), list()).prop_map(|(read, write, hosts)| {
        serde_json::json!({
            "cmd": "ls",
            "widen": {"reason": "because", "read": read, "write": write, "hosts": hosts},
        })
        .to_string()
    });
    prop_oneof![
        Just(r#"{"cmd":"ls"}"#.to_owned()),
        Just(r#"{"cmd":"ls","widen":null}"#.to_owned()),
        Just(r#"{"cmd":"ls","mode":"full","workspace":"host","sandbox":false}"#.to_owned()),
        Just(r#"{"cmd":"ls","widen":{"reason":"x","mode":"full"}}"#.to_owned()),
        widen,
    ]
}

/// A host that would give whatever is asked for, and keeps what calls were given in the end.
#[derive(Default)]
struct Generous(Mutex<Vec<CallSite>>);

impl HostsFactory for Generous {
    fn hosts(&self, call: &CallSite) -> Arc<Hosts> {
        self.0.lock().unwrap().push(call.clone());
        Arc::new(Hosts::deny())
    }

    fn widening<'a>(
        &'a self,
        request: &'a WideningRequest,
        _asker: Asker,
    ) -> BoxFuture<'a, Result<Widening, WideningFault>> {
        let asked = [&request.read, &request.write, &request.hosts];
        Box::pin(std::future::ready(Ok(Widening {
            hosts: asked.into_iter().flatten().cloned().collect(),
            ..Widening::default()
        })))
    }
}

impl MessageSink for Generous {
    fn emit(&self, _message: OmniMessage) {}

    fn recording(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A program that says yes to everything. It is no person.
struct Yes;

#[async_trait]
impl Approver for Yes {
    async fn decide(&self, _question: &Question) -> Answer {
        Answer::AllowForSession
    }
}

struct Nothing;

#[async_trait]
impl ToolBody for Nothing {
    fn imports(&self) -> CapabilitySet {
        CapabilitySet::all()
    }

    async fn permission_for(&self, _arguments: &str) -> Result<Permission, String> {
        Ok(Permission::Execute)
    }

    async fn run(&self, _request: CallRequest) -> Call {
        Call {
            end: CallEnd::Returned(ToolResult::default()),
            facts: HostFacts::default(),
        }
    }
}

/// What the calls of a plugin's tool were given, in a Session with this configuration and nobody to ask but a program.
fn given(config: &Config, manifest: &Manifest, arguments: &str) -> Vec<CallSite> {
    let mut registry = Registry::new();
    registry
        .insert(RegisteredTool {
            definition: ToolDefinition {
                name: "shell_like".into(),
                aliases: Vec::new(),
                description: "Runs commands.".into(),
                parameters: serde_json::json!({"type": "object", "additionalProperties": true}),
                permission: Permission::Execute,
                permission_varies: false,
                for_model: Default::default(),
                timeout_ms: 60_000,
                max_output_length: 16_000,
                truncation: Truncation::HeadTail,
                output_schema: None,
                metadata: Vec::new(),
            },
            body: Arc::new(Nothing),
            declared: manifest.declared,
            granted: manifest.granted,
            workspace: manifest.workspace,
            origin: Origin::Plugin("other".into()),
            sha256: String::new(),
        })
        .unwrap();
    let host = Arc::new(Generous::default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut options = EnvironmentOptions::new(
            "session".into(),
            Arc::new(registry),
            Arc::clone(&host) as _,
            Arc::clone(&host) as _,
        );
        options.selection = Selection::Toolset(Toolset::All);
        options.approval_mode = config.approve;
        options.max_permission = Some(config.surfaces.run);
        options.approver = Some(Arc::new(Yes));
        options.rules = Rules(vec![Rule {
            id: "all".into(),
            effect: floe_environment::Effect::Allow,
            tool: "*".into(),
        }]);
        let environment = Environment::new(options);
        for id in ["c1", "c2"] {
            let call = ToolCall {
                name: "shell_like".into(),
                arguments: arguments.into(),
                tool_call_id: id.into(),
            };
            environment.execute(call, CancellationToken::new()).await;
        }
    });
    host.0.lock().unwrap().clone()
}

fn check(user: &str, project: &str, manifest: &Manifest, arguments: &str) -> Order {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::new(folder.path().join("home"));
    let workspace = folder.path().join("project");
    std::fs::create_dir_all(home.root()).unwrap();
    std::fs::create_dir_all(workspace.join(".floe")).unwrap();
    std::fs::write(home.config(), user).unwrap();
    let of_person = load(&home, None).map_err(|faults| format!("a file of a person: {faults}"))?;
    std::fs::write(workspace.join(PROJECT_FILE), project).unwrap();
    // A project's file that widens is refused whole, and no Session begins.
    let Ok(merged) = load(&home, Some(&workspace)) else {
        return Ok(());
    };
    config_order(&merged, &of_person)?;
    for site in given(&merged, manifest, arguments) {
        let policy = merged.shell.policy().for_command(site.workspace);
        policy_order(&policy, &of_person.shell.policy())?;
        holds(
            policy.workspace == WorkspaceMode::ReadOnly
                || manifest.workspace == WorkspaceMode::WorkspaceWrite,
            "the manifest's mode",
        )?;
        let most = manifest.declared.intersection(manifest.granted);
        holds(site.capabilities.is_subset(most), "the manifest's set")?;
        holds(site.widening.is_empty(), "the call")?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_project_no_manifest_and_no_call_gives_what_the_persons_file_does_not(
        user in file(12), project in file(4), manifest in manifest(), arguments in arguments(),
    ) {
        let found = check(&user, &project, &manifest, &arguments);
        prop_assert!(found.is_ok(), "{}\nperson:\n{user}\nproject:\n{project}", found.unwrap_err());
    }
}

#[test]
fn every_key_of_the_reference_is_drawn_from() {
    fn leaves(value: &serde_yaml::Value, path: &str, into: &mut Vec<String>) {
        match value {
            serde_yaml::Value::Mapping(children) if !children.is_empty() => {
                for (key, child) in children {
                    let key = key.as_str().unwrap();
                    let path = if path.is_empty() {
                        key.to_owned()
                    } else {
                        format!("{path}.{key}")
                    };
                    leaves(child, &path, into);
                }
            }
            _ => into.push(path.to_owned()),
        }
    }
    let reference: serde_yaml::Value = serde_yaml::from_str(super::REFERENCE).unwrap();
    let mut there = Vec::new();
    leaves(&reference, "", &mut there);
    let drawn: Vec<&str> = keys().into_iter().map(|(key, _)| key).collect();
    let is_alike = |key: &&String| key.starts_with("openai.") || key.starts_with("web_search.");
    for key in there.iter().filter(|key| !is_alike(key)) {
        // Of a key whose own keys are names that the person chooses, one of these.
        let below = format!("{key}.");
        let is_drawn = |drawn: &&str| *drawn == key || drawn.starts_with(&below);
        assert!(drawn.iter().any(is_drawn), "{key} is not drawn from");
    }
}

#[test]
fn the_order_of_what_tools_reach_finds_what_gives_more() {
    let more = ToolNetwork {
        allowed_domains: vec!["example.org".into()],
        write_domains: vec!["api.example.org".into()],
        blocked_domains: vec!["bad.example.org".into()],
        ports: vec![443],
        hosts: Vec::new(),
    };
    assert!(scope_order(&more, &more).is_ok());
    let texts = |entries: &[&str]| entries.iter().map(|one| (*one).to_owned()).collect();
    for wider in [
        ToolNetwork {
            allowed_domains: texts(&["*"]),
            ..more.clone()
        },
        ToolNetwork {
            write_domains: texts(&["example.org"]),
            ..more.clone()
        },
        ToolNetwork {
            blocked_domains: texts(&["*.bad.example.org"]),
            ..more.clone()
        },
        ToolNetwork {
            ports: vec![443, 80],
            ..more.clone()
        },
        ToolNetwork {
            hosts: texts(&["a.example=127.0.0.1"]),
            ..more.clone()
        },
    ] {
        assert!(scope_order(&wider, &more).is_err(), "{wider:?}");
    }
}

/// The order itself is no formality: it tells a wider value of every field that it orders by degree.
#[test]
fn the_order_finds_what_gives_more() {
    let more = Policy::default();
    let mut wider = vec![
        Policy {
            network: Network::Proxy,
            ..more.clone()
        },
        Policy {
            allow_hosts: vec!["a.example".into()],
            ..more.clone()
        },
        Policy {
            extra_read: vec!["/a".into()],
            ..more.clone()
        },
        Policy {
            extra_write: vec!["/a".into()],
            ..more.clone()
        },
        Policy {
            deny_read: Vec::new(),
            ..more.clone()
        },
        Policy {
            minimum_tier: MinimumTier::Landlock,
            ..more.clone()
        },
        Policy {
            search: Search {
                depth: 1,
                ..more.search
            },
            ..more.clone()
        },
    ];
    for limits in [
        Limits {
            pids: 9999,
            ..more.limits
        },
        Limits {
            memory_mb: 99_999,
            ..more.limits
        },
        Limits {
            free_mb: 0,
            ..more.limits
        },
    ] {
        wider.push(Policy {
            limits,
            ..more.clone()
        });
    }
    for wider in wider {
        assert!(policy_order(&wider, &more).is_err(), "{wider:?}");
        assert!(policy_order(&more, &more).is_ok());
    }
}
