//! How much work a schema makes of one value. A schema may be any plugin's, and a few lines of references that double each other
//! would keep a validator busy for years; such a schema is refused before anything is judged by it.

use serde_json::Value;

/// Schemas that may apply to one value, each counted as often as it is reached.
const MOST_SCHEMAS: usize = 1000;
/// How deep they may lie in each other.
const DEPTH: usize = 64;
/// Regular expressions in one schema: each costs memory for as long as the tool is there.
const MOST_PATTERNS: usize = 64;

/// Keywords that apply a list of schemas to the same value.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords that apply one schema to the same value.
const SINGLES: [&str; 4] = ["not", "if", "then", "else"];
/// References whose target depends on the way there, or on names that other documents may give.
const DYNAMIC: [&str; 2] = ["$dynamicRef", "$recursiveRef"];

/// The most schemas that `root` applies to any one value, or why it cannot be used.
pub(crate) fn weigh(root: &Value) -> Result<usize, String> {
    let mut patterns = 0;
    let mut heaviest = 0;
    // Every object is weighed as if it were a schema; one that is none, such as a default, weighs next to nothing.
    let mut left = vec![root];
    while let Some(value) = left.pop() {
        match value {
            Value::Object(members) => {
                let is_text = |name: &str| members.get(name).is_some_and(Value::is_string);
                if let Some(name) = DYNAMIC.into_iter().find(|name| is_text(name)) {
                    return Err(format!("it uses {name}"));
                }
                if is_text("$id") && !std::ptr::eq(value, root) {
                    return Err("it holds another document, with an $id of its own".to_owned());
                }
                let named = members.get("patternProperties").and_then(Value::as_object);
                patterns += usize::from(is_text("pattern")) + named.map_or(0, serde_json::Map::len);
                let mut schemas = 0;
                count(value, root, 0, &mut schemas)?;
                heaviest = heaviest.max(schemas);
                left.extend(members.values());
            }
            Value::Array(items) => left.extend(items),
            _ => {}
        }
    }
    if patterns > MOST_PATTERNS {
        return Err(format!(
            "it has {patterns} patterns, and may have {MOST_PATTERNS}"
        ));
    }
    Ok(heaviest)
}

/// Adds what `schema` applies to the value that it is applied to.
fn count(schema: &Value, root: &Value, depth: usize, schemas: &mut usize) -> Result<(), String> {
    *schemas += 1;
    if *schemas > MOST_SCHEMAS || depth > DEPTH {
        return Err(format!(
            "it applies more than {MOST_SCHEMAS} schemas to one value, or {DEPTH} in each other; simplify its references"
        ));
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').and_then(|at| root.pointer(at));
        let target = target.ok_or_else(|| {
            let shown: String = reference.chars().take(64).collect();
            format!("its reference {shown:?} leads to nothing in it")
        })?;
        count(target, root, depth + 1, schemas)?;
    }
    let lists = LISTS
        .into_iter()
        .filter_map(|name| schema.get(name)?.as_array());
    let dependent = schema.get("dependentSchemas").and_then(Value::as_object);
    let inner = lists
        .flatten()
        .chain(SINGLES.into_iter().filter_map(|name| schema.get(name)))
        .chain(dependent.into_iter().flat_map(serde_json::Map::values));
    for schema in inner {
        count(schema, root, depth + 1, schemas)?;
    }
    Ok(())
}
