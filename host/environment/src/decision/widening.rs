//! The decision about what a call asks to reach beyond the sandbox. It is a person's alone: no mode, no rule and no program
//! allows it, and what no person can be asked about is denied.

use std::sync::PoisonError;
use std::time::Instant;

use floe_protocol::{DecidedBy, Decision, DecisionKind, Reached, Scope};
use floe_runtime::Capability;
use floe_sandbox::{GrantedPath, Widening};
use serde_json::Value;

use super::{Subject, Verdict, waited_ms};
use crate::approval::{AskedWidening, Question};
use crate::catalogue::Offer;
use crate::door::{Decided, Passed};
use crate::environment::Inner;
use crate::gate::{Gate, Refusal, widening};
use crate::options::Asker;

/// What a call asks to reach, as far as its Session's policy does not give it anyway.
pub(crate) struct Wanted {
    reason: String,
    all: Widening,
    /// What of it nobody has granted for the Session.
    beyond: Widening,
    only_reads: bool,
}

/// What a person granted for the whole Session.
#[derive(Default)]
pub(crate) struct Granted {
    to_all: Widening,
    /// To calls that only read what they reach, which is all that the person saw.
    to_readers: Widening,
}

impl Granted {
    fn lacks(&self, all: &Widening, only_reads: bool) -> Widening {
        let beyond = all.beyond(&self.to_all);
        match only_reads {
            true => beyond.beyond(&self.to_readers),
            false => beyond,
        }
    }

    fn add(&mut self, widening: Widening, only_reads: bool) {
        match only_reads {
            true => self.to_readers.add(widening),
            false => self.to_all.add(widening),
        }
    }
}

/// A decision that is made and not recorded yet.
pub(super) struct Unrecorded {
    verdict: Verdict,
    gate: Option<Gate>,
    waited_ms: u64,
}

impl Unrecorded {
    pub(super) fn record(self, environment: &Inner, subject: &Subject<'_>) {
        let Unrecorded {
            verdict,
            gate,
            waited_ms,
        } = self;
        environment.record(subject, verdict, gate.map(Gate::as_str), waited_ms);
    }
}

impl Inner {
    /// The gate: what a call asks for, if it asks for anything that its commands do not have.
    pub(crate) async fn wanted(
        &self,
        offer: &Offer,
        arguments: &Value,
        asker: Asker,
    ) -> Result<Option<Wanted>, Refusal> {
        // Of a tool with neither of these the argument is its own affair.
        let can_reach = [Capability::Commands, Capability::Http];
        if !can_reach
            .iter()
            .any(|one| asker.capabilities.contains(*one))
        {
            return Ok(None);
        }
        let tool = offer.definition.name.as_str();
        let Some(request) = widening::request(tool, arguments)? else {
            return Ok(None);
        };
        let all = self.options.hosts.widening(&request, asker).await;
        let all = all.map_err(|fault| widening::refusal(tool, fault))?;
        let granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing holds a command to reading.
        let only_reads = asker.reads_only && !asker.capabilities.contains(Capability::Commands);
        Ok((!all.is_empty()).then(|| Wanted {
            reason: request.reason,
            beyond: granted.lacks(&all, only_reads),
            all,
            only_reads,
        }))
    }

    /// Decides about it, after the call itself was allowed. The error holds what becomes of the call instead.
    pub(super) async fn widen(
        &self,
        passed: &mut Passed,
        subject: &Subject<'_>,
    ) -> Result<Option<Unrecorded>, (Unrecorded, Decided)> {
        let Some(Wanted {
            reason,
            all,
            beyond,
            only_reads,
        }) = passed.wanted.take()
        else {
            return Ok(None);
        };
        let unrecorded = |verdict: Verdict, about: &Widening, gate, waited_ms| Unrecorded {
            verdict: Verdict {
                kind: DecisionKind::Widening,
                widening: Some(reached(about)),
                ..verdict
            },
            gate,
            waited_ms,
        };
        if beyond.is_empty() {
            let verdict = Verdict {
                scope: Scope::Session,
                ..Verdict::new(Decision::Allow, DecidedBy::Person)
            };
            let unrecorded = unrecorded(verdict, &all, None, 0);
            passed.widening = all;
            return Ok(Some(unrecorded));
        }
        let since = Instant::now();
        let verdict = if self.decides_as() == DecidedBy::Person {
            let question = Question {
                kind: DecisionKind::Widening,
                widening: Some(AskedWidening {
                    reason,
                    widening: beyond.clone(),
                }),
                ..self.question(passed, subject, None)
            };
            self.ask(question).await
        } else {
            Verdict::new(Decision::Deny, DecidedBy::Nobody)
        };
        let waited_ms = waited_ms(since);
        let refused = match (verdict.decision, verdict.by) {
            (Decision::Allow, _) => self.holds_still(passed).err(),
            (Decision::Deny, DecidedBy::Nobody) => {
                let unrecorded = unrecorded(verdict, &beyond, None, waited_ms);
                return Err((unrecorded, Decided::Refuse(nobody())));
            }
            (Decision::Deny, _) => {
                let unrecorded = unrecorded(verdict, &beyond, None, waited_ms);
                return Err((unrecorded, Decided::Deny));
            }
        };
        match refused {
            None => {}
            Some(Some(refusal)) => {
                let verdict = Verdict {
                    rule: refusal.rule.clone(),
                    ..Verdict::new(Decision::Deny, DecidedBy::Gate)
                };
                let unrecorded = unrecorded(verdict, &beyond, Some(refusal.gate), waited_ms);
                return Err((unrecorded, Decided::Refuse(refusal)));
            }
            Some(None) => {
                let verdict = Verdict::new(Decision::Deny, DecidedBy::Mode);
                return Err((unrecorded(verdict, &beyond, None, waited_ms), Decided::Deny));
            }
        }
        if verdict.scope == Scope::Session {
            self.granted
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .add(beyond.clone(), only_reads);
        }
        passed.widening = all;
        Ok(Some(unrecorded(verdict, &beyond, None, waited_ms)))
    }
}

/// What the model reads where no person can be asked.
fn nobody() -> Refusal {
    Refusal::policy(
        Gate::Widening,
        format!(
            "The call asks to reach beyond the sandbox (`{}`), which only a person may allow, and there is nobody to ask here. \
             Call it without, or let the person start Floe with --allow-read, --allow-write or --allow-host for what it needs.",
            widening::ARGUMENT
        ),
    )
}

/// A widening as its decision records it.
fn reached(widening: &Widening) -> Reached {
    let Widening { read, write, hosts } = widening;
    let names = |paths: &[GrantedPath]| -> Vec<String> {
        paths
            .iter()
            .map(|path| path.path().display().to_string())
            .collect()
    };
    Reached {
        read: names(read),
        write: names(write),
        hosts: hosts.clone(),
    }
}
