//! What a child gets from its parent: everything, except what a request changes, which is never more than the parent has.

use std::sync::Arc;

use floe_environment::{Environment, Selection};
use floe_model::ModelDriver;
use floe_protocol::{AgentId, Source, ToolDefinition};
use floe_runtime::capability::Failure;
use floe_runtime::capability::subagents::SubagentRequest;

use super::source::AgentDefinition;
use crate::SessionOptions;

/// The options of a child without those that tie it to its parent's stream. Blocks on files.
///
/// # Errors
///
/// There is no such agent or model.
pub(crate) fn options(
    parent: &SessionOptions,
    environment: &Environment,
    request: &SubagentRequest,
) -> Result<SessionOptions, Failure> {
    let agent = request.agent_id.as_deref().filter(|id| !id.is_empty());
    let agent = agent.map(|id| find(parent, id)).transpose()?;
    let mut options = SessionOptions {
        model: Some(model(parent, request.model.as_deref())?),
        source: Some(Source::Subagent),
        ..parent.clone()
    };
    if let Some((id, agent)) = agent {
        options.agent = id;
        options.limit_turns(agent.max_turns);
        options.max_tokens = agent.max_tokens.or(options.max_tokens);
        options.system_prompt = Some(agent.system_prompt);
        if let Some(tools) = agent.tools {
            options.selection = Selection::Entries(shared(tools, environment));
        }
    }
    Ok(options)
}

/// An agent by its id. Every failure lists those there are.
fn find(parent: &SessionOptions, id: &str) -> Result<(AgentId, AgentDefinition), Failure> {
    let source = parent.agents.as_deref();
    let unknown = || {
        let known: Vec<String> = source
            .map(|source| source.ids().into_iter().map(String::from).collect())
            .unwrap_or_default();
        let known = match known.as_slice() {
            [] => "none".to_owned(),
            known => known.join(", "),
        };
        Failure::new(
            "not-found",
            format!("unknown agent_id '{id}'. Available: {known}."),
        )
        .with_hint("Leave agent_id out for an agent like this one.")
    };
    let name: AgentId = id.parse().map_err(|_| unknown())?;
    let agent = source.ok_or_else(unknown)?.agent(&name);
    let agent = agent.map_err(|reason| {
        Failure::new(
            "invalid-args",
            format!("the agent '{id}' cannot be used: {reason}"),
        )
    })?;
    Ok((name, agent.ok_or_else(unknown)?))
}

/// The parent's model, or another one where it is named or the parent has none.
fn model(parent: &SessionOptions, named: Option<&str>) -> Result<Arc<dyn ModelDriver>, Failure> {
    let named = named.filter(|named| !named.is_empty());
    if let (None, Some(model)) = (named, &parent.model) {
        return Ok(model.for_child().unwrap_or_else(|| Arc::clone(model)));
    }
    let refused = |reason: String| {
        let what = named.map_or_else(
            || "This Session has no model for a subagent".to_owned(),
            |named| format!("the model '{named}' cannot be used"),
        );
        Failure::new("invalid-args", format!("{what}: {reason}"))
    };
    let source = parent.models.as_ref();
    let source = source.ok_or_else(|| refused("this host opens none by name.".to_owned()))?;
    source.model(named).map_err(refused)
}

/// Of an agent's tools those that the parent has as well, each with no less of a permission.
fn shared(tools: Vec<ToolDefinition>, parent: &Environment) -> Vec<ToolDefinition> {
    tools
        .into_iter()
        .filter_map(|mut tool| {
            let own = parent.definition_of(&tool.name)?;
            tool.permission = tool.permission.max(own.permission);
            tool.permission_varies |= own.permission_varies;
            Some(tool)
        })
        .collect()
}
