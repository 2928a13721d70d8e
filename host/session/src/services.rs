//! What the tools of a Session reach: its Workspace and its commands, made once and shared by all its calls. Nothing is started, probed
//! or written before the first call that may run a command.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once, Weak};
use std::time::Duration;

use floe_command::{CommandLimits, CommandOptions, CommandSessions, EndedCommand, Observe};
use floe_environment::{
    Asker, CallSite, HostsFactory, MessageSink, OutputRecorder, Outputs, Pending, WideningRequest,
};
use floe_language::{LanguageServers, ServerSettings};
use floe_network::GateOptions;
use floe_protocol::{EventMsg, Home, OmniMessage, SessionId};
use floe_runtime::capability::commands::ConfinedCommands;
use floe_runtime::capability::edits::OpenedEdits;
use floe_runtime::capability::language_server::SessionLanguageServers;
use floe_runtime::capability::web_search::{JsonEngine, JsonSearch, NoEngine};
use floe_runtime::capability::workspace::OpenedWorkspace;
use floe_runtime::{Capability, Hosts};
use floe_sandbox::{
    Policy, Sandbox, SandboxError, SandboxOptions, Widening, WideningFault, WorkspaceMode,
};
use floe_workspace::{Seen, Workspace};
use futures_util::future::BoxFuture;

use crate::background::done;
use crate::clarification::{Clarifier, Questions};
use crate::edits;
use crate::folders::Folders;
use crate::http::SessionHttp;
use crate::language;
use crate::message_queue::MessageQueue;
use crate::network::SessionNetwork;
use crate::plan::Plans;
use crate::session_state::SharedState;
use crate::subagents::{CallChildren, Children, Family, TooDeep};
use crate::widening;
use crate::{SessionError, SessionOptions};

/// What the services of a Session are made from.
pub(crate) struct ServiceOptions {
    pub(crate) session: SessionId,
    pub(crate) policy: Policy,
    /// What its tools reach over HTTP.
    pub(crate) gate: GateOptions,
    /// The search engine that they ask.
    pub(crate) web_search: Option<JsonEngine>,
    /// Which language servers there are.
    pub(crate) language_servers: ServerSettings,
    pub(crate) unconfined: bool,
    /// Where Floe keeps its own files, which no command reaches.
    pub(crate) home: Home,
    pub(crate) helper: Option<PathBuf>,
    pub(crate) environment: floe_command::EnvironmentOptions,
    /// Who answers the questions of tools.
    pub(crate) clarifier: Option<Arc<dyn Clarifier>>,
    /// How long a question waits.
    pub(crate) answer_timeout: Option<Duration>,
    /// Where what they print is kept.
    pub(crate) outputs: Arc<Outputs>,
    /// What its children are made from; none where it may have none.
    pub(crate) family: Option<SessionOptions>,
}

/// The implementations behind the capabilities of all calls of a Session.
pub(crate) struct Services {
    hosts: Arc<Hosts>,
    /// For tools that change files: what they read themselves is not what the model has read.
    editing: Arc<Hosts>,
    pub(crate) state: Arc<SharedState>,
    pub(crate) plans: Arc<Plans>,
    pub(crate) questions: Arc<Questions>,
    /// None in a child.
    pub(crate) children: Option<Arc<Children>>,
    sandbox: Arc<Sandbox>,
    confined: ConfinedCommands,
    pub(crate) commands: Arc<CommandSessions>,
    pub(crate) network: Arc<SessionNetwork>,
    pub(crate) http: SessionHttp,
    pub(crate) language_servers: Arc<LanguageServers>,
    pub(crate) folders: Folders,
    folders_made: Once,
}

