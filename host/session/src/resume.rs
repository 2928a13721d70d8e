//! Goes on with a Session from its Trace: the records are read back into the conversation that the model knew, the plan that waited,
//! and the mode that held. What was on the way and left no record is told as interrupted.
//!
//! Nothing is run again. The records are verified first: what somebody changed is not what the model was told.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use floe_environment::{CallOutcome, ToolCallOutput};
use floe_protocol::{
    AgentId, Body, Decision, DecisionKind, EventMsg, Home, Mode, ModelMsg, OmniMessage, Role,
    SessionId, SessionMeta, StopReason, Todo, ToolCall,
};
use floe_trace::{TraceWriter, VerifyTarget};

use crate::SessionError;
use crate::agent_loop::{interrupted, output_message, whole_call};
use crate::blocks::{self, Remains};
use crate::conversation::Conversation;

/// What a Trace says of its Session.
#[derive(Debug)]
pub(crate) struct Earlier {
    pub(crate) session: SessionId,
    pub(crate) agent: AgentId,
    pub(crate) meta: SessionMeta,
    pub(crate) conversation: Conversation,
    /// The ids of its calls.
    pub(crate) ids: HashSet<String>,
    pub(crate) mode: Mode,
    /// The plan that waits, and the call that handed it in.
    pub(crate) plan: Option<(ToolCall, String)>,
    pub(crate) todos: Vec<Todo>,
    /// The hash of the last record that was read.
    pub(crate) last_hash: Option<String>,
}

impl Earlier {
    /// Opens its Trace to be written on, from where it was read to. Until it is locked somebody else may have gone on with it, and decided on
    /// the plan that still waits here.
    ///
    /// # Errors
    ///
    /// It is being written, or has been.
    pub(crate) fn writer(&self, home: &Home) -> Result<TraceWriter, SessionError> {
        let writer = TraceWriter::resume(home, &self.agent, &self.session)?;
        // Where a torn line was ended, the record that says so is the last.
        if writer.healed().is_none() && writer.last_hash() != self.last_hash.as_deref() {
            return Err(SessionError::Resume(format!(
                "{} has gone on while it was read; try again",
                self.session
            )));
        }
        Ok(writer)
    }

    /// # Errors
    ///
    /// It was about another folder.
    pub(crate) fn is_about(&self, workspace: &Path) -> Result<(), SessionError> {
        if Path::new(&self.meta.workspace) == workspace {
            return Ok(());
        }
        Err(SessionError::Resume(format!(
            "{} worked in {}; name that folder as its Workspace",
            self.session, self.meta.workspace
        )))
    }
}

/// Reads the Session `id`, or the only one whose name begins with it.
///
/// # Errors
///
/// There is none, it cannot be read, or it is not as it was written.
pub(crate) fn read(home: &Home, id: &str) -> Result<Earlier, SessionError> {
    let found = floe_trace::find(home, id)?;
    let target = VerifyTarget::Session {
        home,
        id: found.session.to_string(),
    };
    let verified = floe_trace::verify(&target, None)?;
    if let Some(fault) = verified.faults.first() {
        return Err(SessionError::Resume(format!(
            "the Trace of {} does not verify: {fault}",
            found.session
        )));
    }
    let mut replay = Replay::default();
    for file in &found.files {
        for record in floe_trace::read(file)? {
            let record = record
                .map_err(|fault| SessionError::Resume(unreadable(file, &fault.to_string())))?;
            replay.message(record.message);
        }
    }
    let mut earlier = replay.end(found.session, found.agent)?;
    earlier.last_hash = verified.last_hash;
    Ok(earlier)
}

fn unreadable(file: &Path, fault: &str) -> String {
    format!("{}: {fault}", file.display())
}

/// The conversation that these records leave.
#[cfg(test)]
pub(crate) fn conversation(records: Vec<OmniMessage>) -> Conversation {
    let mut replay = Replay::default();
    for record in records {
        replay.message(record);
    }
    replay.settle();
    replay.conversation
}

/// The state between two records.
#[derive(Default)]
struct Replay {
    meta: Option<SessionMeta>,
    conversation: Conversation,
    /// What goes to the model with the next request.
    input: Vec<ModelMsg>,
    /// What the running request has brought.
    answer: Vec<ModelMsg>,
    asking: bool,
    /// Attempts of this turn that broke off; the outputs of the last may still come.
    broken: Vec<Remains>,
    /// Committed calls whose outputs go with the next request, in order.
    called: Vec<ToolCall>,
    outputs: HashMap<String, ModelMsg>,
    calls: HashMap<String, ToolCall>,
    switched: Option<Mode>,
    plan: Option<(ToolCall, String)>,
    todos: Vec<Todo>,
}

impl Replay {
    fn message(&mut self, message: OmniMessage) {
        match message.body {
            Body::SessionMeta(meta) => self.meta = Some(meta),
            Body::ModelMsg(message) => self.model(message),
            Body::EventMsg(event) => self.event(event),
        }
    }

    fn model(&mut self, message: ModelMsg) {
        if let ModelMsg::ToolCall {
            name,
            arguments,
            tool_call_id,
            ..
        } = &message
        {
            let call = ToolCall {
                name: name.clone(),
                arguments: arguments.clone(),
                tool_call_id: tool_call_id.clone(),
            };
            self.calls.insert(tool_call_id.clone(), call);
        }
        match message {
            ModelMsg::ToolCallOutput {
                ref tool_call_id, ..
            } => {
                self.outputs.insert(tool_call_id.clone(), message);
            }
            ModelMsg::Text {
                role: Role::User, ..
            } => {
                self.turn_aborted();
                self.input.push(message);
            }
            // What the harness says outside a request, such as that the turns are used up, the model never saw.
            answer if self.asking => self.answer.push(answer),
            _ => {}
        }
    }

