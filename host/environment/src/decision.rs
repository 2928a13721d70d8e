//! The one decision about a call that has passed the gates, and its one event (spec/environment.md 1.9; decisions, "Gates and
//! their words"). The event leaves before any output of the call; a call that is cancelled while it waits leaves none.

mod widening;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use floe_protocol::{
    ApprovalDecision, ApprovalMode, DecidedBy, Decision, DecisionKind, EventMsg, OmniMessage,
    Permission, Reached, Scope, ToolCall,
};
use futures_util::FutureExt;

use crate::approval::{Action, Answer, Question};
use crate::door::{Decided, Passed};
use crate::environment::Inner;
use crate::gate::rule::Effect;
use crate::gate::{Refusal, trace};
use crate::{digest, power};

pub(crate) use self::widening::{Granted, Wanted};

/// What a decision is about, as its event names it.
pub(crate) struct Subject<'call> {
    call: &'call ToolCall,
    arguments_sha256: String,
    tool_sha256: Option<String>,
    capabilities: Vec<String>,
}

impl<'call> Subject<'call> {
    /// A call that a gate ended before it was clear what it may reach.
    pub(crate) fn without_power(
        environment: &Inner,
        call: &'call ToolCall,
        arguments_sha256: String,
    ) -> Subject<'call> {
        Subject {
            call,
            arguments_sha256,
            tool_sha256: environment
                .options
                .registry
                .get(&call.name)
                .map(|tool| tool.sha256.clone()),
            capabilities: Vec::new(),
        }
    }
}

/// Who decided what.
struct Verdict {
    decision: Decision,
    by: DecidedBy,
    scope: Scope,
    rule: Option<String>,
    kind: DecisionKind,
    /// What a widening is about.
    widening: Option<Reached>,
}

impl Verdict {
    fn new(decision: Decision, by: DecidedBy) -> Verdict {
        Verdict {
            decision,
            by,
            scope: Scope::Once,
            rule: None,
            kind: DecisionKind::Call,
            widening: None,
        }
    }
}

impl Inner {
    /// Decides about a call and records the decision.
    pub(crate) async fn decide(
        &self,
        call: &ToolCall,
        mut passed: Passed,
        arguments_sha256: String,
    ) -> Decided {
        let subject = Subject {
            call,
            tool_sha256: Some(passed.offer.tool().sha256.clone()),
            capabilities: power::sorted_names(passed.capabilities),
            arguments_sha256,
        };
        let (verdict, waited_ms) = match self.without_asking(&passed, &subject) {
            Ok(verdict) => (verdict, 0),
            Err(rule) => {
                let since = Instant::now();
                let verdict = self.ask(self.question(&passed, &subject, rule)).await;
                let waited_ms = waited_ms(since);
                if verdict.decision == Decision::Allow
                    && let Err(decided) = self.again(&mut passed, &subject, waited_ms)
                {
                    return decided;
                }
                (verdict, waited_ms)
            }
        };
        let widened = match verdict.decision {
            Decision::Allow => self.widen(&mut passed, &subject).await,
            Decision::Deny => Ok(None),
        };
        // Only now: a call that is interrupted while a person looks at what it wants leaves no decision, and nothing remembered.
        if verdict.scope == Scope::Session {
            self.allowed
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(session_key(&passed, &subject));
        }
        let decision = verdict.decision;
        self.record(&subject, verdict, None, waited_ms);
        if decision == Decision::Deny {
            return Decided::Deny;
        }
        match widened {
            Ok(None) => {}
            Ok(Some(granted)) => granted.record(self, &subject),
            Err((refused, instead)) => {
                refused.record(self, &subject);
                return instead;
            }
        }
        // The record of this very decision may be the first that could not be written.
        match trace::check(self.options.sink.recording(), passed.permission) {
            Ok(()) => Decided::Run(Box::new(passed)),
            Err(refusal) => Decided::Refuse(refusal),
        }
    }

