//! A Session: opened with everything that its tools reach, then used for runs or for single calls, then closed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use floe_command::{CommandSummary, Status};
use floe_environment::{
    Approver, Environment, EnvironmentOptions, MessageSink, Outputs, Reach, ToolCallOutput,
    ToolListing,
};
use floe_protocol::{
    AgentId, Home, ModelMsg, OmniMessage, SessionId, SessionMeta, Source, StopReason, ToolCall,
};
use floe_sandbox::Network;
use floe_trace::{Head, TraceWriter};
use floe_workspace::Workspace;
use tokio_util::sync::CancellationToken;

use crate::agent_loop::{AgentLoop, interrupted};
use crate::conversation::Conversation;
use crate::folders::{self, Folders};
use crate::message_queue::MessageQueue;
use crate::refusals::RememberingApprover;
use crate::services::{ServiceOptions, Services};
use crate::tool_call_ids::ToolCallIds;
use crate::{RunEnd, SessionError, SessionOptions, system_prompt};

/// One Session. All its methods may be called from several tasks; runs are made one after the other.
pub struct Session {
    id: SessionId,
    identity: Identity,
    queue: Arc<MessageQueue>,
    environment: Environment,
    services: Arc<Services>,
    approver: Option<Arc<RememberingApprover>>,
    ids: Arc<Mutex<ToolCallIds>>,
    agent_loop: Option<AgentLoop>,
    conversation: tokio::sync::Mutex<Conversation>,
}

/// What the first record of the Trace says about a Session.
struct Identity {
    home: Home,
    agent: AgentId,
    workspace: Workspace,
    source: Option<Source>,
    system_prompt: String,
}

/// What a Session leaves behind.
#[derive(Debug)]
pub struct Closed {
    /// The last record of the Trace; none where nothing was recorded.
    pub head: Option<Head>,
    /// The Trace's last file.
    pub trace: Option<PathBuf>,
    /// Why the Trace could not be made durable.
    pub trace_fault: Option<String>,
    /// Commands that still ran and were ended with the Session.
    pub ended_commands: Vec<CommandSummary>,
}

impl Session {
    /// Opens a Session. Nothing is written, started or probed yet. Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// The sandbox cannot be made with these options.
    pub fn open(options: SessionOptions) -> Result<Session, SessionError> {
        folders::sweep_in_background(&options.home);
        let id = SessionId::generate();
        let writer = TraceWriter::create(&options.home, &options.agent, &id);
        let queue = Arc::new(MessageQueue::new(
            writer,
            options.observer,
            options.secrets.clone(),
        ));
        let network = options.policy.network != Network::Off;
        let outputs = Outputs::new(options.home.outputs(&id), options.secrets.clone());
        let services = Arc::new(Services::new(
            &options.workspace,
            Folders::new(&options.home, &id),
            ServiceOptions {
                session: id.clone(),
                policy: options.policy,
                unconfined: options.unconfined,
                home: options.home.clone(),
                helper: options.helper,
                environment: options.command_environment,
                interaction: options.interaction,
                outputs: Arc::clone(&outputs),
            },
            &queue,
        )?);
        let approver = options
            .approver
            .map(|approver| Arc::new(RememberingApprover::new(approver)));
        let environment = Environment::new(EnvironmentOptions {
            selection: options.selection,
            vision: options.model.as_ref().is_none_or(|model| model.vision()),
            mode: options.mode,
            approval_mode: options.approval_mode,
            max_permission: options.max_permission,
            surface: options.surface,
            approver: approver
                .clone()
                .map(|approver| approver as Arc<dyn Approver>),
            approval_timeout: options.approval_timeout,
            rules: options.rules,
            reach: Reach {
                workspace: options.workspace.canonical_path().to_owned(),
                network,
                confined: !options.unconfined,
            },
            outputs: Some(outputs),
            reports_ends: options.model.is_some(),
            secrets: options.secrets,
            ..EnvironmentOptions::new(
                id.to_string(),
                options.registry,
                Arc::clone(&services) as _,
                Arc::clone(&queue) as _,
            )
        });
        let system_prompt = options.model.as_ref().map(|model| {
            system_prompt::assemble(
                options.system_prompt.as_deref(),
                &system_prompt::Facts {
                    agent: options.agent.as_str(),
                    provider: model.provider(),
                    model: model.model_id(),
                    session: id.as_str(),
                },
            )
        });
        let system_prompt = system_prompt.unwrap_or_default();
        let ids = Arc::new(Mutex::default());
        let agent_loop = options.model.map(|model| AgentLoop {
            queue: Arc::clone(&queue),
            tools: Arc::new(environment.clone()),
            background: Arc::clone(&services.commands) as _,
            model,
            ids: Arc::clone(&ids),
            system_prompt: system_prompt.clone(),
            max_turns: options.max_turns,
            max_tokens: options.max_tokens,
        });
        Ok(Session {
            id,
            identity: Identity {
                home: options.home,
                agent: options.agent,
                workspace: options.workspace,
                source: options.source,
                system_prompt,
            },
            queue,
            environment,
            services,
            approver,
            ids,
            agent_loop,
            conversation: tokio::sync::Mutex::default(),
        })
    }

