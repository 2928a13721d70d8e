//! An agent's `system_config.yaml`: what it says to the model, how many turns it has, and its own list of tools.
//!
//! The file has keys that other releases of the format use and that mean nothing here yet; they are named in one warning
//! rather than refused, so that an existing agent can be brought along.

use floe_protocol::ToolDefinition;
use serde::Deserialize;
use serde_yaml::Value;

use super::document::{Document, suggestion};
use super::{ConfigFault, ConfigFaults};

/// The help for an agent's file.
pub(crate) const AGENT_HELP: &str = "The page Configuration of the book describes an agent's file.";
/// Keys with an effect.
const KEYS: [&str; 7] = [
    "name",
    "description",
    "version",
    "system_prompt",
    "max_turns",
    "model",
    "tools",
];
/// Keys of the format that have no effect in this version.
const WITHOUT_EFFECT: [&str; 6] = [
    "kernel_version",
    "compaction",
    "memory",
    "vault",
    "skills",
    "schedules",
];
/// Keys of `model`.
const MODEL_KEYS: [&str; 3] = ["model_id", "max_tokens", "timeoutMs"];
/// Keys of `tools`.
const TOOLS_KEYS: [&str; 2] = ["builtin", "mcpServers"];

/// An agent as its file describes it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct AgentConfig {
    /// What the model is told first.
    #[serde(default)]
    pub(crate) system_prompt: String,
    /// Model requests per run; -1 is without limit.
    #[serde(default)]
    pub(crate) max_turns: Option<i64>,
    /// The model and how it is asked.
    #[serde(default)]
    pub(crate) model: AgentModel,
    #[serde(default)]
    tools: AgentTools,
    /// Keys that stand in the file and have no effect.
    #[serde(skip)]
    pub(crate) without_effect: Vec<String>,
}

/// The model of an agent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct AgentModel {
    /// `script:FILE` or `openai:NAME`.
    #[serde(default)]
    pub(crate) model_id: Option<String>,
    /// The most tokens that one answer may have.
    #[serde(default)]
    pub(crate) max_tokens: Option<u64>,
    /// Milliseconds that a request may take.
    #[serde(default, rename = "timeoutMs")]
    pub(crate) timeout_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
struct AgentTools {
    #[serde(default)]
    builtin: Option<Vec<ToolDefinition>>,
}

impl AgentConfig {
    /// Reads the file, or names every fault in it.
    pub(crate) fn parse(document: &Document<'_>) -> Result<AgentConfig, ConfigFaults> {
        let value: Value = document.read()?;
        document.refuse_without_keys(&value)?;
        let mut faults = Vec::new();
        let mut without_effect = Vec::new();
        for key in keys(&value) {
            if WITHOUT_EFFECT.contains(&key) {
                without_effect.push(key.to_owned());
            } else if !KEYS.contains(&key) {
                faults.push(unknown(document, &[key], &KEYS));
            }
        }
        let children = [("model", &MODEL_KEYS[..]), ("tools", &TOOLS_KEYS[..])];
        for (parent, known) in children {
            for key in value.get(parent).map(keys).unwrap_or_default() {
                if !known.contains(&key) {
                    faults.push(unknown(document, &[parent, key], known));
                } else if key == "mcpServers" {
                    without_effect.push("tools.mcpServers".into());
                }
            }
        }
        if !faults.is_empty() {
            return Err(ConfigFaults(faults));
        }
        let mut agent: AgentConfig = document.read()?;
        if agent.system_prompt.trim().is_empty() {
            return Err(document
                .fault(
                    &["system_prompt"],
                    "is missing or empty.",
                    "Say there what the model is to do.",
                )
                .into());
        }
        agent.without_effect = without_effect;
        Ok(agent)
    }

    /// The tools that the agent has instead of a toolset, where its file lists any.
    pub(crate) fn builtin(&self) -> Option<&[ToolDefinition]> {
        self.tools.builtin.as_deref()
    }
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_mapping()
        .map(|mapping| mapping.keys().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

fn unknown(document: &Document<'_>, path: &[&str], known: &[&str]) -> ConfigFault {
    let name = path.last().copied().unwrap_or_default();
    document.fault(path, "is no key of an agent.", suggestion(name, known))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::{Expect, expect};

    use super::*;

    fn parse(text: &str) -> Result<AgentConfig, ConfigFaults> {
        AgentConfig::parse(&Document {
            file: Path::new("system_config.yaml"),
            text,
            help: AGENT_HELP,
        })
    }

    fn faults(text: &str, expected: Expect) {
        expected.assert_eq(&parse(text).unwrap_err().to_string());
    }

    #[test]
    fn an_agent_brings_its_prompt_model_turns_and_tools() {
        let agent = parse(
            "system_prompt: Be brief.\nmax_turns: 7\nmodel: {model_id: 'openai:x', max_tokens: 9}\ntools:\n  builtin:\n  \
             - {name: list, description: d, parameters: {type: object}, permission: r}\nmemory: {enabled: true}\n",
        )
        .unwrap();
        assert_eq!(agent.system_prompt, "Be brief.");
        assert_eq!(agent.max_turns, Some(7));
        assert_eq!(agent.model.model_id.as_deref(), Some("openai:x"));
        assert_eq!(agent.builtin().unwrap()[0].name, "list");
        assert_eq!(agent.without_effect, ["memory"]);
    }

    #[test]
    fn an_agent_without_a_prompt_is_refused() {
        faults(
            "max_turns: 3\n",
            expect![[r#"
            system_config.yaml: `system_prompt` is missing or empty.
              Say there what the model is to do."#]],
        );
    }

    #[test]
    fn a_tool_that_is_not_complete_names_line_and_field() {
        faults(
            "system_prompt: x\ntools:\n  builtin:\n    - name: list\n      description: d\n",
            expect![[r#"
                system_config.yaml:4: `tools.builtin[0]` is not understood: missing field `parameters`
                  The page Configuration of the book describes an agent's file."#]],
        );
    }

    #[test]
    fn an_unknown_key_names_the_near_one() {
        faults(
            "system_promt: x\n",
            expect![[r#"
            system_config.yaml:1: `system_promt` is no key of an agent.
              Did you mean `system_prompt`?"#]],
        );
    }
}
