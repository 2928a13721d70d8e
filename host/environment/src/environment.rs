//! The Environment of one Session: its tools, its settings, and the one door to run a tool.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use floe_protocol::{
    ApprovalMode, DecidedBy, Decision, EventMsg, Mode, OmniMessage, Permission, ToolCall,
    ToolDefinition,
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::approval::{Answer, Question};
use crate::calls::{CallFuture, Calls};
use crate::catalogue::{Catalogue, Found, Offer, ToolListing};
use crate::decision::Granted;
use crate::gate::rate::RateGate;
use crate::line::Line;
use crate::options::EnvironmentOptions;
use crate::pending::{Pending, PendingApproval};
use crate::settings::{Changeable, Parent, Settings};
use crate::whole_output::Outputs;

/// Executes the tool calls of one Session. Clones share it.
///
/// [`Environment::execute`] is the only way to run a tool, for the loop, for children, for every surface.
#[derive(Clone)]
pub struct Environment(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) options: EnvironmentOptions,
    pub(crate) catalogue: Catalogue,
    settings: Changeable,
    /// A family has one.
    pub(crate) rate: Arc<RateGate>,
    pub(crate) pending: Pending<Question, Answer>,
    /// Calls that a person allowed for the whole Session, by tool and digest of the arguments.
    pub(crate) allowed: Mutex<HashSet<(String, String)>>,
    /// What a person let calls of the whole Session reach beyond its policy.
    pub(crate) granted: Mutex<Granted>,
    pub(crate) outputs: Option<Arc<Outputs>>,
    line: Arc<Line>,
    calls: Arc<Calls>,
    host: Handle,
}

impl Environment {
    /// An Environment that runs its calls on the current tokio runtime. A name that was selected and that nothing provides is
    /// left out with one warning.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new(options: EnvironmentOptions) -> Environment {
        let (catalogue, missing) = Catalogue::new(
            Arc::clone(&options.registry),
            &options.selection,
            options.vision,
            options.withheld,
        );
        if !missing.is_empty() {
            options.sink.emit(OmniMessage::event(EventMsg::Warning {
                code: "unknown_tool".into(),
                message: format!(
                    "the agent's tools.builtin names what nothing provides: {}",
                    missing.join(", ")
                ),
            }));
        }
        Environment(Arc::new(Inner {
            catalogue,
            settings: Changeable::new(
                Settings {
                    mode: options.mode,
                    approval_mode: options.approval_mode,
                    max_permission: options.max_permission,
                },
                options.parent.clone(),
            ),
            rate: match options.parent.as_ref().and_then(Parent::upgrade) {
                Some(parent) => Arc::clone(&parent.0.rate),
                None => Arc::new(RateGate::new(options.rate)),
            },
            pending: Pending::default(),
            allowed: Mutex::default(),
            granted: Mutex::default(),
            outputs: options.outputs.clone(),
            line: Line::new(),
            calls: Arc::default(),
            host: Handle::current(),
            options,
        }))
    }

    /// The tools that can be called now: those of the Session that its mode and its surface allow, in a stable order.
    pub fn tools(&self) -> Vec<ToolListing> {
        let Inner {
            catalogue, options, ..
        } = &*self.0;
        catalogue.list(self.0.settings(), options.surface)
    }

    /// The permission of a tool of this Session: as its definition declares it, or, of one that starts children, as the host
    /// computes it.
    pub fn permission_of(&self, name: &str) -> Option<Permission> {
        match self.0.catalogue.find(name)? {
            Found::Offered(offer) => Some(self.0.declared(offer)),
            Found::Hidden(_) => None,
        }
    }

    /// A tool of this Session as it is defined here, whether its mode and its surface allow it now or not.
    pub fn definition_of(&self, name: &str) -> Option<&ToolDefinition> {
        match self.0.catalogue.find(name)? {
            Found::Offered(offer) => Some(&offer.definition),
            Found::Hidden(_) => None,
        }
    }

    /// This Environment as the parent of another.
    pub fn as_parent(&self) -> Parent {
        Parent(Arc::downgrade(&self.0))
    }

    /// Runs a complete tool call. Its place in the line of decisions is taken before this returns, so decisions are made in call
    /// order, while calls that were allowed run at the same time.
    ///
    /// The call is tied to `cancel` and not to the future: dropping the future stops nothing, and [`Environment::resume`] gives
    /// it back. The future is None where the call was cancelled before it was decided: then nothing was recorded.
    pub fn execute(&self, call: ToolCall, cancel: CancellationToken) -> CallFuture {
        let place = self.0.line.join();
        let (ending, future) = self.0.calls.start(&call.tool_call_id);
        let inner = Arc::clone(&self.0);
        self.0.host.spawn(async move {
            ending.set(inner.pass(call, place, cancel).await);
        });
        future
    }

    /// The result of a call whose future was dropped. None where there is no such call, or somebody has taken its result.
    pub fn resume(&self, tool_call_id: &str) -> Option<CallFuture> {
        self.0.calls.resume(tool_call_id)
    }

    /// The questions that wait for an answer, oldest first.
    pub fn pending(&self) -> Vec<PendingApproval> {
        self.0.pending.list()
    }

    /// Answers the question about a call. False where none waits.
    pub fn answer(&self, tool_call_id: &str, answer: Answer) -> bool {
        self.0.pending.answer(tool_call_id, answer)
    }

    /// Puts the question of a child to whoever answers here, as one about the call that the child works for: it waits under that
    /// call's id, and a surface finds it where it finds the questions of the call itself.
    pub async fn relay(&self, tool_call_id: &str, question: &Question) -> Answer {
        let Some(approver) = &self.0.options.approver else {
            return Answer::Unavailable("nobody can be asked in this Session".to_owned());
        };
        let question = Arc::new(Question {
            tool_call_id: tool_call_id.to_owned(),
            ..question.clone()
        });
        let mut place = self.0.pending.park(tool_call_id, Arc::clone(&question));
        tokio::select! {
            biased;
            Ok(answer) = &mut place.answer => answer,
            answer = approver.decide(&question) => answer,
        }
    }

    /// Records what somebody decided about the plan that a call handed in. The one decision that no approval mode makes: it is for
    /// whoever holds the Session, who switches the mode where the plan is approved.
    pub fn record_plan_decision(
        &self,
        call: &ToolCall,
        decision: Decision,
        by: DecidedBy,
        waited_ms: u64,
    ) {
        self.0.record_plan(call, decision, by, waited_ms);
    }

    /// The mode that the next decision uses.
    pub fn mode(&self) -> Mode {
        self.0.settings().mode
    }

    /// Switches the mode.
    pub fn set_mode(&self, mode: Mode) {
        self.0.settings.change(|settings| settings.mode = mode);
    }

    /// The approval mode that the next decision uses.
    pub fn approval_mode(&self) -> ApprovalMode {
        self.0.settings().approval_mode
    }

    /// Switches the approval mode. A question that waits goes on waiting.
    pub fn set_approval_mode(&self, approval_mode: ApprovalMode) {
        self.0
            .settings
            .change(|settings| settings.approval_mode = approval_mode);
    }

    /// Sets another permission cap, which the next decision uses.
    pub fn set_max_permission(&self, max_permission: Option<Permission>) {
        self.0
            .settings
            .change(|settings| settings.max_permission = max_permission);
    }
}

impl Inner {
    pub(crate) fn settings(&self) -> Settings {
        self.settings.now()
    }

    /// The least that a call of a tool needs, whatever its arguments.
    pub(crate) fn declared(&self, offer: &Offer) -> Permission {
        self.catalogue
            .permission(offer, self.settings(), self.options.surface)
    }
}