    /// Its name, also that of its Trace.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The tools that can be called now.
    pub fn tools(&self) -> Vec<ToolListing> {
        self.environment.tools()
    }

    /// The door to its tools: modes that may be changed, questions that wait.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Gives the model an input and lets it work until it has no more to call. A run that is not the first goes on with the
    /// conversation. Waits where another run is under way.
    pub async fn run(&self, input: &str, cancel: &CancellationToken) -> RunEnd {
        let mut conversation = self.conversation.lock().await;
        let Some(agent_loop) = &self.agent_loop else {
            return RunEnd::Failed {
                reason: "this Session has no model".into(),
            };
        };
        if let Some(approver) = &self.approver {
            approver.forget();
        }
        self.begin();
        let end = agent_loop
            .run(&mut conversation, ModelMsg::user_text(input), cancel)
            .await;
        self.recorded(end).await
    }

    /// The commands whose end the model was promised to hear of and that still run.
    pub fn awaited_commands(&self) -> Vec<CommandSummary> {
        self.services.commands.awaited()
    }

    /// Waits until something has ended that the model was promised to hear of. False, at once, where there is nothing of this
    /// kind any more.
    pub async fn background_task_done(&self) -> bool {
        self.agent_loop.is_some() && self.services.commands.report_due().await
    }

    /// Tells the model what has ended in the background since its last turn, and lets it work on. None where nothing has.
    pub async fn run_on(&self, cancel: &CancellationToken) -> Option<RunEnd> {
        let mut conversation = self.conversation.lock().await;
        let agent_loop = self.agent_loop.as_ref()?;
        let end = agent_loop.run_on(&mut conversation, cancel).await?;
        Some(self.recorded(end).await)
    }

    /// The end of a run whose Trace is made durable; without that it is none.
    async fn recorded(&self, end: RunEnd) -> RunEnd {
        match (end, self.sync().await) {
            (RunEnd::Ended { .. }, Err(reason)) => RunEnd::Failed {
                reason: format!("the Trace is not complete: {reason}"),
            },
            (end, _) => end,
        }
    }

    /// Runs one call, without a model. The Trace is made durable when the Session is closed.
    pub async fn call(
        &self,
        tool: &str,
        arguments: &str,
        cancel: &CancellationToken,
    ) -> ToolCallOutput {
        self.start_call(self.name_call(tool, arguments), cancel.clone())
            .await
    }

    /// Gives a call its name, so that whoever follows the stream knows it from its first message on. Nothing happens yet.
    pub fn name_call(&self, tool: &str, arguments: &str) -> ToolCall {
        ToolCall {
            name: tool.to_owned(),
            arguments: arguments.to_owned(),
            tool_call_id: self
                .ids
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .allocate("call"),
        }
    }

    /// Makes a named call, without a model. It is tied to `cancel`, not to the future, and its place in the line of decisions is
    /// taken before this returns.
    pub fn start_call(
        &self,
        call: ToolCall,
        cancel: CancellationToken,
    ) -> impl Future<Output = ToolCallOutput> + Send + 'static {
        self.begin();
        self.queue.emit(OmniMessage::model(ModelMsg::ToolCall {
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            tool_call_id: call.tool_call_id.clone(),
            stop_reason: StopReason::Completed,
            fidelity: None,
        }));
        let output = self.environment.execute(call.clone(), cancel);
        async move { output.await.unwrap_or_else(|| interrupted(&call)) }
    }

    /// Ends the Session: commands that still run are ended, and the Trace is made durable. What is called afterwards finds its
    /// services gone.
    pub async fn close(&self) -> Closed {
        let running = self.services.commands.list();
        self.services.commands.dispose().await;
        self.services.network.close();
        let synced = self.sync().await;
        let services = Arc::clone(&self.services);
        let _ = tokio::task::spawn_blocking(move || services.folders.clean_up()).await;
        Closed {
            trace: self.queue.trace_path(),
            trace_fault: synced.as_ref().err().cloned(),
            head: synced.ok().flatten(),
            ended_commands: running
                .into_iter()
                // Others belong to calls that have ended, and are ending with them.
                .filter(|command| command.kept && command.status == Status::Running)
                .collect(),
        }
    }

    async fn sync(&self) -> Result<Option<Head>, String> {
        let queue = Arc::clone(&self.queue);
        let synced = tokio::task::spawn_blocking(move || queue.sync()).await;
        match synced {
            Ok(synced) => synced.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Writes the first record, with the first input.
    fn begin(&self) {
        let model = self.agent_loop.as_ref().map(|running| &running.model);
        let identity = &self.identity;
        self.queue.begin(|| SessionMeta {
            session_id: self.id.to_string(),
            provider: model.map(|model| model.provider().to_owned()),
            model_id: model.map(|model| model.model_id().to_owned()),
            model_context_window: model
                .and_then(|model| model.context_window())
                .map_or_else(|| "unknown".into(), Into::into),
            system_prompt: identity.system_prompt.clone(),
            agent_state: identity.home.agent(&identity.agent).display().to_string(),
            workspace: identity.workspace.canonical_path().display().to_string(),
            source: identity.source,
            mode: self.environment.mode(),
            approval_mode: self.environment.approval_mode(),
        });
    }
}