impl Services {
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// The sandbox cannot be made.
    pub(crate) fn new(
        workspace: &Workspace,
        folders: Folders,
        options: ServiceOptions,
        queue: &Arc<MessageQueue>,
    ) -> Result<Services, SessionError> {
        let descriptor = workspace
            .fd()
            .try_clone_to_owned()
            .map_err(SessionError::Descriptor)?;
        let ServiceOptions {
            session,
            policy,
            gate,
            web_search,
            language_servers,
            unconfined,
            home,
            helper,
            environment,
            clarifier,
            answer_timeout,
            outputs,
            family,
        } = options;
        let mut sandbox = SandboxOptions::new(
            descriptor,
            workspace.canonical_path().to_owned(),
            folders.home.clone(),
            folders.tmp.clone(),
            folders.outputs.clone(),
        );
        let readable = workspace
            .clone()
            .with_hidden(policy.denies_reading()?)
            .with_mount(Sandbox::OUTPUTS, &folders.outputs);
        let read = readable.clone().with_seen(Seen::default());
        let editor = edits::editor(read.clone(), &policy, &home, &session)
            .map_err(SessionError::Descriptor)?;
        edits::recover(&editor, &home, queue);
        let private = canonical(home.root());
        let language_servers = Arc::new(language::servers(language::Ground {
            workspace: readable.clone(),
            policy: &policy,
            helper: helper.clone(),
            private: private.clone(),
            folder: folders.language_servers.clone(),
            settings: language_servers,
        }));
        let (network, hosts) = (policy.network, policy.allow_hosts.clone());
        sandbox.policy = policy;
        sandbox.unconfined = unconfined;
        sandbox.private = vec![private];
        if let Some(helper) = helper {
            sandbox.helper = helper;
        }
        let sandbox = Arc::new(Sandbox::new(sandbox)?);
        let network = SessionNetwork::new(network, &hosts, Arc::clone(&sandbox), queue)?;
        let network = Arc::new(network);
        let commands = CommandSessions::new(
            Arc::clone(&sandbox) as _,
            CommandOptions {
                workspace: workspace.clone(),
                environment,
                network: Arc::clone(&network) as _,
                observer: Arc::new(CommandEvents(Arc::downgrade(queue))),
                record: Some(Arc::new(OutputRecorder(outputs))),
                limits: CommandLimits::default(),
            },
        );
        let confined = ConfinedCommands::new(Arc::clone(&commands));
        let http = SessionHttp::new(gate, queue);
        let unsupported = Hosts::unsupported();
        let hosts = Hosts {
            workspace: Arc::new(OpenedWorkspace::new(read)),
            commands: Arc::new(confined.clone()),
            edits: Arc::new(OpenedEdits::new(editor)),
            language_server: Arc::new(SessionLanguageServers::new(Arc::clone(&language_servers))),
            web_search: match web_search {
                Some(engine) => Arc::new(JsonSearch::new(engine, http.gate().clone())),
                None => Arc::new(NoEngine),
            },
            ..unsupported
        };
        let editing = Hosts {
            workspace: Arc::new(OpenedWorkspace::new(readable)),
            ..hosts.clone()
        };
        let plans = Arc::<Plans>::default();
        let questions = Arc::new(Questions {
            clarifier,
            timeout: answer_timeout,
            pending: Pending::default(),
            queue: Arc::downgrade(queue),
        });
        Ok(Services {
            hosts: Arc::new(hosts),
            editing: Arc::new(editing),
            state: SharedState::new(Arc::clone(&plans), Arc::downgrade(queue)),
            plans,
            children: family.map(|options| {
                Children::new(Family {
                    options,
                    queue: Arc::downgrade(queue),
                    questions: Arc::clone(&questions),
                })
            }),
            questions,
            sandbox,
            confined,
            commands,
            network,
            http,
            language_servers,
            folders,
            folders_made: Once::new(),
        })
    }
}

