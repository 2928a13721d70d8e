//! The one decision per complete tool call, as it is recorded.

use serde::{Deserialize, Serialize};

/// Who is asked before a tool runs. There is no fifth mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalMode {
    /// Every call that passes the gates runs. The default of the command line.
    #[default]
    AllowAll,
    /// No call runs.
    DenyAll,
    /// Tools that need at most read-only run, the rest are asked.
    ReadOnly,
    /// Every call is asked.
    AlwaysAsk,
}

impl ApprovalMode {
    /// All modes.
    pub const ALL: [ApprovalMode; 4] = [
        ApprovalMode::AllowAll,
        ApprovalMode::DenyAll,
        ApprovalMode::ReadOnly,
        ApprovalMode::AlwaysAsk,
    ];

    /// The name on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            ApprovalMode::AllowAll => "allow-all",
            ApprovalMode::DenyAll => "deny-all",
            ApprovalMode::ReadOnly => "read-only",
            ApprovalMode::AlwaysAsk => "always-ask",
        }
    }
}

/// Allowed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The call runs.
    Allow,
    /// The call does not run.
    Deny,
}

impl Decision {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Deny => "deny",
        }
    }
}

/// What was decided about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// Running one call.
    Call,
    /// Leaving the Workspace or the network scope.
    Widening,
    /// A plan.
    Plan,
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// The approval mode alone.
    Mode,
    /// A rule of the configuration.
    Rule,
    /// A person at a terminal or a page.
    Person,
    /// The program that embeds the host.
    Callback,
    /// A gate before approval.
    Gate,
    /// The time for an answer ran out.
    Timeout,
    /// There was nobody to ask.
    Nobody,
}

impl DecidedBy {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            DecidedBy::Mode => "mode",
            DecidedBy::Rule => "rule",
            DecidedBy::Person => "person",
            DecidedBy::Callback => "callback",
            DecidedBy::Gate => "gate",
            DecidedBy::Timeout => "timeout",
            DecidedBy::Nobody => "nobody",
        }
    }
}

/// How far an answer reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This call.
    #[default]
    Once,
    /// This Session.
    Session,
    /// This project.
    Project,
}

/// The event `approval_decision`: exactly one for every complete tool call, also for one that a gate ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalDecision {
    /// Allowed or not.
    pub decision: Decision,
    /// The call.
    pub tool_call_id: String,
    /// The tool as the model named it.
    pub tool: String,
    /// What was decided about.
    pub kind: DecisionKind,
    /// The approval mode at that moment.
    pub mode: ApprovalMode,
    /// Who decided.
    pub by: DecidedBy,
    /// The gate that ended the call, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// The rule that decided, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How far the answer reaches.
    pub scope: Scope,
    /// SHA-256 (hex) of the raw argument bytes.
    pub arguments_sha256: String,
    /// SHA-256 (hex) of the component; absent where no tool was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_sha256: Option<String>,
    /// The effective capabilities by name, sorted.
    pub capabilities: Vec<String>,
    /// Milliseconds that the decision waited for an answer.
    pub waited_ms: u64,
    /// What a widening is about; absent for every other kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widening: Option<Reached>,
}

/// What a call may reach beyond its Session's policy, as the person was asked about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reached {
    /// Canonical paths that its commands may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Canonical paths that they may read and change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// Hosts that they may reach, each with its port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_in_texts_are_those_on_the_wire() {
        let wire = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        for decision in [Decision::Allow, Decision::Deny] {
            assert_eq!(wire(serde_json::json!(decision)), decision.as_str());
        }
        for by in [
            DecidedBy::Mode,
            DecidedBy::Rule,
            DecidedBy::Person,
            DecidedBy::Callback,
            DecidedBy::Gate,
            DecidedBy::Timeout,
            DecidedBy::Nobody,
        ] {
            assert_eq!(wire(serde_json::json!(by)), by.as_str());
        }
        for mode in ApprovalMode::ALL {
            assert_eq!(wire(serde_json::json!(mode)), mode.as_str());
        }
    }
}
