//! A tool as the protocol lists it. The hints come from what the host enforces, the permission and the capabilities, and from nothing that
//! a tool says about itself.

use std::sync::Arc;

use floe_environment::ToolListing;
use floe_protocol::Permission;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

/// Capabilities that lead beyond this machine, whatever the network of commands is.
const OPEN: [&str; 3] = ["http", "web-search", "subagents"];

/// The tool for a client. `commands_reach_out` says whether commands have a network.
pub(crate) fn tool(listing: ToolListing, commands_reach_out: bool) -> Tool {
    let title = title(&listing.name);
    let has = |name: &str| listing.capabilities.iter().any(|held| held == name);
    let read_only = listing.permission <= Permission::ReadOnly && !listing.permission_varies;
    let open = OPEN.into_iter().any(has) || (commands_reach_out && has("commands"));
    let annotations = ToolAnnotations::with_title(title.clone())
        .read_only(read_only)
        .destructive(!read_only)
        .open_world(open);
    let mut tool = Tool::new(
        listing.name,
        listing.description,
        object(listing.parameters),
    )
    .with_annotations(annotations);
    tool.title = Some(title);
    tool.output_schema = listing.output_schema.map(object);
    tool
}

/// A schema that is no object says nothing; the protocol wants one of an object.
fn object(schema: Value) -> Arc<JsonObject> {
    let mut object = match schema {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    };
    object.entry("type").or_insert_with(|| "object".into());
    Arc::new(object)
}

/// `exec_command` as `Exec command`.
fn title(name: &str) -> String {
    let mut words = name.replace(['_', '-'], " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listing(permission: Permission, capabilities: &[&str]) -> ToolListing {
        ToolListing {
            name: "file_read".into(),
            description: "Reads.".into(),
            parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
            output_schema: None,
            permission,
            permission_varies: false,
            capabilities: capabilities.iter().map(|name| (*name).into()).collect(),
            origin: "built-in".into(),
        }
    }

    fn hints(listing: ToolListing, commands_reach_out: bool) -> [Option<bool>; 3] {
        let hints = tool(listing, commands_reach_out).annotations.unwrap();
        [
            hints.read_only_hint,
            hints.destructive_hint,
            hints.open_world_hint,
        ]
    }

    #[test]
    fn the_hints_are_what_permission_and_capabilities_say() {
        let reader = || listing(Permission::ReadOnly, &["workspace"]);
        assert_eq!(
            hints(reader(), true),
            [Some(true), Some(false), Some(false)]
        );
        let shell = || listing(Permission::Execute, &["commands"]);
        assert_eq!(
            hints(shell(), false),
            [Some(false), Some(true), Some(false)]
        );
        assert_eq!(hints(shell(), true), [Some(false), Some(true), Some(true)]);
        let fetch = listing(Permission::ReadOnly, &["http"]);
        assert_eq!(hints(fetch, false), [Some(true), Some(false), Some(true)]);
    }

    #[test]
    fn a_tool_that_may_do_more_with_some_arguments_is_not_read_only() {
        let mut listing = listing(Permission::ReadOnly, &["http"]);
        listing.permission_varies = true;
        assert_eq!(hints(listing, false), [Some(false), Some(true), Some(true)]);
    }

    #[test]
    fn name_title_and_schemas_are_listed() {
        let mut listing = listing(Permission::None, &[]);
        listing.output_schema = Some(json!({"properties": {}}));
        let tool = serde_json::to_value(tool(listing, false)).unwrap();
        assert_eq!(tool["name"], "file_read");
        assert_eq!(tool["title"], "File read");
        assert_eq!(tool["inputSchema"]["properties"]["path"]["type"], "string");
        assert_eq!(tool["outputSchema"]["type"], "object");
    }
}