impl HostsFactory for Services {
    fn hosts(&self, call: &CallSite) -> Arc<Hosts> {
        let has = |capability| call.capabilities.contains(capability);
        if has(Capability::LanguageServer) || has(Capability::Commands) {
            self.folders_made.call_once(|| self.folders.create());
        }
        if has(Capability::Commands) {
            self.network.refusals().begin(&call.tool_call_id);
        }
        let shared = match has(Capability::Edits) {
            true => &self.editing,
            false => &self.hosts,
        };
        let own_reach = has(Capability::Commands)
            && (call.workspace != WorkspaceMode::WorkspaceWrite || !call.widening.is_empty());
        let own_state = has(Capability::SessionState);
        let own_questions = has(Capability::Interaction);
        let own_http = has(Capability::Http);
        let own_children = has(Capability::Subagents);
        if !own_reach && !own_state && !own_questions && !own_http && !own_children {
            return Arc::clone(shared);
        }
        // A tool may have several of these: none may cost it the narrower reach of another.
        let mut own = Hosts::clone(shared);
        if own_reach {
            let widening = call.widening.clone();
            own.commands = Arc::new(self.confined.for_call(call.workspace, widening));
        }
        if own_state {
            own.session_state = Arc::new(self.state.for_call(call));
        }
        if own_http {
            own.http = self.http.for_call(call);
        }
        if own_questions {
            let questions = self.questions.for_call(&call.tool_call_id, &call.tool);
            own.interaction = Arc::new(questions);
        }
        if own_children {
            own.subagents = match &self.children {
                Some(children) => Arc::new(CallChildren::new(Arc::clone(children), call.clone())),
                None => Arc::new(TooDeep),
            };
        }
        Arc::new(own)
    }

    fn widening<'a>(
        &'a self,
        request: &'a WideningRequest,
        asker: Asker,
    ) -> BoxFuture<'a, Result<Widening, WideningFault>> {
        if !asker.capabilities.contains(Capability::Commands) {
            let judged = widening::of_http(request, self.http.gate(), asker.reads_only);
            return Box::pin(std::future::ready(judged));
        }
        // Walls are tried for it, within these folders.
        self.folders_made.call_once(|| self.folders.create());
        let (sandbox, request) = (Arc::clone(&self.sandbox), request.clone());
        let (mode, granted) = (self.network.mode(), self.network.granted());
        let judged = tokio::task::spawn_blocking(move || {
            widening::judge(&request, &sandbox, mode, &granted)
        });
        Box::pin(async {
            judged.await.unwrap_or_else(|_| {
                Err(WideningFault::Sandbox(SandboxError::Helper {
                    detail: "the host broke off while it judged the request".to_owned(),
                }))
            })
        })
    }

    fn notes(&self, call: &CallSite) -> Vec<String> {
        self.network.refusals().end(&call.tool_call_id)
    }

    fn prepare<'a>(&'a self, call: &'a CallSite) -> BoxFuture<'a, ()> {
        if call.capabilities.contains(Capability::Commands) {
            Box::pin(self.commands.prepare())
        } else {
            Box::pin(std::future::ready(()))
        }
    }
}

/// The canonical form of a path, as far as it exists.
fn canonical(path: &Path) -> PathBuf {
    let known = path.ancestors().find_map(|above| {
        let real = above.canonicalize().ok()?;
        Some(real.join(path.strip_prefix(above).ok()?))
    });
    known.unwrap_or_else(|| path.to_owned())
}

/// Tells of commands as events of the Session. Holds the queue weakly: commands may outlive the Session by a moment.
struct CommandEvents(Weak<MessageQueue>);

impl Observe for CommandEvents {
    fn warning(&self, code: &'static str, message: &str) {
        if let Some(queue) = self.0.upgrade() {
            queue.warn(code, message.to_owned());
        }
    }

    fn ended(&self, command: EndedCommand) {
        if let Some(queue) = self.0.upgrade() {
            queue.emit(OmniMessage::event(EventMsg::BackgroundTaskDone(done(
                command,
            ))));
        }
    }
}

#[cfg(test)]
mod tests {
    use floe_environment::Secrets;
    use floe_protocol::{AgentId, Home, Mode, SessionId};
    use floe_trace::TraceWriter;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::observer::Unobserved;

