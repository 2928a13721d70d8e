//! What the tools of a Session reach: its Workspace and its commands, made once and shared by all its calls. Nothing is started, probed
//! or written before the first call that may run a command.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once, Weak};

use floe_command::{CommandLimits, CommandOptions, CommandSessions, EndedCommand, Observe};
use floe_environment::{
    CallSite, HostsFactory, MessageSink, OutputRecorder, Outputs, WideningRequest,
};
use floe_protocol::{EventMsg, OmniMessage};
use floe_runtime::capability::commands::ConfinedCommands;
use floe_runtime::capability::workspace::OpenedWorkspace;
use floe_runtime::{Capability, Hosts};
use floe_sandbox::{
    Policy, Sandbox, SandboxError, SandboxOptions, Widening, WideningFault, WorkspaceMode,
};
use floe_workspace::Workspace;
use futures_util::future::BoxFuture;

use crate::SessionError;
use crate::background::done;
use crate::folders::Folders;
use crate::message_queue::MessageQueue;
use crate::network::SessionNetwork;
use crate::widening;

/// How the commands of a Session are started.
pub(crate) struct CommandServices {
    pub(crate) policy: Policy,
    pub(crate) unconfined: bool,
    /// Where Floe keeps its own files, which no command reaches.
    pub(crate) floe_home: PathBuf,
    pub(crate) helper: Option<PathBuf>,
    pub(crate) environment: floe_command::EnvironmentOptions,
    /// Where what they print is kept.
    pub(crate) outputs: Arc<Outputs>,
}

/// The implementations behind the capabilities of all calls of a Session.
pub(crate) struct Services {
    hosts: Arc<Hosts>,
    sandbox: Arc<Sandbox>,
    confined: ConfinedCommands,
    pub(crate) commands: Arc<CommandSessions>,
    pub(crate) network: Arc<SessionNetwork>,
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
        commands: CommandServices,
        queue: &Arc<MessageQueue>,
    ) -> Result<Services, SessionError> {
        let descriptor = workspace
            .fd()
            .try_clone_to_owned()
            .map_err(SessionError::Descriptor)?;
        let mut options = SandboxOptions::new(
            descriptor,
            workspace.canonical_path().to_owned(),
            folders.home.clone(),
            folders.tmp.clone(),
            folders.outputs.clone(),
        );
        let denies_reading = commands.policy.denies_reading()?;
        let (network, hosts) = (commands.policy.network, commands.policy.allow_hosts.clone());
        options.policy = commands.policy;
        options.unconfined = commands.unconfined;
        options.private = vec![canonical(&commands.floe_home)];
        if let Some(helper) = commands.helper {
            options.helper = helper;
        }
        let sandbox = Arc::new(Sandbox::new(options)?);
        let network = SessionNetwork::new(network, &hosts, Arc::clone(&sandbox), queue)?;
        let network = Arc::new(network);
        let commands = CommandSessions::new(
            Arc::clone(&sandbox) as _,
            CommandOptions {
                workspace: workspace.clone(),
                environment: commands.environment,
                network: Arc::clone(&network) as _,
                observer: Arc::new(CommandEvents(Arc::downgrade(queue))),
                record: Some(Arc::new(OutputRecorder(commands.outputs))),
                limits: CommandLimits::default(),
            },
        );
        let readable = workspace
            .clone()
            .with_hidden(denies_reading)
            .with_mount(Sandbox::OUTPUTS, &folders.outputs);
        let confined = ConfinedCommands::new(Arc::clone(&commands));
        let hosts = Hosts {
            workspace: Arc::new(OpenedWorkspace::new(readable)),
            commands: Arc::new(confined.clone()),
            ..Hosts::unsupported()
        };
        Ok(Services {
            hosts: Arc::new(hosts),
            sandbox,
            confined,
            commands,
            network,
            folders,
            folders_made: Once::new(),
        })
    }
}

impl HostsFactory for Services {
    fn hosts(&self, call: &CallSite) -> Arc<Hosts> {
        if call.capabilities.contains(Capability::Commands) {
            self.folders_made.call_once(|| self.folders.create());
            self.network.refusals().begin(&call.tool_call_id);
        }
        let own_reach =
            call.workspace != WorkspaceMode::WorkspaceWrite || !call.widening.is_empty();
        if !own_reach {
            return Arc::clone(&self.hosts);
        }
        let commands = self
            .confined
            .for_call(call.workspace, call.widening.clone());
        Arc::new(Hosts {
            commands: Arc::new(commands),
            ..Hosts::clone(&self.hosts)
        })
    }

    fn widening<'a>(
        &'a self,
        request: &'a WideningRequest,
    ) -> BoxFuture<'a, Result<Widening, WideningFault>> {
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

impl CommandEvents {
    fn warn(&self, code: &str, message: String) {
        if let Some(queue) = self.0.upgrade() {
            queue.emit(OmniMessage::event(EventMsg::Warning {
                code: code.to_owned(),
                message,
            }));
        }
    }
}

impl Observe for CommandEvents {
    fn warning(&self, code: &'static str, message: &str) {
        self.warn(code, message.to_owned());
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
    use floe_protocol::{AgentId, Home, SessionId};
    use floe_trace::TraceWriter;

    use super::*;
    use crate::observer::Unobserved;

    #[tokio::test]
    async fn what_no_command_may_read_no_tool_reads_either() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("project")).unwrap();
        std::fs::write(folder.path().join("project/.env"), "KEY=1").unwrap();
        std::fs::write(folder.path().join("project/main.rs"), "fn").unwrap();
        let workspace = Workspace::open(&folder.path().join("project")).unwrap();
        let home = Home::new(folder.path().join("home"));
        let session = SessionId::generate();
        let writer = TraceWriter::create(&home, &AgentId::default(), &session);
        let queue = Arc::new(MessageQueue::new(
            writer,
            Arc::new(Unobserved),
            Secrets::default(),
        ));
        let commands = CommandServices {
            policy: Policy::default(),
            unconfined: false,
            floe_home: home.root().to_owned(),
            helper: None,
            environment: floe_command::EnvironmentOptions::default(),
            outputs: Outputs::new(home.outputs(&session), Secrets::default()),
        };
        let folders = Folders::new(&home, &session);
        let services = Services::new(&workspace, folders, commands, &queue).unwrap();
        let reader = &services.hosts.workspace;
        let error = reader.read_range(".env", 0, 9).await.unwrap_err();
        assert_eq!(error.code, "denied");
        assert!(reader.read_range("main.rs", 0, 9).await.is_ok());
    }
}
