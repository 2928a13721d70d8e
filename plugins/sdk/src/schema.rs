//! Derives the JSON Schema of a tool's arguments from their type, in the plain form that models read best: no references,
//! no nulls (an absent property is how an optional argument is left out), no titles or formats, no unknown properties.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// What schemars writes for validators of Rust types and not for a model.
const NOISE: [&str; 4] = ["$schema", "title", "format", "default"];

/// The schema of `T` as a JSON value.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    tidy(&mut schema);
    schema
}

fn tidy(schema: &mut Value) {
    let Value::Object(object) = schema else {
        return;
    };
    for key in NOISE {
        object.remove(key);
    }
    if let Some(Value::String(description)) = object.get_mut("description") {
        *description = unwrapped(description);
    }
    drop_null(object);
    if object.get("type").is_some_and(|kind| kind == "object") && object.contains_key("properties")
    {
        object
            .entry("additionalProperties")
            .or_insert(Value::Bool(false));
    }
    for (key, value) in object {
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => named.values_mut().for_each(tidy),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(list)) => {
                list.iter_mut().for_each(tidy)
            }
            ("items" | "additionalProperties" | "not", value) => tidy(value),
            _ => {}
        }
    }
}

/// A comment without the line breaks of the source; empty lines and lists keep theirs.
fn unwrapped(comment: &str) -> String {
    let mut text = String::with_capacity(comment.len());
    for line in comment.lines() {
        let starts_anew = line.is_empty() || line.starts_with(['-', '*', ' ']);
        if !text.is_empty() {
            text.push(if starts_anew || text.ends_with('\n') {
                '\n'
            } else {
                ' '
            });
        }
        text.push_str(line);
    }
    text
}

/// `Option<T>` is `T` or null for schemars; here it is `T`.
fn drop_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = object.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(choices)) = object.get_mut("anyOf") else {
        return;
    };
    choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
    if let [Value::Object(only)] = choices.as_mut_slice() {
        let only = std::mem::take(only);
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Place {
        line: u32,
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    enum Side {
        Left,
        Right,
    }

    /// Arguments of a tool.
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Arguments {
        /// What to look for.
        #[schemars(length(min = 1))]
        pattern: String,
        /// How many.
        #[schemars(range(min = 1, max = 10))]
        count: Option<u32>,
        #[serde(default)]
        exact: bool,
        place: Option<Place>,
        side: Option<Side>,
        tags: Option<Vec<String>>,
    }

    #[test]
    fn a_schema_names_what_the_struct_holds_and_nothing_else() {
        assert_eq!(
            schema_of::<Arguments>(),
            json!({
                "description": "Arguments of a tool.",
                "type": "object",
                "properties": {
                    "pattern": {"description": "What to look for.", "type": "string", "minLength": 1},
                    "count": {"description": "How many.", "type": "integer", "minimum": 1, "maximum": 10},
                    "exact": {"type": "boolean"},
                    "place": {"type": "object", "properties": {"line": {"type": "integer", "minimum": 0}}, "required": ["line"], "additionalProperties": false},
                    "side": {"type": "string", "enum": ["Left", "Right"]},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["pattern"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn properties_keep_the_order_of_the_struct() {
        let schema = schema_of::<Arguments>();
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(
            names,
            ["pattern", "count", "exact", "place", "side", "tags"]
        );
    }

    #[test]
    fn a_comment_over_several_lines_becomes_one_sentence() {
        assert_eq!(unwrapped("one\ntwo\nthree"), "one two three");
        assert_eq!(unwrapped("one\n\ntwo\n- a\n- b"), "one\n\ntwo\n- a\n- b");
    }

    #[test]
    fn a_property_called_title_or_format_stays() {
        #[derive(JsonSchema)]
        #[allow(dead_code)]
        struct Named {
            title: String,
            format: String,
        }
        let schema = schema_of::<Named>();
        assert_eq!(schema["properties"].as_object().unwrap().len(), 2);
    }
}
