//! What a tool is, and what the host knows about a call of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Permission;

/// Milliseconds where a definition says nothing (spec/environment.md 1.3).
pub const DEFAULT_TIMEOUT_MS: i64 = 120_000;
/// Unicode scalar values where a definition says nothing (spec/environment.md 1.3).
pub const DEFAULT_MAX_OUTPUT_LENGTH: i64 = 16_000;

/// Which models a tool is offered to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelClass {
    /// All.
    #[default]
    Any,
    /// Those that see images.
    Vision,
    /// Those that do not.
    TextOnly,
}

/// How an output that is too long is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Truncation {
    /// The beginning is kept.
    #[default]
    Head,
    /// Half of the budget at the beginning, half at the end.
    HeadTail,
}

/// A tool as it is registered. The same shape is an entry of an agent's `tools.builtin`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolDefinition {
    /// What the model calls it.
    pub name: String,
    /// Other names that a model may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// For the model.
    pub description: String,
    /// A JSON Schema (2020-12) of an object.
    pub parameters: Value,
    /// What the tool may do; where nothing is said, the strongest.
    #[serde(default)]
    pub permission: Permission,
    /// True where the tool raises its permission for some arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permission_varies: bool,
    /// Which models it is offered to.
    #[serde(default)]
    pub for_model: ModelClass,
    /// Milliseconds; 0 or less for no limit.
    #[serde(default = "default_timeout")]
    pub timeout_ms: i64,
    /// Unicode scalar values; 0 or less for no limit.
    #[serde(default = "default_max_output")]
    pub max_output_length: i64,
    /// How a long output is cut.
    #[serde(default)]
    pub truncation: Truncation,
    /// A JSON Schema of the structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What later versions add.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metadata: Vec<(String, String)>,
}

fn default_timeout() -> i64 {
    DEFAULT_TIMEOUT_MS
}

fn default_max_output() -> i64 {
    DEFAULT_MAX_OUTPUT_LENGTH
}

/// A complete call as a surface hands it to the Environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool as the model named it.
    pub name: String,
    /// The raw argument text.
    pub arguments: String,
    /// Unique within the Session.
    pub tool_call_id: String,
}

/// What the host knows about a call apart from its text, which a program's output can forge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The code of a failure, such as `not-found`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The exit code of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// True where the model did not see all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// Where the whole output is kept, as the tools see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output: Option<String>,
    /// How the command was confined: `native`, `UNCONFINED`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<String>,
    /// What the tool returned for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
}

impl Facts {
    /// True where there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Facts::default()
    }
}
