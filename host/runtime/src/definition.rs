//! What a tool says about itself, from the wire form to the protocol's. A guest wrote it, so nothing in it is trusted.

use floe_protocol::{
    DEFAULT_MAX_OUTPUT_LENGTH, DEFAULT_TIMEOUT_MS, ModelClass, Permission, ToolDefinition,
    Truncation,
};
use serde_json::Value;

use crate::bindings::floe::tool::types as wit;
use crate::call::CallFault;

/// The longest name of a tool; the wire formats of models take no longer one.
const MAX_NAME: usize = 64;
/// Bytes of a description or a schema.
const MAX_TEXT: usize = 256 << 10;

/// Reads a definition, or says which field of it cannot be used.
pub(crate) fn read(
    tool: &str,
    definition: wit::ToolDefinition,
) -> Result<ToolDefinition, CallFault> {
    let bad = |field: &'static str, reason: String| CallFault::BadDefinition {
        tool: tool.to_owned(),
        field,
        reason,
    };
    check_name(&definition.name).map_err(|reason| bad("name", reason))?;
    for alias in &definition.aliases {
        check_name(alias).map_err(|reason| bad("aliases", reason))?;
    }
    if definition.description.len() > MAX_TEXT {
        return Err(bad(
            "description",
            format!("has more than {MAX_TEXT} bytes"),
        ));
    }
    let parameters = schema(&definition.parameters).map_err(|reason| bad("parameters", reason))?;
    let is_object = parameters
        .get("type")
        .is_none_or(|kind| kind.as_str() == Some("object"));
    if !is_object {
        return Err(bad(
            "parameters",
            "is the schema of something other than an object".to_owned(),
        ));
    }
    let output_schema = definition
        .output_schema
        .as_deref()
        .map(schema)
        .transpose()
        .map_err(|reason| bad("output-schema", reason))?;
    let truncation = match definition.truncation.as_deref() {
        None | Some("head") => Truncation::Head,
        Some("head-tail") => Truncation::HeadTail,
        Some(other) => {
            let other: String = other.chars().take(MAX_NAME).collect();
            return Err(bad(
                "truncation",
                format!("is {other:?}; it must be \"head\" or \"head-tail\""),
            ));
        }
    };
    Ok(ToolDefinition {
        name: definition.name,
        aliases: definition.aliases,
        description: definition.description,
        parameters,
        permission: permission(definition.permission),
        permission_varies: definition.permission_varies,
        for_model: match definition.for_model {
            wit::ModelClass::Any => ModelClass::Any,
            wit::ModelClass::Vision => ModelClass::Vision,
            wit::ModelClass::TextOnly => ModelClass::TextOnly,
        },
        timeout_ms: definition.timeout_ms.map_or(DEFAULT_TIMEOUT_MS, i64::from),
        max_output_length: definition
            .max_output_length
            .map_or(DEFAULT_MAX_OUTPUT_LENGTH, i64::from),
        truncation,
        output_schema,
        metadata: definition.metadata,
    })
}

/// A level in the protocol's terms.
pub(crate) fn permission(level: wit::Permission) -> Permission {
    match level {
        wit::Permission::None => Permission::None,
        wit::Permission::ReadOnly => Permission::ReadOnly,
        wit::Permission::Write => Permission::Write,
        wit::Permission::Execute => Permission::Execute,
        wit::Permission::Dangerous => Permission::Dangerous,
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let allowed = |one: char| one.is_ascii_alphanumeric() || one == '_' || one == '-';
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(allowed) {
        let shown: String = name.chars().take(MAX_NAME).collect();
        return Err(format!(
            "is {shown:?}; it must have 1 to {MAX_NAME} ASCII letters, digits, `_` or `-`"
        ));
    }
    Ok(())
}

fn schema(text: &str) -> Result<Value, String> {
    if text.len() > MAX_TEXT {
        return Err(format!("has more than {MAX_TEXT} bytes"));
    }
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("is not a JSON object".to_owned()),
        Err(error) => Err(format!("is not JSON ({error})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> wit::ToolDefinition {
        wit::ToolDefinition {
            name: "echo".to_owned(),
            aliases: Vec::new(),
            description: "Says it again.".to_owned(),
            parameters: r#"{"type":"object"}"#.to_owned(),
            permission: wit::Permission::None,
            permission_varies: false,
            for_model: wit::ModelClass::Any,
            timeout_ms: None,
            max_output_length: Some(0),
            truncation: None,
            output_schema: None,
            metadata: Vec::new(),
        }
    }

    fn field_at_fault(definition: wit::ToolDefinition) -> &'static str {
        match read("echo", definition) {
            Err(CallFault::BadDefinition { field, .. }) => field,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_tool_leaves_out_gets_the_defaults_and_zero_stays_zero() {
        let read = read("echo", definition()).unwrap();
        assert_eq!(read.timeout_ms, DEFAULT_TIMEOUT_MS);
        assert_eq!(read.max_output_length, 0);
        assert_eq!(read.truncation, Truncation::Head);
        assert_eq!(read.permission, Permission::None);
    }

    #[test]
    fn the_field_that_cannot_be_used_is_named() {
        let with = |change: fn(&mut wit::ToolDefinition)| {
            let mut changed = definition();
            change(&mut changed);
            field_at_fault(changed)
        };
        assert_eq!(with(|d| d.name = "rm -rf".to_owned()), "name");
        assert_eq!(with(|d| d.aliases = vec![String::new()]), "aliases");
        assert_eq!(with(|d| d.parameters = "{".to_owned()), "parameters");
        assert_eq!(with(|d| d.parameters = "[]".to_owned()), "parameters");
        assert_eq!(
            with(|d| d.parameters = r#"{"type":"string"}"#.to_owned()),
            "parameters"
        );
        assert_eq!(
            with(|d| d.truncation = Some("tail".to_owned())),
            "truncation"
        );
        assert_eq!(
            with(|d| d.output_schema = Some("no".to_owned())),
            "output-schema"
        );
        assert_eq!(with(|d| d.parameters = "[".repeat(200_000)), "parameters");
    }
}
