//! What `run`, `call` and `mcp` have in common: everything that can be wrong before a Session opens is looked at here, in one order,
//! and nothing is written, started or asked.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use floe_environment::{Registry, Secrets, Selection, Surface};
use floe_language::ServerSettings;
use floe_network::GateOptions;
use floe_protocol::{AgentId, ApprovalMode, Home, Permission};
use floe_runtime::{Runtime, RuntimeOptions};
use floe_session::SessionOptions;
use floe_workspace::Workspace;

use crate::approval::{Person, Standing};
use crate::arguments::{SessionArguments, ToolsetName};
use crate::children::ChildSources;
use crate::config::{self, AgentConfig, Config, load, load_agent};
use crate::exit::Fault;
use crate::terminal::{Interrupts, Screen};
use crate::{built_in, grants, home};

/// What a Session will be made of.
pub(crate) struct Setup {
    pub(crate) home: Home,
    pub(crate) config: Config,
    pub(crate) screen: Arc<Screen>,
    pub(crate) interrupts: Interrupts,
    workspace: Workspace,
    approval_mode: ApprovalMode,
    max_permission: Permission,
    gate: GateOptions,
    unconfined: bool,
}

impl Setup {
    /// Checks the Workspace and reads the configuration. `cap` picks this surface's permission cap.
    pub(crate) fn new(
        arguments: &SessionArguments,
        cap: fn(&Config) -> Permission,
    ) -> Result<Setup, Fault> {
        let home = home::from_environment()?;
        let workspace = open_workspace(arguments.workspace.as_deref(), &home)?;
        let mut config = load(&home, Some(workspace.canonical_path()))
            .map_err(|faults| Fault::usage(faults.to_string()))?;
        config.shell.allow(&arguments.allow_host);
        config.network.allow(&arguments.allow_host);
        // Every list was understood where it was read, but what a Session may reach is made of them.
        let host_secrets = config::host_secrets(&config.secrets);
        let gate = config.network.gate(host_secrets);
        let gate = gate.map_err(|error| Fault::usage(error.to_string()))?;
        grants::allow_paths(&mut config.shell, arguments, home.root()).map_err(Fault::usage)?;
        let cap = cap(&config);
        Ok(Setup {
            approval_mode: arguments.approve.map_or(config.approve, ApprovalMode::from),
            max_permission: arguments.max_permission.map_or(cap, |flag| flag.min(cap)),
            gate,
            unconfined: arguments.unsafe_no_sandbox || config.shell.unsafe_no_sandbox,
            home,
            config,
            screen: Arc::new(Screen::of_process()),
            interrupts: Interrupts::default(),
            workspace,
        })
    }

    /// The options of the Session, without model and observer. Must be called inside the async runtime. `asked_by` is who wants the
    /// calls, in the words of a question; `lasting` says whether an answer for the whole Session makes sense.
    pub(crate) fn options(
        &self,
        registry: Registry,
        surface: Surface,
        asked_by: String,
        lasting: bool,
    ) -> SessionOptions {
        let standing = self.standing(asked_by, lasting);
        let person =
            Person::at_the_terminal(Arc::clone(&self.screen), self.interrupts.clone(), standing);
        let timeout_s = self.config.approvals.timeout_s;
        let mut options = SessionOptions::new(
            self.home.clone(),
            self.workspace.clone(),
            Arc::new(registry),
        );
        options.surface = surface;
        options.approval_mode = self.approval_mode;
        options.max_permission = Some(self.max_permission);
        if let Some(person) = person.map(Arc::new) {
            // One and the same, so that questions of both kinds come one after the other.
            options.approver = Some(Arc::clone(&person) as _);
            options.clarifier = Some(person as _);
        }
        options.approval_timeout = (timeout_s > 0).then(|| Duration::from_secs(timeout_s));
        options.policy = self.config.shell.policy();
        options.gate = self.gate.clone();
        // Where it cannot be understood the configuration was refused.
        options.web_search = self.config.web_search.engine().ok().flatten();
        // A fault in them was refused when the file was read.
        options.language_servers =
            ServerSettings::with(&self.config.language_servers).unwrap_or_default();
        options.unconfined = self.unconfined;
        let sources = Arc::new(ChildSources::new(self.home.clone(), self.config.clone()));
        options.agents = Some(Arc::clone(&sources) as _);
        options.models = Some(sources);
        options.secrets = self.secrets();
        options
            .command_environment
            .allow
            .clone_from(&self.config.shell.env_allow);
        options
    }

