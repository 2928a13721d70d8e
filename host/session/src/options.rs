//! What a Session is made of.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use floe_environment::{Approver, Rate, Registry, Rules, Secrets, Selection, Surface, Toolset};
use floe_language::ServerSettings;
use floe_model::ModelDriver;
use floe_network::GateOptions;
use floe_protocol::{AgentId, ApprovalMode, Home, Mode, Permission, Source};
use floe_runtime::capability::web_search::JsonEngine;
use floe_sandbox::Policy;
use floe_workspace::Workspace;

use crate::clarification::Clarifier;
use crate::observer::{Observer, Unobserved};
use crate::subagents::{AgentSource, ModelSource};

/// Model requests of one run where nothing else is said.
pub const DEFAULT_MAX_TURNS: i64 = 100;

/// Everything that a Session needs. [`SessionOptions::new`] gives the defaults of a program that embeds Floe: the default toolset,
/// build mode, and, because there is nobody to ask, every question denied.
#[derive(Clone)]
pub struct SessionOptions {
    /// Where its Trace and its files go.
    pub home: Home,
    /// Whose Session it is.
    pub agent: AgentId,
    /// What its tools may touch.
    pub workspace: Workspace,
    /// The tools of this host.
    pub registry: Arc<Registry>,
    /// The model; none for a Session that only runs single calls.
    pub model: Option<Arc<dyn ModelDriver>>,
    /// What started it, where it was not a person.
    pub source: Option<Source>,
    /// Through what it is used.
    pub surface: Surface,
    /// Which tools it has.
    pub selection: Selection,
    /// Plan or build, to begin with.
    pub mode: Mode,
    /// Who is asked, to begin with.
    pub approval_mode: ApprovalMode,
    /// The permission cap of the surface.
    pub max_permission: Option<Permission>,
    /// The operator's rules.
    pub rules: Rules,
    /// How many calls it may make in how much time; any number where none.
    pub rate: Option<Rate>,
    /// Answers questions; without one every question is denied.
    pub approver: Option<Arc<dyn Approver>>,
    /// Answers the questions of tools; without one they are told that nobody can be asked.
    pub clarifier: Option<Arc<dyn Clarifier>>,
    /// How long a question waits, of the door or of a tool; without an end where none.
    pub approval_timeout: Option<Duration>,
    /// Model requests of one run; 0 or less for any number.
    pub max_turns: i64,
    /// Tokens that one answer may have; the service's own limit where none.
    pub max_tokens: Option<u64>,
    /// The agent's own system prompt, with the placeholders of its format; the built-in one where none.
    pub system_prompt: Option<String>,
    /// What commands may reach.
    pub policy: Policy,
    /// What tools may reach over HTTP.
    pub gate: GateOptions,
    /// The search engine that tools ask, through the gate; without one they are told that there is none.
    pub web_search: Option<JsonEngine>,
    /// Which language servers there are.
    pub language_servers: ServerSettings,
    /// Runs commands without walls. Only on the operator's explicit word.
    pub unconfined: bool,
    /// The binary that builds the walls; this very one where none.
    pub helper: Option<PathBuf>,
    /// What commands start from.
    pub command_environment: floe_command::EnvironmentOptions,
    /// The agents that children may be; without one a child is an agent like its parent.
    pub agents: Option<Arc<dyn AgentSource>>,
    /// The models that children may have; without one a child has its parent's.
    pub models: Option<Arc<dyn ModelSource>>,
    /// What neither an output nor the Trace may hold.
    pub secrets: Secrets,
    /// Who sees the stream.
    pub observer: Arc<dyn Observer>,
}

impl SessionOptions {
    /// The defaults for a Workspace and the tools of `registry`.
    pub fn new(home: Home, workspace: Workspace, registry: Arc<Registry>) -> SessionOptions {
        SessionOptions {
            command_environment: floe_command::EnvironmentOptions {
                cache: Some(home.cache().join("login-environment")),
                ..floe_command::EnvironmentOptions::default()
            },
            home,
            agent: AgentId::default(),
            workspace,
            registry,
            model: None,
            source: None,
            surface: Surface::Library,
            selection: Selection::Toolset(Toolset::Default),
            mode: Mode::Build,
            approval_mode: ApprovalMode::AlwaysAsk,
            max_permission: None,
            rules: Rules::default(),
            rate: None,
            approver: None,
            clarifier: None,
            approval_timeout: None,
            max_turns: DEFAULT_MAX_TURNS,
            max_tokens: None,
            system_prompt: None,
            policy: Policy::default(),
            gate: GateOptions::default(),
            web_search: None,
            language_servers: ServerSettings::default(),
            unconfined: false,
            helper: None,
            agents: None,
            models: None,
            secrets: Secrets::default(),
            observer: Arc::new(Unobserved),
        }
    }

    /// Lets an agent have fewer model requests of one run, and never more; 0 or less is any number.
    pub fn limit_turns(&mut self, turns: Option<i64>) {
        if let Some(turns) = turns
            && turns > 0
            && (self.max_turns <= 0 || turns < self.max_turns)
        {
            self.max_turns = turns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_may_have_fewer_turns_and_never_more() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let home = Home::new(folder.path().join("home"));
        let options = SessionOptions::new(home, workspace, Arc::default());
        for (agent, limit, expected) in [
            (Some(5), 100, 5),
            (Some(500), 100, 100),
            (Some(-1), 100, 100),
            (Some(7), -1, 7),
            (None, 100, 100),
        ] {
            let mut options = SessionOptions {
                max_turns: limit,
                ..options.clone()
            };
            options.limit_turns(agent);
            assert_eq!(options.max_turns, expected);
        }
    }
}