    /// The verdict of rules and mode; where they want a question, the rule that wants it.
    fn without_asking(
        &self,
        passed: &Passed,
        subject: &Subject<'_>,
    ) -> Result<Verdict, Option<String>> {
        let mode = self.settings().approval_mode;
        if mode == ApprovalMode::DenyAll {
            return Ok(Verdict::new(Decision::Deny, DecidedBy::Mode));
        }
        let rule = self.options.rules.about(&passed.offer.definition.name);
        match rule.map(|rule| (rule.effect, rule.id.clone())) {
            Some((Effect::Ask, id)) => return self.unless_allowed(passed, subject, Some(id)),
            Some((Effect::Allow, id)) => {
                return Ok(Verdict {
                    rule: Some(id),
                    ..Verdict::new(Decision::Allow, DecidedBy::Rule)
                });
            }
            Some((Effect::Deny, _)) | None => {}
        }
        let allowed = match mode {
            ApprovalMode::AllowAll => true,
            ApprovalMode::ReadOnly => passed.permission <= Permission::ReadOnly,
            ApprovalMode::AlwaysAsk | ApprovalMode::DenyAll => false,
        };
        if allowed {
            Ok(Verdict::new(Decision::Allow, DecidedBy::Mode))
        } else {
            self.unless_allowed(passed, subject, None)
        }
    }

    /// What was allowed for the Session is not asked about again.
    fn unless_allowed(
        &self,
        passed: &Passed,
        subject: &Subject<'_>,
        rule: Option<String>,
    ) -> Result<Verdict, Option<String>> {
        let allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        if allowed.contains(&session_key(passed, subject)) {
            Ok(Verdict {
                scope: Scope::Session,
                rule,
                ..Verdict::new(Decision::Allow, self.decides_as())
            })
        } else {
            Err(rule)
        }
    }

    fn decides_as(&self) -> DecidedBy {
        self.options
            .approver
            .as_ref()
            .map_or(DecidedBy::Nobody, |approver| approver.decides_as())
    }