    /// What is the same for every question.
    pub(crate) fn standing(&self, asked_by: String, lasting: bool) -> Standing {
        Standing {
            shell: self.config.shell.clone(),
            approval_mode: self.approval_mode,
            asked_by,
            lasting,
        }
    }

    /// The tools that a client or a model is offered: the flag's, else the agent's, else the configuration's.
    pub(crate) fn selection(
        &self,
        flag: Option<ToolsetName>,
        agent: Option<&AgentConfig>,
    ) -> Selection {
        match (flag, agent.and_then(AgentConfig::builtin)) {
            (Some(toolset), _) => Selection::Toolset(toolset.into()),
            (None, Some(entries)) => Selection::Entries(entries.to_vec()),
            (None, None) => Selection::Toolset(self.config.toolset.into()),
        }
    }

    /// The file of an agent, the default one where none is named; one that is named must have a file.
    pub(crate) fn agent(&self, named: Option<&AgentId>) -> Result<Option<AgentConfig>, Fault> {
        let id = named.cloned().unwrap_or_default();
        let agent =
            load_agent(&self.home, &id).map_err(|faults| Fault::usage(faults.to_string()))?;
        if agent.is_none() && named.is_some() {
            return Err(Fault::usage(format!(
                "There is no agent {id}: {} does not exist. Write that file, or leave --agent out.",
                self.home.agent_config(&id).display()
            )));
        }
        Ok(agent)
    }

    /// The keys that this process knows.
    fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        for name in ["OPENAI_API_KEY", &self.config.openai.api_key_env] {
            if let Ok(value) = std::env::var(name) {
                secrets.insert(name, &value);
            }
        }
        for secret in self.gate.secrets.iter() {
            if let Ok(value) = &secret.value {
                secrets.insert(&secret.name, value);
            }
        }
        secrets
    }

    /// Listens for Ctrl-C, and takes a reader that went away for one. Must be called inside the async runtime.
    pub(crate) fn listen(&self) -> Result<(), Fault> {
        let screen = Arc::clone(&self.screen);
        self.interrupts
            .listen(move |pressed| {
                if pressed == crate::terminal::Pressed::Interrupts && screen.aside_is_terminal() {
                    screen.aside("Interrupting. Ctrl-C again ends at once.");
                }
            })
            .map_err(|error| Fault::failed(format!("Signals cannot be received: {error}.")))?;
        let reader_gone = self.screen.reader_gone().clone();
        let run = self.interrupts.run().clone();
        tokio::spawn(async move {
            reader_gone.cancelled().await;
            run.cancel();
        });
        Ok(())
    }
}

/// The registry of the built-in tools on a runtime with this pool. Must be called inside the async runtime.
pub(crate) fn registry(pool: Option<u32>) -> Result<Registry, Fault> {
    let options = RuntimeOptions {
        pool,
        ..RuntimeOptions::new(tokio::runtime::Handle::current())
    };
    let runtime = Runtime::new(options).map_err(|error| Fault::failed(error.to_string()))?;
    let registry = built_in::registry(&runtime)?;
    if registry.names().next().is_none() {
        return Err(Fault::usage(built_in::MISSING));
    }
    Ok(registry)
}

/// Opens the Workspace, or says why it cannot be one.
/// Opens the folder that is named, else the current one, where it may be a Workspace.
pub(crate) fn open_workspace(named: Option<&Path>, home: &Home) -> Result<Workspace, Fault> {
    let path = named.unwrap_or(Path::new("."));
    let person_home = std::env::var_os("HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from);
    let usage = |error: floe_workspace::OpenError| Fault::usage(format!("{error}."));
    floe_workspace::check_location(path, home.root(), person_home.as_deref(), named.is_some())
        .map_err(usage)?;
    Workspace::open(path).map_err(usage)
}
