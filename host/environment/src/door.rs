//! The way of one call through the door: gates, decision, run, close-out. Each step is its own function, in the order in which
//! a call meets them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use floe_protocol::{Mode, Permission, ToolCall};
use floe_runtime::CapabilitySet;
use floe_sandbox::Widening;
use futures_util::FutureExt;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::catalogue::{Found, Offer};
use crate::decision::{Subject, Wanted};
use crate::environment::Inner;
use crate::gate::{Gate, Refusal, json, mode, rule, size, surface, trace};
use crate::line::Place;
use crate::options::Asker;
use crate::output::{Frames, ToolCallOutput};
use crate::settings::Settings;
use crate::{digest, power};

/// A call that has passed the gates.
pub(crate) struct Passed {
    pub(crate) offer: Arc<Offer>,
    /// The arguments as they were judged: what is shown, what is decided about, and what runs.
    pub(crate) arguments: Value,
    pub(crate) text: String,
    pub(crate) permission: Permission,
    /// What it may reach.
    pub(crate) capabilities: CapabilitySet,
    pub(crate) mode: Mode,
    /// What it asks to reach beyond that.
    pub(crate) wanted: Option<Wanted>,
    /// What of it a person has granted.
    pub(crate) widening: Widening,
}

impl Inner {
    /// Takes a call through the door. None where it was cancelled before it was decided.
    pub(crate) async fn pass(
        self: Arc<Inner>,
        call: ToolCall,
        place: Place,
        cancel: CancellationToken,
    ) -> Option<ToolCallOutput> {
        let decided = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            decided = self.decide_in_turn(&call, &place) => Some(decided),
        };
        // The next call may decide while this one runs.
        drop(place);
        let frames = Frames::new(
            Arc::clone(&self.options.sink),
            &call.tool_call_id,
            self.options.secrets.clone(),
        );
        match decided? {
            Decided::Run(passed) => Some(self.run(call, *passed, frames, cancel).await),
            Decided::Refuse(refusal) => Some(frames.refused(refusal)),
            Decided::Deny => Some(frames.denied()),
        }
    }

    async fn decide_in_turn(&self, call: &ToolCall, place: &Place) -> Decided {
        place.turn().await;
        let arguments_sha256 = digest::sha256(call.arguments.as_bytes());
        // A fault in judging ends this call alone, as one in running it does.
        let judged = AssertUnwindSafe(self.gates(call))
            .catch_unwind()
            .await
            .unwrap_or_else(|_| Err(broke_off(&call.name)));
        match judged {
            Ok(passed) => self.decide(call, passed, arguments_sha256).await,
            Err(refusal) => {
                let subject = Subject::without_power(self, call, arguments_sha256);
                self.record_gate(&subject, &refusal, 0);
                Decided::Refuse(refusal)
            }
        }
    }

    /// Every gate before approval, in order.
    async fn gates(&self, call: &ToolCall) -> Result<Passed, Refusal> {
        size::check(&call.name, &call.arguments)?;
        let found = self
            .catalogue
            .find(&call.name)
            .ok_or_else(|| Refusal::unknown_tool(Gate::Name, &call.name))?;
        let (definition, schema) = match &found {
            Found::Offered(offer) => (&offer.definition, offer.schema()),
            Found::Hidden(entry) => (
                &entry.tool.definition,
                entry.schema.get(&entry.tool.definition),
            ),
        };
        let tool = definition.name.as_str();
        let arguments = json::parse(tool, &call.arguments)?;
        let arguments = schema
            .map_err(|fault| Refusal::failed(Gate::Schema, "invalid-schema", fault.to_string()))?
            .check(tool, arguments)?;
        let Found::Offered(offer) = found else {
            return Err(Refusal::unknown_tool(Gate::Visibility, &call.name));
        };
        // What was judged is what runs: a text with the same name twice could be read in two ways.
        let text = arguments.to_string();
        let permission = self.permission(offer, &text).await?;
        let settings = self.settings();
        self.allowed_here(offer, permission, settings)?;
        self.rate.check(Instant::now())?;
        let capabilities =
            power::effective(offer.tool().power(), settings.mode, settings.max_permission);
        let asker = Asker {
            capabilities,
            reads_only: power::reads_only(settings.mode, permission),
        };
        let wanted = self.wanted(offer, &arguments, asker).await?;
        Ok(Passed {
            offer: Arc::clone(offer),
            arguments,
            text,
            permission,
            capabilities,
            mode: settings.mode,
            wanted,
            widening: Widening::default(),
        })
    }

    /// Gate 6: what these arguments need. A tool may only raise what its definition declares.
    async fn permission(&self, offer: &Offer, arguments: &str) -> Result<Permission, Refusal> {
        let declared = self.declared(offer);
        if !offer.definition.permission_varies {
            return Ok(declared);
        }
        match offer.tool().body.permission_for(arguments).await {
            Ok(asked) => Ok(declared.max(asked)),
            Err(fault) => Err(Refusal::failed(
                Gate::Permission,
                "no-permission-answer",
                format!("[tool error] {fault}"),
            )),
        }
    }

    /// The gates that are passed again after a wait: mode, surface, rule, Trace.
    pub(crate) fn allowed_here(
        &self,
        offer: &Offer,
        permission: Permission,
        settings: Settings,
    ) -> Result<(), Refusal> {
        let tool = offer.definition.name.as_str();
        let options = &self.options;
        mode::check(tool, settings.mode, permission, offer.tool().power())?;
        surface::check(tool, options.surface, settings.max_permission, permission)?;
        rule::check(&options.rules, tool, permission)?;
        trace::check(options.sink.recording(), permission)
    }
}

fn broke_off(tool: &str) -> Refusal {
    tracing::error!(tool, "the host broke off while it judged a call");
    Refusal::failed(
        Gate::Schema,
        "host-fault",
        "[tool error] the host broke off while it judged this call; its log says where".into(),
    )
}

/// What was decided about a call.
pub(crate) enum Decided {
    /// It runs.
    Run(Box<Passed>),
    /// A gate ended it.
    Refuse(Refusal),
    /// A mode or a person denied it.
    Deny,
}
