//! The gates that a call passes before anybody is asked, one small module each, in the order of decisions, "Gates and their
//! words". A gate only ever ends a call: none of them lets a call through that a later one would stop.

pub(crate) mod coerce;
pub(crate) mod json;
pub(crate) mod mode;
pub(crate) mod rate;
pub(crate) mod rule;
pub(crate) mod schema;
pub(crate) mod size;
mod steps;
pub(crate) mod surface;
pub(crate) mod trace;
mod weight;
pub(crate) mod widening;

use floe_protocol::StopReason;

/// The gates by name, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gate {
    /// The raw arguments are too long.
    Size,
    /// Nothing has that name.
    Name,
    /// The arguments are not JSON.
    Json,
    /// The arguments do not fit the tool's schema.
    Schema,
    /// The tool is not in this Session's toolset.
    Visibility,
    /// The tool could not say what these arguments need.
    Permission,
    /// The mode allows less.
    Mode,
    /// The surface allows less.
    Surface,
    /// A rule forbids it.
    Rule,
    /// Too many calls in too short a time.
    Rate,
    /// What it asks to reach beyond the sandbox cannot be had here.
    Widening,
    /// The Trace cannot be written.
    Trace,
}

impl Gate {
    /// The name in the `approval_decision` event.
    pub fn as_str(self) -> &'static str {
        match self {
            Gate::Size => "size",
            Gate::Name => "name",
            Gate::Json => "json",
            Gate::Schema => "schema",
            Gate::Visibility => "visibility",
            Gate::Permission => "permission",
            Gate::Mode => "mode",
            Gate::Surface => "surface",
            Gate::Rule => "rule",
            Gate::Rate => "rate",
            Gate::Widening => "widening",
            Gate::Trace => "trace",
        }
    }
}

/// A call that a gate ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Which gate.
    pub(crate) gate: Gate,
    /// What the model reads.
    pub(crate) text: String,
    /// `failed` for what the model can put right, `aborted` for a policy.
    pub(crate) stop_reason: StopReason,
    /// The code in the facts.
    pub(crate) code: &'static str,
    /// The rule that decided, where one did.
    pub(crate) rule: Option<String>,
}

impl Refusal {
    /// The call itself is at fault.
    pub(crate) fn failed(gate: Gate, code: &'static str, text: String) -> Refusal {
        Refusal {
            gate,
            text,
            stop_reason: StopReason::Failed,
            code,
            rule: None,
        }
    }

    /// The call is sound and not allowed here. `line` says what the tool needs, what allows less, and what the person can do.
    pub(crate) fn policy(gate: Gate, line: String) -> Refusal {
        Refusal {
            gate,
            text: format!("Tool call denied by policy.\n{line}"),
            stop_reason: StopReason::Aborted,
            code: "denied",
            rule: None,
        }
    }

    /// A name that is not there, or not there for this Session.
    pub(crate) fn unknown_tool(gate: Gate, name: &str) -> Refusal {
        Refusal::failed(gate, "unknown-tool", format!("Unknown tool: {name}"))
    }
}
