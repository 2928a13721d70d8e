//! What the tools of a Session reach: its Workspace and its commands, made once and shared by all its calls. Nothing is started, probed
//! or written before the first call that may run a command.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Arc, Once, Weak};

use floe_command::{CommandLimits, CommandOptions, CommandSessions, EndedCommand, Observe, Status};
use floe_environment::{CallSite, HostsFactory, MessageSink};
use floe_protocol::{EventMsg, Home, OmniMessage, SessionId};
use floe_runtime::capability::commands::ConfinedCommands;
use floe_runtime::capability::workspace::OpenedWorkspace;
use floe_runtime::{Capability, Hosts};
use floe_sandbox::{Policy, Sandbox, SandboxOptions};
use floe_workspace::Workspace;
use futures_util::future::BoxFuture;

use crate::SessionError;
use crate::message_queue::MessageQueue;

/// The folders of a Session below `FLOE_HOME`.
pub(crate) struct Folders {
    session: PathBuf,
    home: PathBuf,
    tmp: PathBuf,
    pub(crate) outputs: PathBuf,
}

impl Folders {
    pub(crate) fn new(home: &Home, session: &SessionId) -> Folders {
        Folders {
            session: home.session(session),
            home: home.command_home(session),
            tmp: home.command_tmp(session),
            outputs: home.outputs(session),
        }
    }

    /// Makes the folders that commands are given. What fails here is an error of the command that misses its folder, with the
    /// sandbox's own words.
    fn create(&self) {
        for folder in [&self.home, &self.tmp, &self.outputs] {
            let _ = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        }
    }

    /// Removes what no later Session wants: temporary files, and folders that nothing was put into.
    pub(crate) fn clean_up(&self) {
        let _ = std::fs::remove_dir_all(&self.tmp);
        for folder in [&self.home, &self.outputs, &self.session] {
            // Fails where something is in it, which is right.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// How the commands of a Session are started.
pub(crate) struct CommandServices {
    pub(crate) policy: Policy,
    pub(crate) unconfined: bool,
    pub(crate) helper: Option<PathBuf>,
    pub(crate) environment: floe_command::EnvironmentOptions,
}

/// The implementations behind the capabilities of all calls of a Session.
pub(crate) struct Services {
    hosts: Arc<Hosts>,
    pub(crate) commands: Arc<CommandSessions>,
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
        options.policy = commands.policy;
        options.unconfined = commands.unconfined;
        if let Some(helper) = commands.helper {
            options.helper = helper;
        }
        let sandbox = Arc::new(Sandbox::new(options)?);
        let commands = CommandSessions::new(
            sandbox,
            CommandOptions {
                workspace: workspace.clone(),
                environment: commands.environment,
                observer: Arc::new(CommandEvents(Arc::downgrade(queue))),
                limits: CommandLimits::default(),
            },
        );
        let readable = workspace
            .clone()
            .with_hidden(denies_reading)
            .with_mount(Sandbox::OUTPUTS, &folders.outputs);
        let hosts = Hosts {
            workspace: Arc::new(OpenedWorkspace::new(readable)),
            commands: Arc::new(ConfinedCommands::new(Arc::clone(&commands))),
            ..Hosts::unsupported()
        };
        Ok(Services {
            hosts: Arc::new(hosts),
            commands,
            folders,
            folders_made: Once::new(),
        })
    }
}

impl HostsFactory for Services {
    fn hosts(&self, call: &CallSite) -> Arc<Hosts> {
        if call.capabilities.contains(Capability::Commands) {
            self.folders_made.call_once(|| self.folders.create());
        }
        Arc::clone(&self.hosts)
    }

    fn prepare<'a>(&'a self, call: &'a CallSite) -> BoxFuture<'a, ()> {
        if call.capabilities.contains(Capability::Commands) {
            Box::pin(self.commands.prepare())
        } else {
            Box::pin(std::future::ready(()))
        }
    }
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
        let how = match &command.status {
            Status::Exited(code) => format!("ended with exit code {code}"),
            Status::Signaled(signal) => format!("was ended by {signal}"),
            Status::Stopped(excess) => format!("was stopped: {excess}"),
            Status::Running | Status::Lost(_) => "was lost".to_owned(),
        };
        let message = format!("{} (`{}`) {how}", command.process_id, command.label);
        self.warn("command_ended", message);
    }
}

#[cfg(test)]
mod tests {
    use floe_environment::Secrets;
    use floe_protocol::AgentId;
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
            helper: None,
            environment: floe_command::EnvironmentOptions::default(),
        };
        let folders = Folders::new(&home, &session);
        let services = Services::new(&workspace, folders, commands, &queue).unwrap();
        let reader = &services.hosts.workspace;
        let error = reader.read_range(".env", 0, 9).await.unwrap_err();
        assert_eq!(error.code, "denied");
        assert!(reader.read_range("main.rs", 0, 9).await.is_ok());
    }
}
