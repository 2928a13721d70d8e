//! What a Session is made of.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use floe_environment::{Approver, Registry, Rules, Secrets, Selection, Surface, Toolset};
use floe_model::ModelDriver;
use floe_protocol::{AgentId, ApprovalMode, Home, Mode, Permission, Source};
use floe_runtime::capability::interaction::Interaction;
use floe_sandbox::Policy;
use floe_workspace::Workspace;

use crate::observer::{Observer, Unobserved};

/// Model requests of one run where nothing else is said.
pub const DEFAULT_MAX_TURNS: i64 = 100;

/// Everything that a Session needs. [`SessionOptions::new`] gives the defaults of a program that embeds Floe: the default toolset,
/// build mode, and, because there is nobody to ask, every question denied.
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
    /// Answers questions; without one every question is denied.
    pub approver: Option<Arc<dyn Approver>>,
    /// Answers the questions of tools; without one they are told that nobody can be asked.
    pub interaction: Option<Arc<dyn Interaction>>,
    /// How long a question waits; without an end where none.
    pub approval_timeout: Option<Duration>,
    /// Model requests of one run; 0 or less for any number.
    pub max_turns: i64,
    /// Tokens that one answer may have; the service's own limit where none.
    pub max_tokens: Option<u64>,
    /// The agent's own system prompt, with the placeholders of its format; the built-in one where none.
    pub system_prompt: Option<String>,
    /// What commands may reach.
    pub policy: Policy,
    /// Runs commands without walls. Only on the operator's explicit word.
    pub unconfined: bool,
    /// The binary that builds the walls; this very one where none.
    pub helper: Option<PathBuf>,
    /// What commands start from.
    pub command_environment: floe_command::EnvironmentOptions,
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
            approver: None,
            interaction: None,
            approval_timeout: None,
            max_turns: DEFAULT_MAX_TURNS,
            max_tokens: None,
            system_prompt: None,
            policy: Policy::default(),
            unconfined: false,
            helper: None,
            secrets: Secrets::default(),
            observer: Arc::new(Unobserved),
        }
    }
}