    /// Asks. Whatever goes wrong denies.
    async fn ask(&self, question: Question) -> Verdict {
        let rule = question.rule.clone();
        let deny = |by, rule| Verdict {
            rule,
            ..Verdict::new(Decision::Deny, by)
        };
        let Some(approver) = &self.options.approver else {
            return deny(DecidedBy::Nobody, rule);
        };
        let question = Arc::new(question);
        let mut place = self
            .pending
            .park(&question.tool_call_id, Arc::clone(&question));
        // Called inside, so that an approver that breaks off before it gives a future is one that breaks off too.
        let asked = AssertUnwindSafe(async { approver.decide(&question).await }).catch_unwind();
        let timeout = async {
            match self.options.approval_timeout {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let answer = tokio::select! {
            biased;
            Ok(answer) = &mut place.answer => answer,
            answer = asked => answer.unwrap_or_else(|_| {
                tracing::error!(tool = %question.tool, "the approver broke off; the call is denied");
                Answer::Deny
            }),
            () = timeout => return deny(DecidedBy::Timeout, rule),
        };
        let by = approver.decides_as();
        match answer {
            Answer::Allow => Verdict {
                rule,
                ..Verdict::new(Decision::Allow, by)
            },
            Answer::AllowForSession => Verdict {
                scope: Scope::Session,
                rule,
                ..Verdict::new(Decision::Allow, by)
            },
            Answer::Deny => deny(by, rule),
            Answer::Unavailable(reason) => {
                tracing::warn!(tool = %question.tool, %reason, "nobody could be asked; the call is denied");
                deny(DecidedBy::Nobody, rule)
            }
        }
    }

    fn question(&self, passed: &Passed, subject: &Subject<'_>, rule: Option<String>) -> Question {
        let options = &self.options;
        let runs_commands = passed
            .capabilities
            .contains(floe_runtime::Capability::Commands);
        Question {
            session_id: options.session_id.clone(),
            tool_call_id: subject.call.tool_call_id.clone(),
            tool: passed.offer.definition.name.clone(),
            action: Action::of(&passed.arguments, runs_commands),
            permission: passed.permission,
            capabilities: subject.capabilities.clone(),
            reach: options.reach.clone(),
            mode: passed.mode,
            kind: DecisionKind::Call,
            origin: passed.offer.tool().origin.clone(),
            asked_by: options.asked_by.clone(),
            rule,
            widening: None,
        }
    }

    /// After a wait the world may be another: what an answer allowed passes the gates again, with what holds now.
    fn again(
        &self,
        passed: &mut Passed,
        subject: &Subject<'_>,
        waited_ms: u64,
    ) -> Result<(), Decided> {
        let refused = match self.holds_still(passed) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        Err(match refused {
            Some(refusal) => {
                self.record_gate(subject, &refusal, waited_ms);
                Decided::Refuse(refusal)
            }
            None => {
                let verdict = Verdict::new(Decision::Deny, DecidedBy::Mode);
                self.record(subject, verdict, None, waited_ms);
                Decided::Deny
            }
        })
    }

    /// Passes the gates again. The error holds what refuses; nothing where the approval mode denies everything by now.
    fn holds_still(&self, passed: &mut Passed) -> Result<(), Option<Refusal>> {
        let settings = self.settings();
        self.allowed_here(&passed.offer, passed.permission, settings)
            .map_err(Some)?;
        if settings.approval_mode == ApprovalMode::DenyAll {
            return Err(None);
        }
        // A switch to build mode during the wait gives nothing that the question did not show.
        passed.capabilities = passed.capabilities.intersection(power::effective(
            passed.offer.tool().power(),
            settings.mode,
            settings.max_permission,
        ));
        passed.mode = settings.mode;
        Ok(())
    }

    /// Records that a gate ended a call.
    pub(crate) fn record_gate(&self, subject: &Subject<'_>, refusal: &Refusal, waited_ms: u64) {
        let verdict = Verdict {
            rule: refusal.rule.clone(),
            ..Verdict::new(Decision::Deny, DecidedBy::Gate)
        };
        self.record(subject, verdict, Some(refusal.gate.as_str()), waited_ms);
    }

    /// Records what was decided about the plan of a call.
    pub(crate) fn record_plan(
        &self,
        call: &ToolCall,
        decision: Decision,
        by: DecidedBy,
        waited_ms: u64,
    ) {
        let arguments_sha256 = digest::sha256(call.arguments.as_bytes());
        let subject = Subject::without_power(self, call, arguments_sha256);
        let verdict = Verdict {
            kind: DecisionKind::Plan,
            ..Verdict::new(decision, by)
        };
        self.record(&subject, verdict, None, waited_ms);
    }

    fn record(&self, subject: &Subject<'_>, verdict: Verdict, gate: Option<&str>, waited_ms: u64) {
        let decision = ApprovalDecision {
            decision: verdict.decision,
            tool_call_id: subject.call.tool_call_id.clone(),
            tool: subject.call.name.clone(),
            kind: verdict.kind,
            mode: self.settings().approval_mode,
            by: verdict.by,
            gate: gate.map(str::to_owned),
            rule: verdict.rule,
            scope: verdict.scope,
            arguments_sha256: subject.arguments_sha256.clone(),
            tool_sha256: subject.tool_sha256.clone(),
            capabilities: subject.capabilities.clone(),
            waited_ms,
            widening: verdict.widening,
        };
        self.options
            .sink
            .emit(OmniMessage::event(EventMsg::ApprovalDecision(decision)));
    }
}

fn waited_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn session_key(passed: &Passed, subject: &Subject<'_>) -> (String, String) {
    (
        passed.offer.definition.name.clone(),
        subject.arguments_sha256.clone(),
    )
}
