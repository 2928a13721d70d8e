//! What an Environment is made of: the seams that a Session fills, and its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use floe_protocol::{ApprovalMode, Mode, OmniMessage, Permission, ToolDefinition};
use floe_runtime::{CapabilitySet, Hosts};
use floe_sandbox::{Widening, WideningFault, WorkspaceMode};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::approval::{Approver, Reach};
use crate::gate::rate::Rate;
use crate::gate::rule::Rules;
use crate::gate::widening::WideningRequest;
use crate::power;
use crate::registry::Registry;
use crate::secrets::Secrets;
use crate::settings::Parent;
use crate::toolset::Toolset;
use crate::whole_output::Outputs;

/// Where messages go: the Trace and the surface. Called from several threads, in the order in which things happen.
pub trait MessageSink: Send + Sync {
    /// Takes a message. Must not block for long and must not call the Environment.
    fn emit(&self, message: OmniMessage);

    /// Whether records are kept.
    ///
    /// # Errors
    /// Why they are not; then tools above read-only do not run.
    fn recording(&self) -> Result<(), String>;
}

/// Makes the capabilities of one call.
pub trait HostsFactory: Send + Sync {
    /// The implementations for this call. What is outside `call.capabilities` is never reached.
    fn hosts(&self, call: &CallSite) -> Arc<Hosts>;

    /// What of a request a person is to be asked about: canonical, and without what commands have anyway. Grants nothing.
    ///
    /// # Errors
    /// What cannot be asked for, or cannot be given here.
    fn widening<'a>(
        &'a self,
        _request: &'a WideningRequest,
        _asker: Asker,
    ) -> BoxFuture<'a, Result<Widening, WideningFault>> {
        Box::pin(std::future::ready(Err(WideningFault::Forbidden(
            "The call asks to reach beyond the sandbox, which this host cannot give to single calls."
                .to_owned(),
        ))))
    }

    /// Lines for the model about what its commands met while the call ran, asked for once when it has ended.
    fn notes(&self, _call: &CallSite) -> Vec<String> {
        Vec::new()
    }

    /// Does what the first call of its kind needs and later ones find done, such as asking the login shell for its
    /// environment. A call's clock starts behind it; an interrupt does not wait for it.
    fn prepare<'a>(&'a self, _call: &'a CallSite) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What a call that asks to reach more can do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// What it may reach.
    pub capabilities: CapabilitySet,
    /// Whether its HTTP only reads.
    pub reads_only: bool,
}

/// The call that capabilities are made for.
#[derive(Clone, Debug)]
pub struct CallSite {
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool: String,
    /// What it may reach.
    pub capabilities: CapabilitySet,
    /// The mode in which it was decided.
    pub mode: Mode,
    /// The permission that it was decided with.
    pub permission: Permission,
    /// The most that its commands may do with the Workspace.
    pub workspace: WorkspaceMode,
    /// What the person lets its commands reach beyond the Session's policy.
    pub widening: Widening,
    /// Ends the call.
    pub cancel: CancellationToken,
}

impl CallSite {
    /// Whether its HTTP only reads.
    pub fn reads_only(&self) -> bool {
        power::reads_only(self.mode, self.permission)
    }
}

/// Which of the registered tools a Session has.
#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// A named set.
    Toolset(Toolset),
    /// An agent's `tools.builtin`: these and no others, each defined by its entry.
    Entries(Vec<ToolDefinition>),
}

/// Through what a Session is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Surface {
    /// `floe run`.
    Run,
    /// `floe chat`.
    Chat,
    /// `floe call`.
    Call,
    /// `floe mcp`.
    Mcp,
    /// `floe serve`.
    Serve,
    /// A program that embeds the host.
    #[default]
    Library,
}

impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Surface::Run => "floe run",
            Surface::Chat => "floe chat",
            Surface::Call => "floe call",
            Surface::Mcp => "floe mcp",
            Surface::Serve => "floe serve",
            Surface::Library => "this host",
        })
    }
}

/// Everything that an Environment needs.
pub struct EnvironmentOptions {
    /// The Session.
    pub session_id: String,
    /// The tools of this host.
    pub registry: Arc<Registry>,
    /// Makes the capabilities of a call.
    pub hosts: Arc<dyn HostsFactory>,
    /// Where messages go.
    pub sink: Arc<dyn MessageSink>,
    /// Which tools it has.
    pub selection: Selection,
    /// Whether the model sees images.
    pub vision: bool,
    /// Plan or build; changeable.
    pub mode: Mode,
    /// Who is asked; changeable.
    pub approval_mode: ApprovalMode,
    /// The permission cap of the surface.
    pub max_permission: Option<Permission>,
    /// Through what it is used.
    pub surface: Surface,
    /// Answers questions. Without one every question is denied.
    pub approver: Option<Arc<dyn Approver>>,
    /// How long a question waits; without an end where none.
    pub approval_timeout: Option<Duration>,
    /// The operator's rules.
    pub rules: Rules,
    /// How many calls in how much time; any where none.
    pub rate: Option<Rate>,
    /// What a call may reach, as questions show it.
    pub reach: Reach,
    /// The child Session that this is, where it is one.
    pub asked_by: Option<String>,
    /// The Environment of the parent, where this is that of a child: it is never wider.
    pub parent: Option<Parent>,
    /// Capabilities that nothing here may have: a tool that has one of them elsewhere is none of this Session's.
    pub withheld: CapabilitySet,
    /// Where whole outputs of cut calls are kept; nowhere where none.
    pub outputs: Option<Arc<Outputs>>,
    /// Whether the end of a command that a call leaves in the background is told to the model that called.
    pub reports_ends: bool,
    /// Bytes of memory for one call.
    pub memory_bytes: usize,
    /// What no output may hold.
    pub secrets: Secrets,
}

impl EnvironmentOptions {
    /// The defaults of a program that embeds the host: build mode, the default toolset, no cap, no rules, and, because there is
    /// nobody to ask, questions are denied.
    pub fn new(
        session_id: String,
        registry: Arc<Registry>,
        hosts: Arc<dyn HostsFactory>,
        sink: Arc<dyn MessageSink>,
    ) -> EnvironmentOptions {
        EnvironmentOptions {
            session_id,
            registry,
            hosts,
            sink,
            selection: Selection::Toolset(Toolset::Default),
            vision: true,
            mode: Mode::Build,
            approval_mode: ApprovalMode::AlwaysAsk,
            max_permission: None,
            surface: Surface::Library,
            approver: None,
            approval_timeout: None,
            rules: Rules::default(),
            rate: None,
            reach: Reach::default(),
            asked_by: None,
            parent: None,
            withheld: CapabilitySet::EMPTY,
            outputs: None,
            reports_ends: false,
            memory_bytes: floe_runtime::CallLimits::DEFAULT_MEMORY_BYTES,
            secrets: Secrets::default(),
        }
    }
}