    /// The services of a Session in `folder`.
    fn services(folder: &Path) -> Services {
        std::fs::create_dir(folder.join("project")).unwrap();
        std::fs::write(folder.join("project/.env"), "KEY=1").unwrap();
        std::fs::write(folder.join("project/main.rs"), "fn").unwrap();
        let workspace = Workspace::open(&folder.join("project")).unwrap();
        let home = Home::new(folder.join("home"));
        let session = SessionId::generate();
        let writer = TraceWriter::create(&home, &AgentId::default(), &session);
        let queue = Arc::new(MessageQueue::new(
            writer,
            Arc::new(Unobserved),
            Secrets::default(),
        ));
        let options = ServiceOptions {
            session: session.clone(),
            policy: Policy::default(),
            gate: GateOptions::default(),
            web_search: None,
            language_servers: ServerSettings::default(),
            unconfined: false,
            home: home.clone(),
            helper: None,
            environment: floe_command::EnvironmentOptions::default(),
            clarifier: None,
            answer_timeout: None,
            outputs: Outputs::new(home.outputs(&session), Secrets::default()),
            family: None,
        };
        let folders = Folders::new(&home, &session);
        Services::new(&workspace, folders, options, &queue).unwrap()
    }

    #[tokio::test]
    async fn a_tool_that_edits_and_keeps_a_list_has_the_narrower_commands_of_its_call_too() {
        let folder = tempfile::tempdir().unwrap();
        let services = services(folder.path());
        let call = |workspace| CallSite {
            tool_call_id: "1".into(),
            tool: "all".into(),
            capabilities: [
                Capability::Commands,
                Capability::Edits,
                Capability::SessionState,
            ]
            .into_iter()
            .collect(),
            mode: Mode::Build,
            permission: floe_protocol::Permission::Execute,
            workspace,
            widening: Widening::default(),
            cancel: CancellationToken::new(),
        };
        let narrow = services.hosts(&call(WorkspaceMode::ReadOnly));
        assert!(!Arc::ptr_eq(&narrow.commands, &services.hosts.commands));
        assert!(Arc::ptr_eq(&narrow.workspace, &services.editing.workspace));
        let session_state = &services.hosts.session_state;
        assert!(!Arc::ptr_eq(&narrow.session_state, session_state));
        let wide = services.hosts(&call(WorkspaceMode::WorkspaceWrite));
        assert!(Arc::ptr_eq(&wide.commands, &services.hosts.commands));
    }

    #[tokio::test]
    async fn a_child_that_comes_by_the_interface_for_children_finds_a_refusal() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = services(folder.path()).hosts(&CallSite {
            tool_call_id: "1".into(),
            tool: "spawn_subagent".into(),
            capabilities: [Capability::Subagents].into_iter().collect(),
            mode: Mode::Build,
            permission: floe_protocol::Permission::Execute,
            workspace: WorkspaceMode::WorkspaceWrite,
            widening: Widening::default(),
            cancel: CancellationToken::new(),
        });
        let request = floe_runtime::capability::subagents::SubagentRequest {
            prompt: "x".into(),
            agent_id: None,
            model: None,
            description: None,
        };
        let refusals = [
            hosts.subagents.start(request).await.err(),
            hosts.subagents.attach("subagent-00000000").await.err(),
        ];
        for refusal in refusals {
            let refusal = refusal.expect("refused");
            assert_eq!(refusal.code, "denied");
            assert!(refusal.message.contains("depth limit 1"));
        }
    }

    #[tokio::test]
    async fn what_no_command_may_read_no_tool_reads_either() {
        let folder = tempfile::tempdir().unwrap();
        let reader = Arc::clone(&services(folder.path()).hosts.workspace);
        let error = reader.read_range(".env", 0, 9).await.unwrap_err();
        assert_eq!(error.code, "denied");
        assert!(reader.read_range("main.rs", 0, 9).await.is_ok());
    }
}
