//! What a Session waits for a person to say: the decision on its plan, the answers to questions of its tools.

use floe_environment::{PendingQuestion, Surface};
use floe_protocol::{AskedQuestion, DecidedBy, Decision, Mode, Source};
use tokio_util::sync::CancellationToken;

use super::Session;
use crate::RunEnd;
use crate::clarification::Reply;
use crate::plan::{self, PlanDecision, WaitingPlan};

impl Session {
    /// The plan that waits for a decision.
    pub fn proposed_plan(&self) -> Option<String> {
        self.services.plans.waiting().map(|waiting| waiting.plan)
    }

    /// Decides on the plan that waits; None where none does. No approval mode does this. An approved plan switches the Session to
    /// build mode, and the model goes on with the plan in hand; where it is to be revised, the model goes on in plan mode; where it
    /// is rejected nothing runs, and the model learns of it with the next input. A plan that nobody decides on leaves the Session as
    /// it is.
    pub async fn decide_plan(
        &self,
        decision: PlanDecision,
        cancel: &CancellationToken,
    ) -> Option<RunEnd> {
        let mut conversation = self.conversation.lock().await;
        let waiting = self.services.plans.take()?;
        self.begin();
        if let Some(approver) = &self.approver {
            approver.forget();
        }
        let approved = decision == PlanDecision::Approve;
        self.record_decision(
            &waiting,
            match approved {
                true => Decision::Allow,
                false => Decision::Deny,
            },
        );
        if approved {
            self.environment.set_mode(Mode::Build);
        }
        let told = self
            .queue
            .emit_for_model(plan::told(&decision, &waiting.plan));
        let end = match &self.agent_loop {
            Some(agent_loop) if decision != PlanDecision::Reject => {
                agent_loop.run_told(&mut conversation, told, cancel).await
            }
            _ => {
                let undelivered = conversation.take_input(vec![told]);
                conversation.carry_over(undelivered);
                RunEnd::Ended {
                    text: String::new(),
                }
            }
        };
        Some(self.recorded(end).await)
    }

    pub(super) fn record_decision(&self, waiting: &WaitingPlan, decision: Decision) {
        let by = match (self.identity.source, self.identity.surface) {
            (Some(Source::Subagent), _) => DecidedBy::Nobody,
            (_, Surface::Library) => DecidedBy::Callback,
            _ => DecidedBy::Person,
        };
        self.environment
            .record_plan_decision(&waiting.call, decision, by, waiting.waited_ms());
    }

    /// The questions of tools that wait for an answer, oldest first.
    pub fn questions(&self) -> Vec<PendingQuestion<AskedQuestion>> {
        self.services.questions.open()
    }

    /// Answers the question of a call. False where none waits.
    pub fn answer_question(&self, tool_call_id: &str, reply: Reply) -> bool {
        self.services.questions.pending.answer(tool_call_id, reply)
    }
}