    fn event(&mut self, event: EventMsg) {
        match event {
            EventMsg::RequestBegin {} => {
                self.answer_calls();
                self.asking = true;
            }
            EventMsg::RequestEnd { status, .. } => self.request_ended(status),
            EventMsg::Abort { .. } => {
                self.broke_off();
                self.turn_aborted();
            }
            EventMsg::TokenUsage { session, .. } => self.conversation.tokens = session,
            EventMsg::PlanProposed { tool_call_id, plan } => {
                self.plan = self
                    .calls
                    .get(&tool_call_id)
                    .map(|call| (call.clone(), plan));
            }
            EventMsg::ApprovalDecision(decision) if decision.kind == DecisionKind::Plan => {
                self.plan = None;
                if decision.decision == Decision::Allow {
                    self.switched = Some(Mode::Build);
                }
            }
            EventMsg::TodoList { todos } => self.todos = todos,
            _ => {}
        }
    }

    fn request_ended(&mut self, status: StopReason) {
        if status != StopReason::Completed {
            self.broke_off();
            return;
        }
        self.asking = false;
        let mut input = std::mem::take(&mut self.input);
        self.told_outputs();
        input.extend(blocks::turn_retried(&std::mem::take(&mut self.broken)));
        let answer = std::mem::take(&mut self.answer);
        self.called = answer.iter().filter_map(whole_call).collect();
        self.conversation.commit(input, answer);
    }

    /// An attempt ended without its answer.
    fn broke_off(&mut self) {
        if std::mem::take(&mut self.asking) {
            self.broken.push(Remains {
                messages: std::mem::take(&mut self.answer),
                outputs: vec![],
            });
        }
    }

    /// The turn was given up: the model learns of what it had done with the next input.
    fn turn_aborted(&mut self) {
        self.told_outputs();
        let broken = std::mem::take(&mut self.broken);
        self.input.extend(blocks::turn_aborted(&broken));
    }

    /// Gives the attempts that broke off the outputs that came meanwhile.
    fn told_outputs(&mut self) {
        for remains in &mut self.broken {
            let calls = remains.messages.iter().filter_map(whole_call);
            let outputs = calls.filter_map(|call| self.outputs.remove(&call.tool_call_id));
            remains.outputs.extend(outputs.filter_map(output));
        }
    }

    /// Every committed call is answered before anything else goes to the model.
    fn answer_calls(&mut self) {
        let calls = std::mem::take(&mut self.called);
        let mut input: Vec<ModelMsg> = calls
            .into_iter()
            .map(|call| {
                let output = self.outputs.remove(&call.tool_call_id);
                output.unwrap_or_else(|| output_message(interrupted(&call)))
            })
            .collect();
        input.append(&mut self.input);
        self.input = input;
    }

    /// The last record was read: what was on the way goes with the next input.
    fn settle(&mut self) {
        self.broke_off();
        self.turn_aborted();
        self.answer_calls();
        self.conversation
            .carry_over(std::mem::take(&mut self.input));
    }

    fn end(mut self, session: SessionId, agent: AgentId) -> Result<Earlier, SessionError> {
        let Some(meta) = self.meta.take() else {
            return Err(SessionError::Resume(format!(
                "the Trace of {session} does not say what the Session was"
            )));
        };
        self.settle();
        if meta.model_id.is_none() || meta.source.is_some() {
            return Err(SessionError::Resume(format!(
                "{session} was no conversation with a person"
            )));
        }
        Ok(Earlier {
            session,
            agent,
            mode: self.switched.unwrap_or(meta.mode),
            meta,
            conversation: self.conversation,
            ids: self.calls.into_keys().collect(),
            plan: self.plan,
            todos: self.todos,
            last_hash: None,
        })
    }
}

fn output(message: ModelMsg) -> Option<ToolCallOutput> {
    match message {
        ModelMsg::ToolCallOutput {
            output,
            images,
            tool_call_id,
            stop_reason,
            facts,
            ..
        } => Some(ToolCallOutput {
            tool_call_id,
            output,
            images: images.unwrap_or_default(),
            stop_reason,
            facts,
            end: CallOutcome::Ran,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use floe_protocol::ApprovalMode;

    use super::*;

    #[test]
    fn what_has_gone_on_while_it_was_read_is_not_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        let (agent, session) = (AgentId::default(), SessionId::generate());
        let meta = SessionMeta {
            session_id: session.to_string(),
            provider: Some("script".to_owned()),
            model_id: Some("m".to_owned()),
            model_context_window: "unknown".into(),
            system_prompt: String::new(),
            agent_state: String::new(),
            workspace: "/w".to_owned(),
            source: None,
            mode: Mode::Plan,
            approval_mode: ApprovalMode::AllowAll,
        };
        let mut writer = TraceWriter::create(&home, &agent, &session);
        writer
            .append(&OmniMessage::new(Body::SessionMeta(meta)))
            .unwrap();
        writer.sync().unwrap();
        drop(writer);
        let earlier = read(&home, session.as_str()).unwrap();
        let mut another = earlier.writer(&home).unwrap();
        let warning = EventMsg::Warning {
            code: "x".to_owned(),
            message: "y".to_owned(),
        };
        another.append(&OmniMessage::event(warning)).unwrap();
        another.sync().unwrap();
        assert!(earlier.writer(&home).is_err(), "it is being written");
        drop(another);
        let error = earlier.writer(&home).err().unwrap();
        assert!(error.to_string().contains("has gone on"), "{error}");
        assert!(read(&home, session.as_str()).unwrap().writer(&home).is_ok());
    }
}
