//! A Session: opened with everything that its tools reach, then used for runs or for single calls, then closed.

mod person;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use floe_command::{CommandSummary, Status};
use floe_environment::{
    Approver, Environment, EnvironmentOptions, MessageSink, Outputs, Parent, Reach, Surface,
    ToolCallOutput, ToolListing,
};
use floe_protocol::{
    AgentId, Decision, Home, ModelMsg, OmniMessage, SessionId, SessionMeta, Source, StopReason,
    ToolCall,
};
use floe_runtime::{Capability, CapabilitySet};
use floe_sandbox::Network;
use floe_trace::{Head, TraceWriter};
use floe_workspace::Workspace;
use tokio_util::sync::CancellationToken;

use crate::agent_loop::{AgentLoop, interrupted};
use crate::conversation::Conversation;
use crate::folders::{self, Folders};
use crate::message_queue::MessageQueue;
use crate::refusals::RememberingApprover;
use crate::resume::{self, Earlier};
use crate::services::{ServiceOptions, Services};
use crate::subagents::Kinship;
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

/// How a Session begins.
struct Start {
    id: SessionId,
    /// What its Trace says where it was open before.
    earlier: Option<Earlier>,
}

impl Start {
    fn new(id: SessionId) -> Start {
        Start { id, earlier: None }
    }

    fn again(earlier: Earlier) -> Start {
        Start {
            id: earlier.session.clone(),
            earlier: Some(earlier),
        }
    }
}

/// What the first record of the Trace says about a Session.
struct Identity {
    home: Home,
    agent: AgentId,
    workspace: Workspace,
    source: Option<Source>,
    surface: Surface,
    system_prompt: String,
    /// True where the Trace has that record already.
    goes_on: bool,
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
        let family = options.clone();
        Session::assemble(
            options,
            Start::new(SessionId::generate()),
            Some(family),
            None,
        )
    }

    /// Goes on with an earlier Session, by its name or the beginning of it, from its Trace: the same conversation, mode and waiting
    /// plan, the same Trace. Its agent, system prompt and mode win over those of the options; the model may be another.
    ///
    /// # Errors
    ///
    /// As for [`Session::open`]; its Trace is not there, does not verify, is still written, or is about another Workspace.
    pub fn resume(mut options: SessionOptions, id: &str) -> Result<Session, SessionError> {
        folders::sweep_in_background(&options.home);
        let earlier = resume::read(&options.home, id)?;
        earlier.is_about(options.workspace.canonical_path())?;
        options.agent = earlier.agent.clone();
        options.mode = earlier.mode;
        let family = options.clone();
        Session::assemble(options, Start::again(earlier), Some(family), None)
    }

    /// Opens a child, which has no children.
    pub(crate) fn open_child(
        options: SessionOptions,
        kinship: Kinship,
    ) -> Result<Session, SessionError> {
        let Kinship { id, parent } = kinship;
        Session::assemble(options, Start::new(id), None, Some(parent))
    }

    /// Puts a Session together: one that may have children is given what they are made from.
    fn assemble(
        options: SessionOptions,
        Start { id, earlier }: Start,
        family: Option<SessionOptions>,
        parent: Option<Parent>,
    ) -> Result<Session, SessionError> {
        let writer = match &earlier {
            Some(earlier) => earlier.writer(&options.home)?,
            None => TraceWriter::create(&options.home, &options.agent, &id),
        };
        let queue = MessageQueue::new(writer, options.observer, options.secrets.clone());
        let queue = Arc::new(match parent {
            Some(_) => queue.echoing(),
            None => queue,
        });
        let network = options.policy.network != Network::Off;
        let outputs = Outputs::new(options.home.outputs(&id), options.secrets.clone());
        let services = Arc::new(Services::new(
            &options.workspace,
            Folders::new(&options.home, &id),
            ServiceOptions {
                session: id.clone(),
                policy: options.policy,
                gate: options.gate,
                web_search: options.web_search,
                language_servers: options.language_servers,
                unconfined: options.unconfined,
                home: options.home.clone(),
                helper: options.helper,
                environment: options.command_environment,
                clarifier: options.clarifier,
                answer_timeout: options.approval_timeout,
                outputs: Arc::clone(&outputs),
                family,
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
            rate: options.rate,
            reach: Reach {
                workspace: options.workspace.canonical_path().to_owned(),
                network,
                confined: !options.unconfined,
            },
            asked_by: parent.as_ref().map(|_| id.to_string()),
            withheld: match parent {
                Some(_) => CapabilitySet::EMPTY.with(Capability::Subagents),
                None => CapabilitySet::EMPTY,
            },
            parent,
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
        if let Some(children) = &services.children {
            children.belong_to(environment.as_parent());
        }
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
        let system_prompt = match &earlier {
            Some(earlier) => earlier.meta.system_prompt.clone(),
            None => system_prompt.unwrap_or_default(),
        };
        let goes_on = earlier.is_some();
        let mut conversation = Conversation::default();
        let mut ids = ToolCallIds::default();
        if let Some(earlier) = earlier {
            conversation = earlier.conversation;
            ids = ToolCallIds::used(earlier.ids);
            services.state.restore(earlier.todos);
            if let Some((call, plan)) = earlier.plan {
                services.plans.restore(call, plan);
            }
            let model = options.model.as_ref().map(|model| model.model_id());
            if let Some(model) = model
                && Some(model) != earlier.meta.model_id.as_deref()
            {
                queue.warn("other_model", format!("this Session goes on with {model}"));
            }
        }
        let ids = Arc::new(Mutex::new(ids));
        let agent_loop = options.model.map(|model| AgentLoop {
            queue: Arc::clone(&queue),
            tools: Arc::new(environment.clone()),
            background: Arc::clone(&services.commands) as _,
            plans: Arc::clone(&services.plans),
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
                surface: options.surface,
                system_prompt,
                goes_on,
            },
            queue,
            environment,
            services,
            approver,
            ids,
            agent_loop,
            conversation: tokio::sync::Mutex::new(conversation),
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
        self.answer(ModelMsg::user_text(input), cancel).await
    }

    /// Answers an input, whoever it is from.
    pub(crate) async fn answer(&self, input: ModelMsg, cancel: &CancellationToken) -> RunEnd {
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
        if let Some(waiting) = self.services.plans.take() {
            // Whoever says something else has not approved.
            self.record_decision(&waiting, Decision::Deny);
        }
        let end = agent_loop.run(&mut conversation, input, cancel).await;
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
            (RunEnd::Ended { .. } | RunEnd::PlanProposed { .. }, Err(reason)) => RunEnd::Failed {
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
        let (plans, queue) = (Arc::clone(&self.services.plans), Arc::clone(&self.queue));
        async move {
            let output = output.await.unwrap_or_else(|| interrupted(&call));
            if let Some(waiting) = plans.ended(&call, &output) {
                queue.emit(waiting.event());
            }
            output
        }
    }

    /// Ends the Session: commands that still run are ended, and the Trace is made durable. What is called afterwards finds its
    /// services gone.
    pub async fn close(&self) -> Closed {
        if let Some(children) = &self.services.children {
            children.close().await;
        }
        let running = self.services.commands.list();
        self.services.commands.dispose().await;
        self.services.language_servers.close().await;
        self.services.network.close();
        self.services.http.gate().close();
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

    /// The hash of the last record, made durable; none where there is none.
    pub(crate) async fn last_hash(&self) -> Option<String> {
        self.sync().await.ok().flatten().map(|head| head.hash)
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
        if self.identity.goes_on {
            self.queue.begin_again();
            return;
        }
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
